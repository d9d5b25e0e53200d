"""The user dictionary as it now is: held in memory, and read again after another process has changed it."""

from __future__ import annotations

from .errors import InvalidInputError
from .store import Dictionary, SqliteStore
from .text import clean_text

MOST_CHARACTERS = 512  # of a word


class LiveDictionary:
    """The user dictionary of a file. May be asked from several threads at once."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._held = store.dictionary.read()

    @property
    def held(self) -> Dictionary:
        """The dictionary as it was last read."""
        return self._held

    def follow(self) -> Dictionary:
        """Return the dictionary as it now is, inside a transaction as that sees it. Costs a look at one row."""
        if self._store.dictionary.version() != self._held.version:
            self._held = self._store.dictionary.read()
        return self._held


def check_words(words: object) -> tuple[str, ...]:
    """Return words as the dictionary keeps them, each once, with single spaces. Raises InvalidInputError."""
    if isinstance(words, str):
        words = (words,)
    try:
        given = list(words)  # type: ignore[call-overload]
    except TypeError:
        raise InvalidInputError(f"words is a word or a sequence of words, not {words!r}") from None
    return tuple(dict.fromkeys(_check_word(word) for word in given))


def _check_word(word: object) -> str:
    if not isinstance(word, str) or not word.strip():
        raise InvalidInputError(f"a word is a string that is not empty, not {word!r}")
    cleaned = " ".join(clean_text(word).split())
    if len(cleaned) > MOST_CHARACTERS:
        raise InvalidInputError(f"{cleaned[:20]!r}… has {len(cleaned)} characters, a word at most {MOST_CHARACTERS}")
    return cleaned
