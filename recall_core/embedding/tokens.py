"""A model's tokenizer: texts become token ids that fit the model, characters know their tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recall_core.errors import EmbeddingError, InvalidInputError, ModelNotFoundError

from ..patterns import compile_late
from .spec import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

    from recall_core.models import Span

    TokenIds = NDArray[np.int64]  # shape (tokens,)

MAX_WINDOWS = 8  # windows of one over-long text that are looked at
_FILL = 0.9  # of the window; a slice of a text may have a few more tokens than it had inside the text
_LONGEST_TOKEN = 16  # characters; real tokens are a quarter of it on average
_SURROGATES = compile_late("[\ud800-\udfff]")


class Tokens:
    """The tokenizer of a model, configured once and then only read, so that threads may share it.

    Raises ModelNotFoundError if tokenizer.json is damaged, InvalidInputError if the prefix leaves no room for a text.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self._tokenizer = load_tokenizer(spec.tokenizer_file)
        self._max_length = spec.max_length
        self._windows = {prefix: self._measure_window(prefix) for prefix in (spec.passage_prefix, spec.query_prefix)}
        self.window = self._windows[spec.passage_prefix]

    def spans(self, text: str) -> list[Span]:
        """Return the character offsets of the tokens of `text` alone, without prefix and special tokens.

        Tokens may share characters (one character can be several tokens), and white space belongs to none or to the
        token after it.
        """
        offsets: list[Span] = self._tokenizer.encode(_clean(text), add_special_tokens=False).offsets
        return offsets

    def encode(self, text: str, prefix: str) -> list[TokenIds]:
        """Return the ids of `prefix + text` with special tokens, or of each window of a text that is too long."""
        text = _clean(text)
        longest = MAX_WINDOWS * self._max_length * _LONGEST_TOKEN
        if len(text) > longest:  # spares the tokenizer megabytes of which only samples would be used
            text = "\n".join(text[start:end] for start, end in _spread(len(text), longest // MAX_WINDOWS))
        ids = self._ids(prefix + text)
        if len(ids) <= self._max_length:
            return [ids]
        # Cutting the ids is for the rare piece that has far more tokens alone than it had inside the text.
        return [self._ids(prefix + piece)[: self._max_length] for piece in self._cut(text, self._windows[prefix])]

    def _cut(self, text: str, window: int) -> Iterator[str]:
        spans = self.spans(text)
        for first, last in _spread(len(spans), max(1, int(_FILL * window))):
            yield text[spans[first][0] : spans[last - 1][1]]

    def _ids(self, text: str) -> TokenIds:
        import numpy as np

        ids = self._tokenizer.encode(text).ids
        if not ids:
            raise EmbeddingError(
                f"the tokenizer finds no token in a text of {len(text)} characters; leave such texts out"
            )
        return np.array(ids, np.int64)

    def _measure_window(self, prefix: str) -> int:
        taken = self._tokenizer.num_special_tokens_to_add(False)
        taken += len(self._tokenizer.encode(prefix, add_special_tokens=False).ids)
        if taken >= self._max_length:
            raise InvalidInputError(
                f"max_length is {self._max_length}, but the prefix {prefix!r} and the special tokens "
                f"take {taken} tokens; make it larger or the prefix shorter"
            )
        return self._max_length - taken


class PairTokens:
    """The tokenizer of a cross-encoder, which reads a query and a text at once. Threads may share it.

    Raises ModelNotFoundError if tokenizer.json is damaged, InvalidInputError if `max_length` leaves no room for a pair.
    """

    def __init__(self, file: Path, max_length: int) -> None:
        self._tokenizer = load_tokenizer(file)
        taken = self._tokenizer.num_special_tokens_to_add(True)
        self._room = max_length - taken
        if self._room < 2:
            raise InvalidInputError(
                f"max_length is {max_length}, of which special tokens take {taken}; a query and a text need 2 at least"
            )

    def encode(self, query: str, texts: Sequence[str]) -> tuple[list[TokenIds], list[TokenIds]]:
        """Return the ids and the type ids of each pair, joined by the tokenizer's own template.

        A query keeps up to half of the room, a text has what is left; both are cut at their end.
        """
        import numpy as np

        asked = self._encode_start(query, self._room // 2)
        ids, types = [], []
        for text in texts:
            pair = self._tokenizer.post_process(asked, self._encode_start(text, self._room - len(asked)))
            ids.append(np.array(pair.ids, np.int64))
            types.append(np.array(pair.type_ids, np.int64))
        return ids, types

    def _encode_start(self, text: str, size: int) -> Encoding:
        """Return the first `size` tokens of a text, without special ones."""
        text = _clean(text[: size * _LONGEST_TOKEN])
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        if len(encoding) > size:
            # What an encoding was cut off stays with it, and would be joined to the other side as well.
            encoding = self._tokenizer.encode(text[: encoding.offsets[size - 1][1]], add_special_tokens=False)
            encoding.truncate(size)
        return encoding


def load_tokenizer(file: Path) -> Tokenizer:
    """Load a tokenizer.json, set up so that threads may share it. Raises ModelNotFoundError if it is damaged."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        raise ModelNotFoundError(f"{file} is damaged: {error}; download it again") from error
    # Truncation would cut text silently. Padding makes old versions of the library use a thread pool, which prints
    # a warning to stdout when the host program forks; so does encode_batch, and it is no faster here.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is text
    return tokenizer


def _clean(text: str) -> str:
    # Half of a surrogate pair can't be encoded as UTF-8. One character for another: offsets stay true.
    return _SURROGATES.sub("\ufffd", text)


def _spread(length: int, size: int) -> list[tuple[int, int]]:
    """Return the bounds of equal parts of at most `size`; of more than MAX_WINDOWS parts, that many spread evenly."""
    parts = -(-length // size)
    kept = min(parts, MAX_WINDOWS)
    chosen = [(parts - 1) * part // max(1, kept - 1) for part in range(kept)]
    return [(length * part // parts, length * (part + 1) // parts) for part in chosen]
