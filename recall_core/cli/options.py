"""The options that several commands share, and what their values mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import get_args

import click

from recall_core.errors import InvalidInputError
from recall_core.models import Json, Mode, OnDuplicate
from recall_core.patterns import compile_late
from recall_core.times import to_micros

db_option = click.option(
    "--db",
    metavar="PATH",
    envvar="RECALL_DB",
    show_envvar=True,
    help="The memory file; by default dualrecall/memory.db in your data folder.",
)
model_option = click.option(
    "--model",
    metavar="MODEL",
    envvar="RECALL_MODEL",
    show_envvar=True,
    help="""The embedding model to use in place of the built-in one: a name of recall models list, a folder,
    PROVIDER:NAME (openai, ollama, siliconflow, dashscope, cohere, ark), or URL#NAME of another server.""",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
scope_option = click.option("--scope", metavar="PATH", default="", help="Only this scope and below, such as user/42.")
session_option = click.option("--session", metavar="ID", help="Only this conversation.")
roles_option = click.option("--role", "roles", metavar="NAME", multiple=True, help="Only these roles; repeatable.")
tags_option = click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only with one of these; repeatable.")
since_option = click.option("--since", metavar="TIME", help="Only from this time on, such as 2026-01-31.")
until_option = click.option("--until", metavar="TIME", help="Only before this time.")
where_option = click.option("--where", metavar="JSON", help="""Filter on metadata, such as '{"stars": {"$gte": 3}}'.""")
mode_option = click.option(
    "--mode",
    "-m",
    type=click.Choice(get_args(Mode)),
    default="hybrid",
    show_default=True,
    help="Search by keyword, by meaning, or both.",
)
limit_option = click.option(
    "--limit", "-n", metavar="N", type=int, default=10, show_default=True, help="Show at most so many."
)
relevance_option = click.option("--min-relevance", metavar="0..1", type=float, help="Leave out what is less relevant.")
recency_option = click.option("--recency", metavar="0..1", type=float, help="How much newer memories are preferred.")
redact_option = click.option(
    "--redact", is_flag=True, help="Take keys, tokens and passwords out before anything is stored."
)
duplicates_option = click.option(
    "--on-duplicate",
    type=click.Choice(get_args(OnDuplicate)),
    default="keep",
    show_default=True,
    help="What to do with a text that its scope holds already; replace also takes a taken id.",
)

_TTL = compile_late(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_TTL_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_object(text: str | None, option: str) -> Mapping[str, Json] | None:
    """Return the JSON object that an option gives. Raises InvalidInputError."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{option} is no JSON: {error}; write it like '{{\"stars\": 3}}'") from None
    if not isinstance(value, dict):
        raise InvalidInputError(f"{option} is a JSON object such as '{{\"stars\": 3}}', not {text!r}")
    return value


def parse_pairs(pairs: Sequence[str]) -> dict[str, Json]:
    """Return the metadata that `key=value` options give; a value is JSON or else a string."""
    metadata: dict[str, Json] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise InvalidInputError(f"--metadata takes key=value, not {pair!r}")
        metadata[key] = _parse_value(value)
    return metadata


def parse_ttl(text: str | None) -> timedelta | None:
    """Return the time that a text such as 30d or 12h means."""
    if text is None:
        return None
    found = _TTL.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidInputError(f"--ttl is {text!r}; write a number and s, m, h, d or w, such as 30d or 12h")
    try:
        return timedelta(**{_TTL_UNITS[found[2]]: float(found[1])})
    except OverflowError:
        raise InvalidInputError(f"--ttl {text} reaches beyond the year 9999; leave it out for ever") from None


def parse_age(text: str | None, option: str) -> timedelta | str | None:
    """Return what a text such as 90d means, how long ago, or else a time such as 2026-01-31 as it is. Raises
    InvalidInputError for what is neither.
    """
    found = None if text is None else _TTL.fullmatch(text.strip().lower())
    if text is None:
        return None
    if found is None:
        try:
            to_micros(text, option)
        except InvalidInputError:
            raise InvalidInputError(
                f"{option} is {text!r}; write how long ago, a number and s, m, h, d or w such as 90d, "
                "or a time such as 2026-01-31"
            ) from None
        return text
    try:
        return timedelta(**{_TTL_UNITS[found[2]]: float(found[1])})
    except OverflowError:
        raise InvalidInputError(f"{option} {text} lies before the year 1; give a shorter time") from None


def _parse_value(text: str) -> Json:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(name: str) -> Json:
    raise ValueError(name)  # NaN and Infinity are no JSON, though Python reads them
