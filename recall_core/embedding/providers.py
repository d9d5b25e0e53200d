"""Who can be asked for vectors over HTTP, and with which limits: a table of providers, and what a caller changes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from recall_core.errors import InvalidInputError

from ..patterns import compile_late

Style = Literal["auto", "openai", "cohere", "ark_multimodal"]
ProviderName = Literal["openai", "ollama", "siliconflow", "dashscope", "cohere", "ark"]

STYLES = ("auto", "openai", "cohere", "ark_multimodal")
_HEADER_VALUE = compile_late(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_HEADER_NAME = compile_late(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SHORTEST_KEY = 6  # characters
_HARMLESS_QUERY = {"api-version"}  # what Azure wants; anything else may be a key, which httpx would write to its log


class Secret:
    """A key: usable, but never shown by accident, in a repr, a traceback's locals or a log."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "'***'"

    def __reduce__(self) -> str:
        raise TypeError("an embedder with a key is neither copied nor pickled; make one where it is needed")

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What is known of a provider. Its limits are those of its documentation or below them."""

    base_url: str | None = None
    key_variables: Sequence[str] = ()  # of the environment; the first that is set counts
    model: str | None = None  # used where the caller names none
    dimensions: int | None = None  # asked for with that model
    style: Style = "auto"
    batch_size: int = 32  # texts a request
    batch_tokens: int = 16_384  # estimated tokens a request
    max_tokens: int = 2048  # of one text
    max_in_flight: int = 4
    min_interval: float = 0.0
    retries: int = 3


CUSTOM = Provider()
PROVIDERS: Mapping[ProviderName, Provider] = {
    "openai": Provider(
        base_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        model="text-embedding-3-small",
        batch_size=128,
        batch_tokens=65_536,
        max_tokens=8192,
    ),
    "ollama": Provider(base_url="http://localhost:11434/v1", model="bge-m3", max_in_flight=2),
    "siliconflow": Provider(
        base_url="https://api.siliconflow.cn/v1",
        key_variables=("SILICONFLOW_API_KEY",),
        model="BAAI/bge-m3",
        max_tokens=512,  # of its models except bge-m3
    ),
    "dashscope": Provider(
        base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
        key_variables=("DASHSCOPE_API_KEY",),
        model="text-embedding-v4",
        batch_size=10,
        batch_tokens=8192,
    ),
    "cohere": Provider(
        base_url="https://api.cohere.com/v2",
        key_variables=("COHERE_API_KEY", "CO_API_KEY"),
        model="embed-v4.0",
        style="cohere",
        batch_size=96,
        max_tokens=512,  # of embed-*-v3.0
    ),
    # The numbers of the system that recall_core follows here: 5 a batch, 200 ms apart, 2 retries.
    "ark": Provider(
        base_url="https://ark.cn-beijing.volces.com/api/coding/v3",
        key_variables=("ARK_API_KEY",),
        model="doubao-embedding-vision",
        dimensions=2048,
        batch_size=5,
        batch_tokens=4096,
        max_tokens=4096,
        min_interval=0.2,
        retries=2,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSpec:
    """How to ask one model for vectors, checked and complete."""

    model: str
    base_url: str
    style: Style
    headers: Mapping[str, Secret] = field(repr=False)
    dimensions: int | None
    send_dimensions: bool
    query_prefix: str
    passage_prefix: str
    batch_size: int
    batch_tokens: int
    max_tokens: int
    max_in_flight: int
    min_interval: float
    timeout: float
    query_timeout: float
    retries: int
    backoff: float

    def __post_init__(self) -> None:
        for name in ("batch_size", "batch_tokens", "max_tokens", "max_in_flight"):
            self._check(name, 1, whole=True)
        if self.dimensions is not None:
            self._check("dimensions", 1, whole=True)
        self._check("retries", 0, whole=True)
        for name in ("timeout", "query_timeout"):
            self._check(name, 0.001)
        for name in ("min_interval", "backoff"):
            self._check(name, 0)
        if self.style not in STYLES:
            raise InvalidInputError(f"style is {self.style!r}; it must be one of {', '.join(STYLES)}")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown. A word like "EMPTY", which some local servers want as a key, is none."""
        keys = {secret.reveal().removeprefix("Bearer ") for secret in self.headers.values()}
        return tuple(sorted((key for key in keys if len(key) >= _SHORTEST_KEY), key=len, reverse=True))

    def _check(self, name: str, least: float, *, whole: bool = False) -> None:
        value = getattr(self, name)
        number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not number or not least <= value < float("inf"):
            kind = "a whole number" if whole else "a number"
            raise InvalidInputError(f"{name} is {value!r}; it must be {kind} of at least {least}")


def find_provider(name: str | None, base_url: str | None) -> Provider:
    """Return what is known of a provider. Raises InvalidInputError for an unknown one, and for none without a URL."""
    if name is None:
        if base_url is None:
            raise InvalidInputError(
                f"neither provider nor base_url is given; name a provider ({', '.join(PROVIDERS)}) or give the URL of "
                "a server with an OpenAI-compatible /embeddings, as in base_url='http://localhost:8000/v1'"
            )
        return CUSTOM
    for known, provider in PROVIDERS.items():
        if known == name:
            return provider
    raise InvalidInputError(f"provider is {name!r}; known are {', '.join(PROVIDERS)}. Others work by base_url=")


def find_model(model: str | None, provider: Provider) -> str:
    """Return the model that is meant. Raises InvalidInputError if none is."""
    chosen = model if model is not None else provider.model
    if not isinstance(chosen, str) or not chosen.strip():
        raise InvalidInputError(f"model is {chosen!r}; give the name of the embedding model, as the server knows it")
    return chosen.strip()


def check_url(url: str) -> str:
    """Return a base URL without a slash at its end.

    Raises InvalidInputError, without showing the URL, if it is none or if there may be a key in it.
    """
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except (AttributeError, ValueError):
        usable = False
    if not usable:
        raise InvalidInputError("base_url is no http or https URL; give one like 'https://api.example.com/v1'")
    if "@" in parts.netloc or not {name.lower() for name, _ in parse_qsl(parts.query, True)} <= _HARMLESS_QUERY:
        raise InvalidInputError(
            f"base_url of {parts.hostname} has a user name or a query in it, which may be secret and would be logged; "
            "give the key as api_key= or in headers="
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), parts.query, ""))


def make_headers(
    api_key: str | None, headers: Mapping[str, str] | None, variables: Sequence[str]
) -> Mapping[str, Secret]:
    """Return the headers that carry keys: the argument's, else the environment's.

    Raises InvalidInputError, without showing them, if a key is missing or can't be sent.
    """
    made = {_check_name(name): Secret(_check_value(value, f"header {name}")) for name, value in (headers or {}).items()}
    key = api_key
    if key is None:
        key = next((os.environ[name] for name in variables if os.environ.get(name, "").strip()), None)
    if key is None and variables and not made:
        raise InvalidInputError(f"there is no key: set {' or '.join(variables)} in the environment, or give api_key=")
    if key:
        made["Authorization"] = Secret(f"Bearer {_check_value(key, 'API key')}")
    return made


def _check_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise InvalidInputError(f"{name!r} is no name of an HTTP header; give one like 'api-key'")
    return name


def _check_value(value: str, what: str) -> str:
    # Here, since httpx shows the whole value in its complaint.
    stripped = value.strip() if isinstance(value, str) else ""
    if not _HEADER_VALUE.fullmatch(stripped):
        raise InvalidInputError(f"the {what} is empty or has characters that no HTTP header can have; copy it again")
    return stripped
