"""Secrets are taken out of a text before it is stored: keys, tokens, private keys, passwords.

Each rule finds candidates by their shape, in time that grows with the length of the text alone, and a check in Python
decides. What is taken out leaves `[redacted: openai key]` behind, which no rule takes for a secret again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from .errors import InvalidInputError
from .models import Json
from .patterns import compile_late
from .secret_checks import is_key_name, name_of_key, value_group

if TYPE_CHECKING:
    from .secret_rules import Rule

Redact = Callable[[str], str]

MARK = "[redacted: "
WIDE = compile_late("[０-９Ａ-Ｚａ-ｚ]")
# Marks of punctuation stay, but for those that keys have in them: others end a value.
NARROW = {code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))}
NARROW |= {ord("－"): ord("-"), ord("＿"): ord("_")}


def redact_text(text: str) -> str:
    """Return a text with `[redacted: what it was]` in place of each secret. A text that is JSON stays JSON."""
    redacted = _redact_all(text)
    if redacted != text and text.lstrip()[:1] in ("{", "[", '"') and _is_json(text) and not _is_json(redacted):
        return json.dumps(redact_json(json.loads(text)), ensure_ascii=False)
    return redacted


def redact_json(value: Json, redact: Redact = redact_text) -> Json:
    """Return a copy of a JSON value, of at most 64 levels, whose strings and keys are redacted.

    What stands under a key such as "password" is taken out whatever it looks like, unless `redact` is another function.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return [redact_json(item, redact) for item in value]
    if not isinstance(value, Mapping):
        return _redact_number(value) if redact is redact_text else value
    redacted: dict[str, Json] = {}
    for key, item in value.items():
        called = _narrow(key) if isinstance(key, str) else ""
        secret = redact is redact_text and is_key_name(called, item)
        name = _free_name(redact(key), redacted) if isinstance(key, str) else key
        redacted[name] = f"{MARK}{name_of_key(called)}]" if secret else redact_json(item, redact)
    return redacted


def choose_redaction(setting: bool | Redact, wanted: bool | None) -> Redact | None:
    """Return how a call redacts, None for not at all: `wanted` is what the call says, None what `Settings.redact` says.

    Raises InvalidInputError.
    """
    if wanted is not None and not isinstance(wanted, bool):
        raise InvalidInputError(f"redact is True, False or None, not {wanted!r}; a function belongs into Settings")
    if not (setting if wanted is None else wanted):
        return None
    if isinstance(setting, bool):
        return redact_text
    return lambda text: _check_result(setting(text))


def _check_result(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInputError(f"Settings.redact returned a {type(text).__name__}; it must return the text to store")
    return text


def _redact_all(text: str) -> str:
    from .secret_rules import RULES  # made when first wanted: there are many

    narrow = _narrow(text)
    while True:  # what was taken out may have hidden the edge of another secret
        before, lowered = narrow, narrow.lower()
        for rule in RULES:
            if not rule.hints or any(hint in lowered for hint in rule.hints):
                found = _find_secrets(rule, narrow)
                text, narrow = _take_out(found, text), _take_out(found, narrow)
        if narrow == before:
            return text


def _find_secrets(rule: Rule, text: str) -> list[tuple[int, int, str]]:
    """Return where secrets of one kind begin and end, and what is written in their place."""
    found = []
    for match in rule.pattern.finditer(text):
        if rule.check is None or rule.check(match):
            start, end = match.span(value_group(match) if rule.secret == "value" else rule.secret)
            found.append((start, end, f"{MARK}{rule.name or name_of_key(match['name'])}]"))
    return found


def _take_out(secrets: Sequence[tuple[int, int, str]], text: str) -> str:
    if not secrets:
        return text
    parts, done = list[str](), 0
    for start, end, mark in secrets:
        parts += (text[done:start], mark)
        done = end
    return "".join((*parts, text[done:]))


def _narrow(text: str) -> str:
    """Return a text of the same length with full-width letters and digits as those of ASCII."""
    return text if text.isascii() or WIDE.search(text) is None else text.translate(NARROW)


def _redact_number(value: Json) -> Json:
    if isinstance(value, bool) or not isinstance(value, int) or value.bit_length() > 64:
        return value
    redacted = redact_text(str(value))
    return value if redacted == str(value) else redacted


def _free_name(name: str, taken: Mapping[str, Json]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
