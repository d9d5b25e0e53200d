"""A caller's search arguments become a request: checked, with the settings' defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from .drafting import check_space
from .engine import Engine
from .errors import InvalidInputError, VectorError
from .filters import Selection
from .models import Fusion, Mode
from .request import Request
from .store import OWN_SPACE, Space

if TYPE_CHECKING:
    from .models import Vectors

MAX_LIMIT = 10_000
MMR_POOL = 5  # diversify looks at so many times the limit


def make_request(
    engine: Engine,
    query: str,
    selection: Selection,
    *,
    mode: Mode,
    limit: int,
    fusion: Fusion,
    alpha: float | None,
    recency: float | None,
    candidates: int | None,
    diversify: float | None,
    min_relevance: float | None,
    min_similarity: float | None,
    vector: Sequence[float] | None,
    space: str | None,
) -> Request:
    """Return the request. Raises InvalidInputError for what can't be used, VectorError for a bad query vector."""
    if not isinstance(query, str):
        raise InvalidInputError(f"a query is a string, not {query!r}")
    if mode not in get_args(Mode):
        raise InvalidInputError(f"mode is {mode!r}; choose one of {', '.join(get_args(Mode))}")
    if fusion not in get_args(Fusion):
        raise InvalidInputError(f"fusion is {fusion!r}; choose one of {', '.join(get_args(Fusion))}")
    settings = engine.settings
    limit = _whole("limit", limit, 0, MAX_LIMIT)
    if candidates is not None:
        candidates = max(_whole("candidates", candidates, 1, 4096), limit)
    name = OWN_SPACE if space is None else check_space(space)
    found = engine.store.vectors.find_space(name)
    return Request(
        text=query,
        selection=selection,
        mode=mode,
        limit=limit,
        fusion=fusion,
        alpha=None if alpha is None else _share("alpha", alpha),
        recency=settings.recency_weight if recency is None else _share("recency", recency),
        candidates=max(settings.candidates, limit) if candidates is None else candidates,
        pool=limit * MMR_POOL if candidates is None else candidates,
        diversity=0.0 if diversify is None else _share("diversify", diversify),
        min_relevance=None if min_relevance is None else _share("min_relevance", min_relevance),
        min_similarity=_find_floor(engine, found)
        if min_similarity is None
        else _share("min_similarity", min_similarity, least=-1.0),
        vector=None if vector is None else _check_vector(vector, found),
        space_name=name,
        space=found,
    )


def _find_floor(engine: Engine, space: Space | None) -> float | None:
    """Return the least cosine that the settings have for the model of the memory's own space."""
    if space is None or space.name != OWN_SPACE:
        return None
    model = space.model.casefold()
    return next((floor for part, floor in engine.settings.similarity_floors if part.casefold() in model), None)


def _check_vector(vector: Sequence[float], space: Space | None) -> Vectors:
    from .vectors import check_vectors

    try:
        dimensions = len(vector) if space is None else space.dimensions
    except TypeError:
        raise VectorError(f"a vector is a sequence of numbers, not {vector!r}") from None
    checked: Vectors = check_vectors([vector], 1, dimensions)[0]
    return checked


def _whole(name: str, value: int, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInputError(f"{name} is a whole number from {least} to {most}, not {value!r}")
    return value


def _share(name: str, value: float, least: float = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 1:
        raise InvalidInputError(f"{name} is a number from {least:g} to 1, not {value!r}")
    return float(value)
