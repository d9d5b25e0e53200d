"""Scopes: paths such as `user/42/project/x` that say whose a memory is.

A scope is a security boundary: a search sees one scope and what lies below it, never beside or above. A path is
compared code point by code point; nothing in it is a wildcard. `""` is the root.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from string import Formatter

from .errors import InvalidInputError
from .patterns import compile_late

ROOT = ""
SEPARATOR = "/"
MAX_LENGTH = 1024

# Four digits where a line separator or a surrogate was; two begin otherwise.
_ESCAPED = compile_late(r"%(202[89]|D[89A-F][0-9A-F]{2}|[0-9A-F]{2})")


def check_scope(scope: str) -> str:
    """Return `scope` unchanged if it is a valid path, else raise InvalidInputError."""
    if not isinstance(scope, str):
        raise InvalidInputError(f"a scope is a string such as 'user/42', not {scope!r}")
    if scope == ROOT:
        return scope
    if len(scope) > MAX_LENGTH:
        raise InvalidInputError(
            f"the scope {scope[:40]!r}… has {len(scope)} characters, at most {MAX_LENGTH} are allowed"
        )
    for segment in scope.split(SEPARATOR):
        _check_segment(segment, scope)
    return scope


def join_scopes(base: str, scope: str) -> str:
    """Return the path of `scope` below `base`; both may be the root."""
    check_scope(scope)
    return check_scope(SEPARATOR.join(part for part in (base, scope) if part))


def scope_contains(outer: str, inner: str) -> bool:
    """Tell whether `inner` is `outer` or lies below it."""
    return outer == ROOT or inner == outer or inner.startswith(outer + SEPARATOR)


def escape_segment(label: str) -> str:
    """Return any text, such as a host's user name, as one segment; different texts give different segments."""
    if label in ("", ".", "..", "*", "**"):
        return "".join(f"%{ord(character):02X}" for character in label) or "%"
    return "".join(_escape(character) for character in label)


def unescape_segment(segment: str) -> str:
    """Return the text that `escape_segment` made this segment of."""
    return "" if segment == "%" else _ESCAPED.sub(lambda found: chr(int(found[1], 16)), segment)


def format_scope(template: str, values: Mapping[str, object]) -> str:
    """Return the scope that a template such as "user/{user_id}" means; each value becomes one segment, or a part of it.

    Raises InvalidInputError for a template that is none, and where a value is missing, None or empty: a name that is
    not known must not make two users one.
    """
    try:
        parts = [(text, name) for text, name, _, _ in Formatter().parse(template)]
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"a scope is written like 'user/{{user_id}}', not {template!r}: {error}") from None
    return check_scope("".join(text + ("" if name is None else _fill(template, name, values)) for text, name in parts))


def _fill(template: str, name: str, values: Mapping[str, object]) -> str:
    value = values.get(name)
    if value is None or value == "":
        raise InvalidInputError(f"the scope {template!r} needs a {name!r}; known are {', '.join(values) or 'no names'}")
    return escape_segment(str(value))


def _escape(character: str) -> str:
    if character in "/%" or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
        return f"%{ord(character):02X}"
    return character


def _check_segment(segment: str, scope: str) -> None:
    if not segment:
        raise InvalidInputError(
            f"the scope {scope!r} has an empty segment; write it like 'user/42', without a slash at either end"
        )
    if segment in (".", ".."):
        raise InvalidInputError(
            f"the scope {scope!r} has the segment {segment!r}; a scope is an absolute path, write it out"
        )
    if segment in ("*", "**"):
        raise InvalidInputError(
            f"the scope {scope!r} has a wildcard; there are none: a search in a scope sees all that lies below it"
        )
    bad = next((c for c in segment if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")), None)
    if bad is not None:
        raise InvalidInputError(f"the scope {scope!r} has the character {bad!r}, which is not printable; leave it out")
