"""One large JSON document, read piece by piece."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import BinaryIO

from ..errors import InvalidInputError
from ..models import Json
from ..patterns import compile_late
from .content import refuse_constant

FIRST_PIECE = 1 << 16  # bytes; the next ones are as large as what is held, so that an item of any size is read in time
LARGEST_ITEM = 1 << 30  # bytes of one item
NEAR_THE_END = 16  # characters: an error there may come from reading only a part
SPACE = compile_late(r"[\s,]*")


class Document:
    """The items of a JSON document: those of a list at the top, one after the other, or else the one value."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._parse = json.JSONDecoder(parse_constant=refuse_constant).raw_decode
        self._text = ""
        self._at = 0
        self._ended = False

    def items(self) -> Iterator[Json]:
        """Yield the items. Raises InvalidInputError where the document can't be read any further."""
        self._pass_space()
        listed = self._text.startswith("[", self._at)
        self._at += listed
        while True:
            self._pass_space()
            if self._at == len(self._text):
                if listed:
                    raise InvalidInputError("the JSON document ends early: its list has no end")
                return
            if listed and self._text[self._at] == "]":
                return
            yield self._read_item()

    def _read_item(self) -> Json:
        while True:
            try:
                item, end = self._parse(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos > len(self._text) - NEAR_THE_END
                if self._ended or not cut or len(self._text) - self._at > LARGEST_ITEM:
                    raise InvalidInputError(f"the rest of the file is no JSON: {error.msg}") from None
            except (ValueError, RecursionError) as error:
                raise InvalidInputError(f"the rest of the file is no usable JSON: {error}") from None
            else:
                self._at = end
                return item
            self._read_more()

    def _pass_space(self) -> None:
        while True:
            found = SPACE.match(self._text, self._at)
            self._at = self._at if found is None else found.end()
            if self._at < len(self._text) or self._ended:
                return
            self._read_more()

    def _read_more(self) -> None:
        self._text = self._text[self._at :]
        self._at = 0
        piece = self._stream.read(max(FIRST_PIECE, len(self._text)))
        self._ended = not piece
        self._text += self._decode(piece, self._ended)
