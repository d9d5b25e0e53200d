"""Shared parts of the tests of HttpEmbedder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from support import LIMIT

from recall_core import HttpEmbedder
from recall_core.errors import PartlyEmbeddedError

VARIABLES = [
    *("ARK_API_KEY", "CO_API_KEY", "COHERE_API_KEY", "DASHSCOPE_API_KEY", "OPENAI_API_KEY", "SILICONFLOW_API_KEY"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
]
TEXTS = [f"text {number}" for number in range(1000)]


def make(server, model="test-model", **changes) -> HttpEmbedder:
    """Return an embedder of a test server that waits next to nothing before it tries again."""
    given = {"base_url": server.url, "backoff": 0.001, "timeout": LIMIT, "query_timeout": LIMIT} | changes
    return HttpEmbedder(model, **given)


def are_of(vectors, server, texts: Sequence[str]) -> bool:
    """Tell whether vectors are those that the server makes of these texts, in their order."""
    return np.allclose(vectors, server.hashed.embed_passages(texts), atol=1e-6)


def embed_until_done(embedder, texts: Sequence[str]):
    """Embed texts as a caller does who asks again for what is missing; return their vectors."""
    found = {}
    while len(found) < len(texts):
        missing = [place for place in range(len(texts)) if place not in found]
        try:
            made = dict(enumerate(embedder.embed_passages([texts[place] for place in missing])))
        except PartlyEmbeddedError as error:
            made = error.vectors
        found |= {missing[place]: vector for place, vector in made.items()}
    return np.stack([found[place] for place in range(len(texts))])
