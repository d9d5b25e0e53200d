"""Who is speaking: the names in a run's context and configuration, and the scope that they give."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from inspect import ismemberdescriptor
from typing import Any

from langgraph.config import get_config
from langgraph.runtime import get_runtime

from recall_core import format_scope

USER_SCOPE = "user/{user_id}"
USER, THREAD, ANYBODY = "user_id", "thread_id", "default"
SIGNED_IN = "langgraph_auth_user_id"  # whom the LangGraph server knows; a client can't choose it

USER_LIKE = "user"  # what is in names such as userId

logger = logging.getLogger("recall_core")

_warned: set[str] = set()

Scope = str | Callable[[Mapping[str, Any]], str]


def find_names(context: object = None) -> dict[str, Any]:
    """Return what a run says of its caller: the entries of `configurable`, over these those of the context.

    Outside of a run there are none. Whoever is signed in on a LangGraph server is the `user_id`, whatever else is said;
    without any the `user_id` is "default".
    """
    configurable = _find_configurable()
    names = {key: value for key, value in configurable.items() if not key.startswith("__")}
    given = _find_context() if context is None else context
    said = _as_mapping(given)
    names |= {key: value for key, value in said.items() if value is not None}
    user = configurable.get(SIGNED_IN) or names.get(USER)
    if user is None or user == "":
        user = ANYBODY
        if given is not None and not said and not isinstance(given, Mapping):
            _warn_once([f"a context of the type {type(given).__name__}"])
    return names | {USER: user}


def find_scope(scope: Scope, names: Mapping[str, Any]) -> str:
    """Return the scope of a caller. Raises InvalidInputError if a template lacks a name."""
    if callable(scope):
        return scope(names)
    if names[USER] == ANYBODY and f"{{{USER}}}" in scope:
        _warn_once(name for name in names if USER_LIKE in str(name).lower() and name != USER and names[name])
    return format_scope(scope, names)


def _warn_once(names: Iterable[str]) -> None:
    """Warn of what may be meant to name a user and does not, so that all users would share a memory."""
    for name in set(names) - _warned:
        _warned.add(name)
        logger.warning("%s names no user, user_id does; whoever speaks is taken for the user %r", name, ANYBODY)


def _find_configurable() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable", {})
    except RuntimeError:
        return {}


def _find_context() -> object:
    try:
        return getattr(get_runtime(), "context", None)
    except (RuntimeError, KeyError):
        return None


def _as_mapping(context: object) -> Mapping[str, Any]:
    """Return what a context says by name, whatever kind of object it is: a user who is overlooked would be another."""
    if isinstance(context, Mapping):
        return context
    slots = [name for kind in type(context).__mro__ for name, part in vars(kind).items() if ismemberdescriptor(part)]
    named = [*slots, *getattr(context, "_fields", ()), *getattr(context, "__dict__", {}), USER, THREAD]
    return {name: getattr(context, name) for name in named if hasattr(context, name)}
