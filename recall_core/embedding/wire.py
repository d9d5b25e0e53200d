"""What is sent to an embedding server and what its answers mean, for each of the shapes that servers have.

Sources: OpenAI's API reference (embeddings), Cohere's (v2/embed), Volcano Ark's (embeddings, multimodal embeddings and
its list of error codes).
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from ..patterns import compile_late
from .providers import HttpSpec, Style

Kind = Literal["passage", "query"]

_TAILS = {"openai": "/embeddings", "cohere": "/embed", "ark_multimodal": "/embeddings/multimodal"}
_INPUT_TYPES = {"passage": "search_document", "query": "search_query"}
_SURROGATES = compile_late("[\ud800-\udfff]")
_LONGEST_MESSAGE = 5000  # characters of a server's own words; they are shortened after secrets are taken out

# Codes are compared without case and punctuation.
_REFUSING_CODES = (
    "sensitivecontentdetected",
    "riskdetection",
    "contentfilter",
    "contentpolicyviolation",
    "responsibleaipolicyviolation",
    "datainspectionfailed",
)
_QUOTA_CODES = ("quotaexceeded", "setlimitexceeded", "insufficientquota", "billing", "arrearage")
_SETTING_CODES = (
    "invalidsubscription",
    "unsupportedmodel",
    "modelnotopen",
    "modelnotfound",
    "invalidendpointormodel",
    "accountoverdue",
    "accessdenied",
    "authentication",
    "invalidapikey",
    "arrearage",
)
_TOO_LONG = compile_late(
    r"context.?length|too long|too many tokens|(token|length|size|input)\b.{0,60}\b(exceed|limit|maximum|larger than)"
    r"|exceed.{0,40}\b(token|length)",
    re.IGNORECASE | re.DOTALL,
)
_RETRIED = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
_ABOUT_INPUT = {400, 413, 422}


class Verdict(enum.Enum):
    """What to do about a request that brought no vectors."""

    RETRY = "the server or the way to it has a hitch"
    WAIT = "a quota is used up; trying again at once would not help"
    SETTING = "a key, a model or a setting is wrong; only the owner can help"
    TEXT = "a text is refused"
    DOUBT = "the input is refused; it may be a text or a setting"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a request: an answer, or `broken`, which says why there is none."""

    status: int = 0
    body: bytes = b""
    retry_after: float | None = None
    broken: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request brought no vectors, in a server's words as far as it had any."""

    verdict: Verdict
    message: str
    status: int = 0
    code: str = ""
    retry_after: float | None = None


def starting_style(spec: HttpSpec) -> Style:
    """Return the shape to begin with where the caller left it open: the URL's, else OpenAI's."""
    if spec.style != "auto":
        return spec.style
    return "ark_multimodal" if urlsplit(spec.base_url).path.endswith("/multimodal") else "openai"


def make_url(base_url: str, style: Style) -> str:
    """Return the URL to post to: the base with the path of a style, unless it ends with it already."""
    parts = urlsplit(base_url)
    path = parts.path
    tail = _TAILS[style]
    if not path.endswith(tail):
        path = path.removesuffix(_TAILS["openai"]) + tail
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def make_body(spec: HttpSpec, style: Style, texts: Sequence[str], kind: Kind) -> bytes:
    """Return the JSON to post for texts, one only in the style "ark_multimodal"."""
    cleaned = [_SURROGATES.sub("\ufffd", text) for text in texts]  # half a pair can't be encoded
    body: dict[str, Any] = {"model": spec.model}
    wanted = spec.dimensions if spec.send_dimensions else None
    if style == "cohere":
        body |= {"texts": cleaned, "input_type": _INPUT_TYPES[kind], "embedding_types": ["float"], "truncate": "NONE"}
        if wanted is not None:
            body["output_dimension"] = wanted
    else:
        as_parts = style == "ark_multimodal"
        body["input"] = [{"type": "text", "text": text} for text in cleaned] if as_parts else cleaned
        if wanted is not None:
            body["dimensions"] = wanted
    return json.dumps(body, ensure_ascii=False).encode("utf-8")


def wants_multimodal(spec: HttpSpec, style: Style, failure: Failure) -> bool:
    """Tell whether a refusal means that Ark's vision model is to be asked in its own shape."""
    if spec.style != "auto" or style != "openai" or "embedding-vision" not in spec.model:
        return False
    code = _plain(failure.code)
    return failure.status == 404 or (failure.status == 400 and ("invalidparameter" in code or "notfound" in code))


def read_reply(reply: Reply, count: int) -> list[Any] | Failure:
    """Return the raw vectors of an answer, one for each of `count` texts in their order, or why there are none."""
    if reply.broken is not None:
        return Failure(Verdict.RETRY, reply.broken)
    if not 200 <= reply.status < 300:
        return _read_error(reply)
    try:
        answer = json.loads(reply.body)
    except (ValueError, RecursionError):
        if reply.body.lstrip()[:1] in (b"{", b"["):
            return Failure(Verdict.RETRY, f"the answer is cut off or damaged after {len(reply.body)} bytes")
        return Failure(
            Verdict.WAIT, "the answer is a page of text, not JSON; is base_url right, or a proxy in the way?"
        )
    return _read_vectors(answer, count)


def _read_vectors(answer: Any, count: int) -> list[Any] | Failure:
    if not isinstance(answer, dict):
        return _no_vectors("the answer is no JSON object")
    if "data" in answer or "embeddings" not in answer:
        found = answer.get("data")
        if isinstance(found, dict):
            found = [found]
        if not isinstance(found, list) or not found:
            if "error" in answer or "message" in answer:
                return _read_error(Reply(500, json.dumps(answer).encode()))
            return _no_vectors("the answer has no vectors in `data`")
        found = _sort(found)
    else:
        found = answer["embeddings"]
        found = found.get("float") if isinstance(found, dict) else found
    if not isinstance(found, list):
        return _no_vectors("the answer has no list of vectors, or its `index` fields are not 0, 1, 2 …")
    if len(found) != count:
        fused = "; it fuses them into one, so set style='ark_multimodal'" if len(found) == 1 else ""
        return _no_vectors(f"{count} texts were sent and {len(found)} vectors came back{fused}")
    return found


def _sort(items: Sequence[Any]) -> list[Any] | None:
    if not all(isinstance(item, dict) for item in items):
        return None
    indexes = [item.get("index") for item in items]
    if any(index is not None for index in indexes) and len(items) > 1:
        if not all(type(index) is int for index in indexes) or sorted(indexes) != list(range(len(items))):
            return None
        items = sorted(items, key=lambda item: int(item["index"]))
    return [item.get("embedding") for item in items]


def _no_vectors(message: str) -> Failure:
    return Failure(Verdict.SETTING, message)


def _read_error(reply: Reply) -> Failure:
    code, message = _read_words(reply.body)
    verdict = _judge(reply.status, _plain(code), message)
    words = ": ".join(filter(None, [code, message[:_LONGEST_MESSAGE]]))
    return Failure(
        verdict, f"status {reply.status}{f' ({words})' if words else ''}", reply.status, code, reply.retry_after
    )


def _judge(status: int, code: str, message: str) -> Verdict:
    if status in (401, 402):
        return Verdict.SETTING
    if status != 429 and _has(code, _REFUSING_CODES):
        return Verdict.TEXT
    if _has(code, _QUOTA_CODES) and status == 429:
        return Verdict.WAIT
    if status in _ABOUT_INPUT:
        if _has(code, _SETTING_CODES):
            return Verdict.SETTING
        return Verdict.TEXT if status == 413 or _TOO_LONG.search(message) else Verdict.DOUBT
    if status == 500 and re.search("context.?length", message, re.IGNORECASE):  # as Ollama says it
        return Verdict.TEXT
    return Verdict.RETRY if status in _RETRIED else Verdict.SETTING


def _read_words(body: bytes) -> tuple[str, str]:
    """Return the code and the message of an error, in any of the shapes that servers give them."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return "", ""  # a page of text says nothing that helps, and may be long
    error = answer.get("error", answer) if isinstance(answer, dict) else None
    if isinstance(error, str):
        return "", error
    if not isinstance(error, dict):
        return "", ""
    code = next((error[name] for name in ("code", "type") if error.get(name)), "")
    if "quota" in str(error.get("type")):  # OpenAI's; its code may be missing
        code = error["type"]
    message = next((error[name] for name in ("message", "detail", "msg") if isinstance(error.get(name), str)), "")
    return str(code), message


def _has(code: str, known: Sequence[str]) -> bool:
    return any(part in code for part in known)


def _plain(code: str) -> str:
    return re.sub(r"[^a-z0-9]", "", code.lower())
