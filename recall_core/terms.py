"""What a chunk is found by: the terms of its slice of the text, of who speaks, of its record's tags and metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from .models import Json, Record, Span
from .speakers import describe_speaker
from .store import ChunkDraft
from .text import analyse, user_words

LABEL_TERMS = 64  # of tags and metadata, at most so many are findable
HIDDEN = "_"  # how a metadata key begins whose strings are only there to be filtered by


def describe_spans(record: Record, spans: Sequence[Span], words: Collection[str]) -> tuple[ChunkDraft, ...]:
    """Return the chunks that these (start, end) pairs cut out of a record, with the terms that they are found by.

    `words` is the user dictionary.
    """
    speaker = describe_speaker(record.role)
    labels = _find_labels(record, words)
    return tuple(_draft(record.text, span, speaker, labels, words) for span in spans)


def holds_words(record: Record, words: Collection[str]) -> bool:
    """Tell whether one of these words of a user dictionary occurs in a record's text or labels."""
    texts = chain([describe_speaker(record.role) + record.text], _label_texts(record))
    return any(user_words(text, words) for text in texts)


def _find_labels(record: Record, words: Collection[str]) -> str:
    terms = [term for text in _label_texts(record) if text for term in _terms(text, words)]
    return " ".join(list(dict.fromkeys(terms))[:LABEL_TERMS])


def _label_texts(record: Record) -> Iterator[str]:
    shown = [value for key, value in record.metadata.items() if not key.startswith(HIDDEN)]
    return chain(record.tags, [record.source or ""], *map(_strings, shown))


def _terms(text: str, words: Collection[str]) -> list[str]:
    found = analyse(text, words)
    return [*found.latin, *found.grams, *found.words]


def _draft(text: str, span: Span, speaker: str, labels: str, words: Collection[str]) -> ChunkDraft:
    start, end = span
    spoken = speaker + text[start:end]
    found = analyse(spoken, words)
    return ChunkDraft(
        start=start,
        end=end,
        tokens=found.length,
        hash=hashlib.blake2b(spoken.encode("utf-8"), digest_size=16).digest(),
        latin=" ".join(found.latin),
        grams=" ".join(found.grams),
        words=" ".join(found.words),
        labels=labels,
    )


def _strings(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple):
        return [item for item in value if isinstance(item, str)]
    return []
