"""Embeds texts one way or another: what an embedder refuses costs no other text its vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recall_core.errors import EmbedderUnavailableError, PartlyEmbeddedError, TextRefusedError
from recall_core.models import Embedder
from recall_core.vectors import check_vectors

if TYPE_CHECKING:
    from recall_core.models import Vectors

MOST_REFUSED = 16  # texts of one attempt that an embedder may refuse; then it is hardly the texts
HARMLESS = "text"


@dataclass(slots=True)
class Attempt:
    """What came of it: vectors, shape (dimensions,), and refusals by the text's position, and what stopped the rest."""

    vectors: dict[int, Vectors] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    failure: Exception | None = None


def attempt(embedder: Embedder, texts: Sequence[str], dimensions: int) -> Attempt:
    """Embed texts. If that fails, tell by a harmless text whether the embedder is at fault, else find the refused ones.

    Raises nothing that an embedder may raise but KeyboardInterrupt and the like.
    """
    found = Attempt()
    waiting = [list(range(len(texts)))] if texts else []
    doubted = False
    while waiting and found.failure is None:
        part = waiting.pop()
        error = _try(embedder, texts, part, dimensions, found)
        if error is None:
            continue
        if not doubted and not isinstance(error, TextRefusedError):
            doubted, probe = True, Attempt()
            if _try(embedder, [HARMLESS], [0], dimensions, probe) is not None or probe.failure is not None:
                found.failure = error
                break
        if len(part) > 1:
            half = len(part) // 2
            waiting += [part[half:], part[:half]]
        else:
            found.refused[part[0]] = f"{type(error).__name__}: {error}"
            if len(found.refused) > MOST_REFUSED:
                found.failure = error
    return found


def _try(
    embedder: Embedder, texts: Sequence[str], part: Sequence[int], dimensions: int, found: Attempt
) -> Exception | None:
    """Embed some of the texts; return what went wrong if that may be one text's fault."""
    try:
        made = embedder.embed_passages([texts[place] for place in part])
        found.vectors.update(zip(part, check_vectors(made, len(part), dimensions), strict=True))
    except PartlyEmbeddedError as error:
        found.vectors |= {part[place]: vector for place, vector in error.vectors.items()}
        found.refused |= {part[place]: reason for place, reason in error.refused.items()}
        found.failure = error.failure
    except EmbedderUnavailableError as error:
        found.failure = error
    except Exception as error:  # an embedder is foreign code
        return error
    return None
