"""One call of an HTTP embedder, without the network: which requests it makes, and what becomes of their answers.

`embed_batch` is a generator: it yields requests and pauses and is sent the replies, so that threads and asyncio drive
the same steps.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recall_core.chunking import TextChunker, estimate_tokens
from recall_core.errors import (
    EmbedderUnavailableError,
    EmbeddingError,
    PartlyEmbeddedError,
    TextRefusedError,
    VectorError,
)
from recall_core.vectors import check_vectors, normalize

from .providers import HttpSpec, Style
from .retries import LONGEST_PAUSE, Pace, choose_pause
from .wire import Failure, Kind, Reply, Verdict, make_body, make_url, read_reply, starting_style, wants_multimodal

if TYPE_CHECKING:
    from recall_core.models import Vectors

logger = logging.getLogger("recall_core")

MOST_PIECES = 8  # of one over-long text that are embedded
MOST_STRIKES = 2  # batches in a row that fail for good before the rest of a call is left for later
_LONGEST_MESSAGE = 300  # characters
_HIDDEN_TEXT = 12  # characters; shorter texts may be part of a server's message by chance


@dataclass(frozen=True, slots=True)
class Send:
    """A request to make. The next one may start `interval` seconds after it."""

    url: str
    body: bytes = field(repr=False)
    interval: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds to wait."""

    seconds: float


Steps = Generator[Send | Pause, Reply, None]


@dataclass(frozen=True, slots=True)
class Piece:
    """A text to embed, or a part of one that is too long: the `owner`-th text of the call, with its prefix."""

    owner: int
    text: str


@dataclass(slots=True)
class Link:
    """What an embedder learns of its server, from whatever call. Threads share it; each value is set at once."""

    style: Style
    dimensions: int | None
    pace: Pace = field(default_factory=Pace)
    worked: bool = False  # whether vectors ever came

    @classmethod
    def begin(cls, spec: HttpSpec) -> Link:
        """Return what is known before the first request."""
        return cls(starting_style(spec), spec.dimensions)


class Call:
    """What one call of an embedder has got so far. Its batches may run in several threads."""

    def __init__(self, spec: HttpSpec, link: Link, texts: Sequence[str], kind: Kind) -> None:
        self.kind = kind
        self.deadline = time.monotonic() + spec.query_timeout if kind == "query" else None
        self.failure: EmbeddingError | None = None
        self.stopped = False
        self._spec = spec
        self._link = link
        self._texts = texts
        self._refused: dict[int, str] = {}
        self._doubted: dict[int, str] = {}
        self._vectors: dict[int, list[Vectors]] = {}
        self._strikes = 0
        prefix = spec.passage_prefix if kind == "passage" else spec.query_prefix
        self._pieces = [
            Piece(owner, prefix + part)
            for owner, text in enumerate(texts)
            for part in (cut(text, find_window(spec, prefix)) if text.strip() else [])
        ]
        self._wanted = [0] * len(texts)
        for piece in self._pieces:
            self._wanted[piece.owner] += 1

    def batches(self) -> list[list[Piece]]:
        """Return the pieces to embed, as many a batch as the limits of count and tokens allow."""
        size = 1 if self._link.style == "ark_multimodal" else self._spec.batch_size
        return list(pack(self._pieces, size, self._spec.batch_tokens))

    def keep(self, part: Sequence[Piece], made: Sequence[Vectors | str]) -> None:
        """Note the vectors of pieces, and for which text the model gave none that can be used, and why."""
        self._strikes = 0
        for piece, vector in zip(part, made, strict=True):
            if isinstance(vector, str):
                self._refused[piece.owner] = vector
            else:
                self._vectors.setdefault(piece.owner, []).append(vector)

    def refuse(self, piece: Piece, failure: Failure) -> None:
        """Note that the server refuses a piece, and stop if it seems to refuse whatever it gets."""
        reason = self.describe(failure)
        if failure.verdict is Verdict.TEXT or self._link.worked:
            self._refused[piece.owner] = reason
            return
        self._doubted[piece.owner] = reason
        if len(self._doubted) >= min(MOST_STRIKES, len(self._pieces)):
            self.stop(EmbedderUnavailableError(f"{reason}; nothing was embedded yet, so it may be a setting"))

    def give_up(self, failure: Failure) -> None:
        """Note that a batch failed for good, and stop if the others would fail as well."""
        permanent = failure.verdict is Verdict.SETTING
        reason = self.describe(failure)
        error = EmbedderUnavailableError(reason, retry_after=failure.retry_after, permanent=permanent)
        self._strikes += 1
        if failure.verdict is not Verdict.RETRY or self._strikes >= MOST_STRIKES:
            self.stop(error)
        self.failure = error

    def stop(self, error: EmbeddingError | None = None) -> None:
        """Let no further request be made."""
        self.failure = error or self.failure
        self.stopped = True

    def finish(self) -> Vectors:
        """Return the vectors, shape (texts, dimensions). Raises EmbeddingError, of its kinds the one that says most."""
        import numpy as np

        count = len(self._texts)
        if not count:
            return np.zeros((0, self._link.dimensions or 0), np.float32)
        for owner in range(count):
            if not self._wanted[owner]:
                self._refused[owner] = "the text is blank, and servers take no blank text"
        if self._link.worked:
            self._refused |= self._doubted
        vectors = {owner: _mean(parts) for owner, parts in sorted(self._vectors.items()) if self._is_whole(owner)}
        if len(vectors) == count:
            return np.stack([vectors[owner] for owner in range(count)])
        if count == 1 and self._refused:
            raise TextRefusedError(self._refused[0])
        if not vectors and not self._refused and self.failure is not None:
            raise self.failure
        missing = count - len(vectors) - len(self._refused)
        message = f"{len(vectors)} of {count} texts have vectors, {len(self._refused)} were refused"
        if self._refused:
            message += f" ({next(iter(self._refused.values()))})"
        if missing:
            message += f", {missing} failed ({self.failure or 'the call was stopped'})"
        raise PartlyEmbeddedError(message, vectors=vectors, refused=self._refused, failure=self.failure)

    def describe(self, failure: Failure) -> str:
        """Return a failure in words, with nothing in them that is secret: no key, no text that was sent."""
        message = failure.message
        for secret in self._spec.secrets:
            message = message.replace(secret, "***")
        for text in (*self._texts, *(piece.text for piece in self._pieces)):
            if len(text) >= _HIDDEN_TEXT:
                message = message.replace(text, "[text]")
        return f"{self._spec.model} at {self._spec.base_url.partition('?')[0]}: {message[:_LONGEST_MESSAGE]}"

    def _is_whole(self, owner: int) -> bool:
        return owner not in self._refused and len(self._vectors[owner]) == self._wanted[owner]


def embed_batch(spec: HttpSpec, link: Link, call: Call, batch: Sequence[Piece]) -> Steps:
    """Embed some pieces: the whole batch at once, or in parts where a text of it is refused."""
    style = link.style
    waiting: list[Sequence[Piece]] = [batch]
    while waiting and not call.stopped:
        part = waiting.pop()
        if style == "ark_multimodal" and len(part) > 1:  # it would fuse them into one vector
            waiting += [[piece] for piece in reversed(part)]
            continue
        result = yield from _ask(spec, link, call, part, style)
        if call.stopped and isinstance(result, Failure):
            return  # what stopped it is the reason, not this
        if not isinstance(result, Failure):
            link.style = style
            call.keep(part, result)
        elif wants_multimodal(spec, style, result):
            style = "ark_multimodal"
            waiting.append(part)
        elif result.verdict not in (Verdict.TEXT, Verdict.DOUBT):
            call.give_up(result)
            return
        elif len(part) == 1:
            call.refuse(part[0], result)
        else:
            waiting += _divide(part, in_doubt=result.verdict is Verdict.DOUBT and not link.worked)


def _ask(
    spec: HttpSpec, link: Link, call: Call, part: Sequence[Piece], style: Style
) -> Generator[Send | Pause, Reply, list[Vectors | str] | Failure]:
    """Request the vectors of pieces, again after a pause where that may help."""
    body = make_body(spec, style, [piece.text for piece in part], call.kind)
    interval = spec.min_interval / (spec.batch_size if style == "ark_multimodal" else 1)  # as many texts a second
    attempt = 0
    while True:
        attempt += 1
        reply = yield Send(make_url(spec.base_url, style), body, interval)
        raw = read_reply(reply, len(part))
        made = raw if isinstance(raw, Failure) else _check(link, raw)
        if not isinstance(made, Failure) or made.verdict is not Verdict.RETRY or attempt > spec.retries:
            return made
        pause = choose_pause(attempt, spec.backoff, made.retry_after)
        ends_late = call.deadline is not None and time.monotonic() + pause >= call.deadline
        if ends_late or call.stopped or (made.retry_after or 0) > LONGEST_PAUSE:
            return made
        logger.debug("embedding is tried again in %.1f s: %s", pause, call.describe(made))
        if made.retry_after is not None:
            link.pace.hold(made.retry_after)
        yield Pause(pause)


def _check(link: Link, raw: Sequence[Any]) -> list[Vectors | str] | Failure:
    """Return unit vectors, with the reason in place of one that can't be used; a Failure if none of them can."""
    try:
        rows = [_decode(item) for item in raw]
        made = [_normalize(row) for row in rows]
    except VectorError as error:
        return Failure(Verdict.SETTING, f"the answer holds something else than vectors: {error}")
    if link.dimensions is None:
        link.dimensions = len(rows[0])
    for row in rows:
        if len(row) != link.dimensions:
            return Failure(
                Verdict.SETTING,
                f"the model gives vectors of {len(row)} numbers where {link.dimensions} are expected; "
                f"set dimensions={len(row)}, or name another model",
            )
    link.worked = link.worked or any(not isinstance(vector, str) for vector in made)
    return made


def _decode(item: Any) -> Sequence[Any]:
    """Return a vector as it came: a list of numbers (null stands for NaN), or float32 in base64, little-endian."""
    import base64

    import numpy as np

    if isinstance(item, str):
        try:
            item = np.frombuffer(base64.b64decode(item, validate=True), "<f4").tolist()
        except ValueError as error:
            raise VectorError("a text that is no base64 of float32") from error
    if not isinstance(item, list) or not item:
        raise VectorError(f"{type(item).__name__} {str(item)[:20]!r} in place of a list of numbers")
    return [float("nan") if number is None else number for number in item] if None in item else item


def _normalize(row: Sequence[Any]) -> Vectors | str:
    import numpy as np

    try:
        array = np.asarray(row)
    except ValueError as error:  # a list of lists of several lengths
        raise VectorError("a list of something else than numbers") from error
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        raise VectorError("a list of something else than numbers")
    try:
        vector: Vectors = normalize(check_vectors(array[None, :], 1, len(array)))[0]
        return vector
    except VectorError as error:
        return f"the model's {error}"


def find_window(spec: HttpSpec, prefix: str) -> int:
    """Return how many estimated tokens a text may have: half of the model's, as an estimate may be off by two."""
    return max(1, spec.max_tokens // 2 - len(estimate_tokens(prefix)))


def cut(text: str, window: int) -> list[str]:
    """Return a text that fits the window as it is, another one in pieces, at most MOST_PIECES spread evenly."""
    spans = TextChunker(window, 0).chunk(text)
    if len(spans) > MOST_PIECES:
        spans = [spans[(len(spans) - 1) * piece // (MOST_PIECES - 1)] for piece in range(MOST_PIECES)]
    return [text[start:end] for start, end in spans] if len(spans) > 1 else [text]


def pack(pieces: Iterable[Piece], size: int, tokens: int) -> Iterator[list[Piece]]:
    """Yield batches of at most `size` pieces and `tokens` estimated tokens; a larger piece is a batch of its own."""
    batch: list[Piece] = []
    held = 0
    for piece in pieces:
        measured = len(estimate_tokens(piece.text))
        if batch and (len(batch) == size or held + measured > tokens):
            yield batch
            batch, held = [], 0
        batch.append(piece)
        held += measured
    if batch:
        yield batch


def _divide(part: Sequence[Piece], *, in_doubt: bool) -> list[Sequence[Piece]]:
    """Return the parts to try in place of a refused one, the first to try last."""
    if in_doubt:  # both ends first: if they are refused too, it is hardly the text
        return [found for found in (part[1:-1], part[-1:], part[:1]) if found]
    half = len(part) // 2
    return [part[half:], part[:half]]


def _mean(parts: Sequence[Vectors]) -> Vectors:
    return parts[0] if len(parts) == 1 else normalize(sum(parts[1:], start=parts[0])[None, :])[0]
