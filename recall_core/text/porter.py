"""The Porter stemmer for English: connected, connecting and connection all become connect.

Its author's second version, the "english" of his Snowball library: the first (Program 14(3), 1980) keeps deploy apart
from deployment, and try from tries.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

_SHORTEST_STEMMED = 3  # "us" is no plural


class _Stemmers(threading.local):
    """A stemmer for each thread: one must not be used by two at once."""

    stemmer: Any = None


_stemmers = _Stemmers()


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a word of lower-case ASCII letters."""
    if len(word) < _SHORTEST_STEMMED:
        return word
    if _stemmers.stemmer is None:
        import Stemmer

        _stemmers.stemmer = Stemmer.Stemmer("english", 0)  # our cache serves all threads
    return str(_stemmers.stemmer.stemWord(word))
