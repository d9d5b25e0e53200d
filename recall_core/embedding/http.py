"""Embeds texts with a model behind HTTP: OpenAI-compatible servers, Cohere, and Volcano Ark in both of its shapes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from recall_core.chunking import estimate_tokens
from recall_core.errors import InvalidInputError
from recall_core.models import Span

from .providers import HttpSpec, ProviderName, Style, check_url, find_model, find_provider, make_headers

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from recall_core.models import Vectors

    from .exchange import Call
    from .transport import LoopTransport, ThreadTransport
    from .wire import Kind

Value = TypeVar("Value")

_MOST_AT_ONCE = 256


class HttpEmbedder:
    """An `Embedder` over a server that is asked by HTTP; a `TokenWindow`, too, with estimated tokens.

    `provider` gives the URL, the limits, the environment variable of the key and a default model of "openai",
    "ollama", "siliconflow", "dashscope", "cohere" or "ark" (Volcano Ark's Coding Plan); any other server works by
    `base_url`. An argument overrides what the provider has:

    * `model`: its name, as the server knows it.
    * `base_url`: the URL above `/embeddings`, or all of it. No key belongs in it.
    * `api_key`: sent as "Authorization: Bearer …"; by default the provider's environment variable. `headers` are sent
      as well, where a gateway wants others; their values are taken for secret.
    * `style`: the shape of requests. "auto" is OpenAI's, except for a URL that ends with /multimodal; a model of Ark
      with "embedding-vision" in its name that is refused there is asked in the style "ark_multimodal" from then on.
    * `dimensions`: asked for, and expected. Without it the first answer tells. `send_dimensions=False` only expects
      it, for models that can't be asked.
    * `query_prefix`, `passage_prefix`: put before each text, as the model was trained.
    * `model_id`: replaces the identity that is made of the model's name and the prefixes. The server is no part of it,
      nor are dimensions, which a file keeps by themselves.
    * `batch_size` texts and `batch_tokens` estimated tokens are a request; `max_in_flight` requests run at a time, and
      `min_interval` seconds lie between the starts of two. Queries do not wait for that.
    * `max_tokens`: of one text. Chunks are cut to half of it, as an estimate may be off by two. A longer text, which
      only a query can be, is embedded in up to 8 pieces, whose mean is returned. Nothing is cut off.
    * `timeout`: seconds that a request may take. `query_timeout`: seconds for a query with all its retries.
    * `retries`: how often a request is repeated that failed by a hitch of the network or the server, after `backoff`
      seconds, twice as long each time, or what the server asks for.

    Vectors are float32 of length 1. Threads may share an embedder, and a forked child may go on with it. `close` it, or
    use it in a `with` block; a `Memory` does not close it.

    What `embed_passages` raises: PartlyEmbeddedError, which holds the vectors of the other texts, if some texts were
    refused or failed; TextRefusedError if it was the only text; EmbedderUnavailableError if no vector came and no text
    is at fault; ClosedError after `close`. No message holds a key or a text, unless the server alters what it echoes.

    Raises InvalidInputError for arguments that make no sense, and if the provider wants a key and there is none.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        provider: ProviderName | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        style: Style | None = None,
        dimensions: int | None = None,
        send_dimensions: bool = True,
        query_prefix: str = "",
        passage_prefix: str = "",
        model_id: str | None = None,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        max_tokens: int | None = None,
        max_in_flight: int | None = None,
        min_interval: float | None = None,
        timeout: float = 30.0,
        query_timeout: float = 10.0,
        retries: int | None = None,
        backoff: float = 0.5,
    ) -> None:
        known = find_provider(provider, base_url)
        name = find_model(model, known)
        self._spec = HttpSpec(
            model=name,
            base_url=check_url(_given(base_url, known.base_url or "")),
            style=_given(style, known.style),
            headers=make_headers(api_key, headers, known.key_variables),
            dimensions=dimensions if dimensions is not None or name != known.model else known.dimensions,
            send_dimensions=send_dimensions,
            query_prefix=query_prefix,
            passage_prefix=passage_prefix,
            batch_size=_given(batch_size, known.batch_size),
            batch_tokens=_given(batch_tokens, known.batch_tokens),
            max_tokens=_given(max_tokens, known.max_tokens),
            max_in_flight=_given(max_in_flight, known.max_in_flight),
            min_interval=_given(min_interval, known.min_interval),
            timeout=timeout,
            query_timeout=query_timeout,
            retries=_given(retries, known.retries),
            backoff=backoff,
        )
        self._connect(model_id or _identify(self._spec))

    def _connect(self, model_id: str) -> None:
        from .exchange import Link

        self._model_id = model_id
        self._link = Link.begin(self._spec)
        self._transports: dict[int, ThreadTransport] = {}  # by process: a child must not use its parent's connections
        self._loops: dict[AbstractEventLoop, LoopTransport] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model_id!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def model_id(self) -> str:
        """The model's name and prefixes: what makes vectors comparable."""
        return self._model_id

    @property
    def knows_dimensions(self) -> bool:
        """Whether `dimensions` can be told without a request."""
        return self._link.dimensions is not None

    @property
    def dimensions(self) -> int:
        """The length of a vector; the first look may cost one small request. Raises EmbedderUnavailableError."""
        if self._link.dimensions is None:
            self.embed_queries(["dimensions"])
        return self._link.dimensions or 0

    @property
    def call_size(self) -> int:
        """How many texts one call is best given: as many as can be in flight at once."""
        return min(_MOST_AT_ONCE, self._spec.batch_size * self._spec.max_in_flight)

    @property
    def window(self) -> int:
        """The number of estimated tokens of a passage that one vector can hold."""
        from .exchange import find_window

        return find_window(self._spec, self._spec.passage_prefix)

    def token_spans(self, text: str) -> list[Span]:
        """Return the character offsets of estimated tokens of `text`, in order."""
        return estimate_tokens(text)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to be stored, shape (len(texts), dimensions). Raises EmbeddingError."""
        return self._embed(texts, "passage")

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to search with, shape (len(texts), dimensions). Raises EmbeddingError."""
        return self._embed(texts, "query")

    async def aembed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return what `embed_passages` does, with asyncio."""
        return await self._aembed(texts, "passage")

    async def aembed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return what `embed_queries` does, with asyncio."""
        return await self._aembed(texts, "query")

    def close(self) -> None:
        """Close the connections of this process. Calls that still run, and later ones, raise ClosedError."""
        self._closed = True
        for transport in list(self._transports.values()):
            transport.close()

    async def aclose(self) -> None:
        """Close as `close` does, and the connections of the running event loop as well."""
        import asyncio

        self.close()
        transport = self._loops.pop(asyncio.get_running_loop(), None)
        if transport is not None:
            await transport.close()

    def _embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        call = self._begin(texts, kind)
        batches = call.batches()
        if batches:
            self._open_transport().run(call, batches)
        return call.finish()

    async def _aembed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        call = self._begin(texts, kind)
        batches = call.batches()
        if batches:
            await self._open_loop().run(call, batches)
        return call.finish()

    def _begin(self, texts: Sequence[str], kind: Kind) -> Call:
        from .exchange import Call

        if isinstance(texts, str):
            raise InvalidInputError("one text was given where a list of texts is wanted; put it in brackets")
        self._check_open()
        return Call(self._spec, self._link, texts, kind)

    def _open_transport(self) -> ThreadTransport:
        from .transport import ThreadTransport

        process = os.getpid()
        for parent in self._transports.keys() - {process}:
            self._transports.pop(parent, None)
        return self._transports.setdefault(process, ThreadTransport(self._spec, self._link))

    def _open_loop(self) -> LoopTransport:
        import asyncio

        from .transport import LoopTransport

        for known in [known for known in self._loops if known.is_closed()]:
            self._loops.pop(known, None)
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            self._loops[loop] = LoopTransport(self._spec, self._link)
        return self._loops[loop]

    def _check_open(self) -> None:
        if self._closed:
            from .transport import closed_error

            raise closed_error()


def _given(value: Value | None, otherwise: Value) -> Value:
    return otherwise if value is None else value


def _identify(spec: HttpSpec) -> str:
    parts = [spec.model]
    if spec.style == "cohere":
        parts.append("input types")
    if spec.query_prefix or spec.passage_prefix:
        parts.append(json.dumps([spec.query_prefix, spec.passage_prefix], ensure_ascii=False))
    return " ".join(parts)
