"""How much of a model's context a result may take. Tokens are estimated, rather above than below what tokenizers count:
a token is about three characters of English or of JSON, or one of Chinese.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, TypeVar

RESULT = 8_000.0  # tokens of one result; clients cut off longer ones
PER_LETTER = 0.3
PER_BYTE = 1 / 3  # of what is not ASCII

Item = TypeVar("Item")


def weigh(value: Any) -> float:
    """Return about how many tokens a value takes as JSON."""
    text = json.dumps(value, ensure_ascii=False)
    letters = len(text.encode("ascii", "ignore"))
    return letters * PER_LETTER + (len(text.encode()) - letters) * PER_BYTE


def find_end(text: str, start: int, tokens: float) -> int:
    """Return where a part of a text that begins at `start` ends if it takes no more than `tokens` as JSON."""
    part = text[start : start + int(max(tokens, 0) / PER_LETTER)]
    fitting = bisect_right(range(len(part) + 1), tokens, key=lambda length: weigh(part[:length]))
    return start + max(fitting - 1, 0)


def fit(items: Sequence[Item], tokens: float) -> list[Item]:
    """Return the first of some items, as far as they fit."""
    shown = []
    for item in items:
        tokens -= weigh(item)
        if tokens < 0:
            break
        shown.append(item)
    return shown
