"""Deterministic embeddings with real lexical meaning (bag of characters), no network, no model."""

import hashlib
import math

from langchain_core.embeddings import Embeddings


class CharEmbeddings(Embeddings):
    def __init__(self, dims: int = 64):
        self.dims = dims

    def _one(self, text: str) -> list[float]:
        v = [0.0] * self.dims
        for c in text.lower():
            if c.strip():
                v[int(hashlib.md5(c.encode()).hexdigest(), 16) % self.dims] += 1.0
        n = math.sqrt(sum(x * x for x in v)) or 1.0
        return [x / n for x in v]

    def embed_documents(self, texts):
        return [self._one(t) for t in texts]

    def embed_query(self, text):
        return self._one(text)
