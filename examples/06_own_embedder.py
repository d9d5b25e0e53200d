"""Another embedding model: any object with four members, vectors made elsewhere, or none at all."""

import tempfile
from pathlib import Path

import numpy as np

from recall_core import Memory, errors


class Trigrams:
    """Counts of character trigrams, hashed: no model, but texts that share letters are alike."""

    model_id = "trigrams-128 v1"  # names all that makes vectors comparable
    dimensions = 128

    def embed_passages(self, texts):
        vectors = np.full((len(texts), self.dimensions), 1e-3, dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for start in range(len(text) - 2):
                vector[sum(map(ord, text[start : start + 3])) % self.dimensions] += 1
        return vectors

    embed_queries = embed_passages


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "agent.db"
    with Memory.open(path, embedder=Trigrams()) as memory:
        memory.add("deployment of the services")
        memory.add("tea in the afternoon")
        print(memory.search("deployments", mode="semantic", limit=1)[0].record.text)

        # Vectors that you made elsewhere live in a space of their own; a search names one and never mixes them.
        memory.add("a picture of a heron", vector=[0.9, 0.1, 0.0], space="pictures")
        memory.add("a picture of a harbour", vector=[0.0, 0.2, 0.9], space="pictures")
        print(memory.search("", mode="semantic", vector=[1.0, 0.0, 0.1], space="pictures", limit=1)[0].record.text)
        print([(space.name, space.dimensions, space.vectors) for space in memory.stats().spaces])

    try:
        Memory.open(path)  # the model of the package did not make this file's vectors
    except errors.EmbedderMismatchError as error:
        print("refused:", str(error).partition("were made by ")[2].partition(".")[0])

    with Memory.open(path, embedder=None) as memory:  # keywords need no model
        hits = memory.search("tea")
        print(hits[0].record.text, "|", hits.mode, "|", hits.degraded)
