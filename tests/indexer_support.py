"""Embedders of the indexer's tests: they refuse, fail, wait, or make vectors that are none."""

from __future__ import annotations

import threading

import numpy as np
from support import LIMIT, HashedEmbedder


class MoodyEmbedder(HashedEmbedder):
    """Fails on texts that hold one of `poison`, or on all while it is `down`; counts its calls."""

    def __init__(self, *poison: str, dimensions: int = 16) -> None:
        super().__init__(dimensions)
        self.poison = set(poison)
        self.down = False
        self.calls = 0

    def embed_passages(self, texts):
        self.calls += 1
        if self.down:
            raise ConnectionError("the embedder is down")
        bad = [text for text in texts if any(word in text for word in self.poison)]
        if bad:
            raise ValueError(f"{len(bad)} texts are refused")
        return super().embed_passages(texts)


class WrongEmbedder(HashedEmbedder):
    """Makes something else than vectors, by `change`, until that is None."""

    def __init__(self, change) -> None:
        super().__init__(16)
        self.change = change

    def embed_passages(self, texts):
        made = super().embed_passages(texts)
        return made if self.change is None else self.change(made)


class SlowEmbedder(HashedEmbedder):
    """Embeds nothing before it is let."""

    def __init__(self) -> None:
        super().__init__(16)
        self.may = threading.Event()
        self.begun = threading.Event()

    def embed_passages(self, texts):
        self.begun.set()
        assert self.may.wait(LIMIT)
        return super().embed_passages(texts)


class WindowEmbedder(HashedEmbedder):
    """Has a window of so many tokens; each byte is a token, as with a tokenizer that knows no words at all."""

    def __init__(self, window: int) -> None:
        super().__init__(16)
        self.window = window

    def token_spans(self, text):
        return [(place, place + 1) for place, letter in enumerate(text) for _ in letter.encode("utf-8")]


def spoil(place, value):
    """Return a change that puts a value into one of the vectors."""

    def change(made):
        made = made.copy()
        made[place] = value
        return made

    return change


WRONG = {
    "too few": lambda made: made[:-1],
    "too many": lambda made: np.vstack([made, made]),
    "too short": lambda made: made[:, :-1],
    "too long": lambda made: np.hstack([made, made]),
    "not a number": spoil(0, np.nan),
    "infinite": spoil(0, np.inf),
    "zero": spoil(0, 0),
    "None": lambda made: None,
    "text": lambda made: ["a vector"] * len(made),
    "ragged": lambda made: [list(row[: 3 + place]) for place, row in enumerate(made)],
}
