"""Makes text and metadata storable: what no database can hold is replaced visibly, the rest is left alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

from recall_core.errors import InvalidInputError
from recall_core.models import Json

from ..patterns import compile_late
from .characters import SURROGATES

REPLACEMENT = "\ufffd"
MAX_DEPTH = 64
MAX_INTEGER_BITS = 14_000  # Python refuses to write integers of more than 4,300 digits as text

_UNSTORABLE = compile_late(f"[\0{SURROGATES}]")


def clean_text(text: str) -> str:
    """Return `text` with each NUL and each lone surrogate replaced by U+FFFD, everything else untouched.

    SQLite's own functions stop reading at a NUL, and a lone surrogate has no UTF-8 form.
    Raises InvalidInputError if `text` is no string.
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"a text is a string, not {text!r:.100}; convert it first")
    return _UNSTORABLE.sub(REPLACEMENT, text)


def clean_json(value: Json) -> Json:
    """Return a copy of a JSON value with every string and key cleaned as by `clean_text`, tuples as lists.

    Raises InvalidInputError for what JSON can't hold: NaN, infinity, keys that are no strings, other types, values
    that contain themselves, and values nested deeper than 64.
    """
    return _clean(value, "", [])


def _clean(value: Json, where: str, parents: list[int]) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int | float):
        return _check_number(value, where)
    if not isinstance(value, list | tuple | Mapping):
        raise InvalidInputError(
            f"{where or 'the value'} is of type {type(value).__name__}, which JSON can't hold; "
            "use strings, numbers, booleans, None, lists and dicts"
        )
    if id(value) in parents:
        raise InvalidInputError(f"{where or 'the value'} contains itself; JSON can't hold that, store a copy or an id")
    if len(parents) >= MAX_DEPTH:
        raise InvalidInputError(f"{where[:40]}… is nested deeper than {MAX_DEPTH} levels; store it flatter")
    parents.append(id(value))
    cleaned = (
        _clean_mapping(value, where, parents) if isinstance(value, Mapping) else _clean_list(value, where, parents)
    )
    parents.pop()
    return cleaned


def _clean_list(values: list[Json] | tuple[Json, ...], where: str, parents: list[int]) -> list[Json]:
    return [_clean(value, f"{where}[{index}]", parents) for index, value in enumerate(values)]


def _clean_mapping(values: Mapping[Json, Json], where: str, parents: list[int]) -> dict[str, Json]:
    cleaned: dict[str, Json] = {}
    for key, value in values.items():
        if not isinstance(key, str):
            raise InvalidInputError(f"the key {key!r:.100} of {where or 'the value'} is no string; use str(key)")
        name = clean_text(key)
        if name in cleaned:
            raise InvalidInputError(f"two keys of {where or 'the value'} become {name!r:.100}; rename one of them")
        cleaned[name] = _clean(value, f"{where}.{key}" if where else key, parents)
    return cleaned


def _check_number(value: int | float, where: str) -> int | float:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"{where or 'the value'} is {value!r}, which JSON can't hold; leave it out or use None")
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        raise InvalidInputError(
            f"{where or 'the value'} is an integer of {value.bit_length()} bits; store it as a string"
        )
    return value
