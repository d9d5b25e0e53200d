"""The stores that peers.py compares, each in its documented best configuration, behind the same five methods.

A store's packages are imported when it is opened, so that a process holds one store and no other. Vectors are given;
nothing asks the network.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from recall_core import NewRecord

# Set before a peer is imported: no telemetry, no downloads. mem0 wants some key for a language model it never calls.
QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "PYTHONWARNINGS": "ignore",
    "HF_HUB_OFFLINE": "1",
    "LANCEDB_LOG": "error",  # else a warning for each search
    "OPENAI_API_KEY": "not used",
}
LIMIT = 10


class Store(Protocol):
    """A memory store. A record belongs to one scope; a search is in one scope, or with None in all of them.

    `language` is "en" or "zh" (which may hold English, too), for stores that have to be told.
    """

    name: ClassVar[str]
    modules: ClassVar[tuple[str, ...]]  # what has to be installed; a user imports the first
    package: ClassVar[str]  # whose version is shown
    install: ClassVar[str]
    setup: ClassVar[str]

    def open(self, folder: Path, language: str) -> None: ...
    def add_many(self, records: Iterable[NewRecord]) -> None: ...
    def add(self, record: NewRecord) -> None: ...
    def search(self, text: str, vector: Sequence[float], scope: str | None) -> list[str]: ...
    def close(self) -> None: ...


class Recall(Store):
    name = "recall_core"
    modules = ("recall_core",)
    package = "dualrecall"
    install = "pip install dualrecall"
    setup = "hybrid by default settings, one chunk a text, a scope per case"

    def open(self, folder: Path, language: str) -> None:  # noqa: ARG002
        from recall_core import Memory, Settings

        # A text longer than a chunk would get more vectors than the one it was given.
        whole = Settings(chunk_size=100_000, chunk_unit="characters")
        self._memory = Memory.open(folder / "memory.db", embedder=_GivenSpace(), settings=whole)

    def add_many(self, records: Iterable[NewRecord]) -> None:
        self._memory.add_many(records)

    def add(self, record: NewRecord) -> None:
        self._memory.add_many([record])

    def search(self, text: str, vector: Sequence[float], scope: str | None) -> list[str]:
        hits = self._memory.search(text, vector=vector, scope=scope or "", limit=LIMIT)
        return [hit.record.id for hit in hits]

    def close(self) -> None:
        self._memory.close()


class Chroma(Store):
    name = "chroma"
    modules = ("chromadb",)
    package = "chromadb"
    install = "pip install chromadb"
    setup = "HNSW by cosine (ef 200, 32 neighbours), metadata filter; vectors alone: a local store has no hybrid search"

    def open(self, folder: Path, language: str) -> None:  # noqa: ARG002
        import chromadb

        self._client = chromadb.PersistentClient(folder, settings=chromadb.Settings(anonymized_telemetry=False))
        # Twice the defaults, as its guide advises for recall: the defaults miss up to one answer in a hundred.
        index = {"space": "cosine", "ef_construction": 200, "ef_search": 200, "max_neighbors": 32}
        self._collection = self._client.get_or_create_collection(
            "memories", embedding_function=None, configuration={"hnsw": index}
        )

    def add_many(self, records: Iterable[NewRecord]) -> None:
        for batch in _batches(records, self._client.get_max_batch_size()):
            self._collection.add(
                ids=[_id(record) for record in batch],
                documents=[spoken(record) for record in batch],
                metadatas=[{"scope": record.scope} for record in batch],
                embeddings=[record.vector for record in batch],
            )

    def add(self, record: NewRecord) -> None:
        self.add_many([record])

    def search(self, text: str, vector: Sequence[float], scope: str | None) -> list[str]:  # noqa: ARG002
        where = None if scope is None else {"scope": scope}
        # The documents are asked for since a memory's user wants them; the other stores return them anyway.
        found = self._collection.query(
            query_embeddings=[vector], n_results=LIMIT, where=where, include=["documents", "metadatas", "distances"]
        )
        return list(found["ids"][0])

    def close(self) -> None:
        self._client.close()


class Lance(Store):
    name = "lancedb"
    modules = ("lancedb", "numpy")
    package = "lancedb"
    install = "pip install lancedb"
    setup = "hybrid by RRFReranker: its FTS (tokenizer simple for English sets, else icu), exact vectors, prefilter"

    def open(self, folder: Path, language: str) -> None:
        import lancedb
        from lancedb.query import MatchQuery
        from lancedb.rerankers import RRFReranker

        self._db = lancedb.connect(folder)
        known = self._db.list_tables().tables
        self._table: Any = self._db.open_table("memories") if "memories" in known else None
        self._match, self._reranker = MatchQuery, RRFReranker()
        # Chinese has no spaces: "icu" cuts it into words and needs no model. Stems and stop words are the default.
        self._tokenizer = "simple" if language == "en" else "icu"

    def add_many(self, records: Iterable[NewRecord]) -> None:
        """Add all records at once, as advised: each call writes a version of the table. Then index the columns."""
        from lancedb.index import FTS, Bitmap

        listed = list(records)
        self._append(listed)
        self._table.create_index("text", config=FTS(base_tokenizer=self._tokenizer), replace=True)
        self._table.create_index("scope", config=Bitmap(), replace=True)
        self._table.optimize()

    def add(self, record: NewRecord) -> None:
        self._append([record])

    def search(self, text: str, vector: Sequence[float], scope: str | None) -> list[str]:
        # A MatchQuery takes any text as words; a bare string would read quotes as a phrase.
        query = self._table.search(query_type="hybrid").vector(vector).text(self._match(text, "text"))
        if scope is not None:
            quoted = scope.replace("'", "''")
            query = query.where(f"scope = '{quoted}'", prefilter=True)
        query = query.distance_type("cosine").rerank(self._reranker).limit(LIMIT).select(["id", "text"])
        return [row["id"] for row in query.to_list()]

    def close(self) -> None:
        del self._table, self._db  # there is no call for it

    def _append(self, records: Sequence[NewRecord]) -> None:
        import numpy as np
        import pyarrow as pa

        vectors = np.asarray([record.vector for record in records], dtype=np.float32)
        rows = pa.table(
            {
                "id": [_id(record) for record in records],
                "scope": [record.scope for record in records],
                "text": [spoken(record) for record in records],
                "vector": pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1]),
            }
        )
        if self._table is None:
            self._table = self._db.create_table("memories", data=rows)
        else:
            self._table.add(rows)


class Mem0(Store):
    name = "mem0"
    modules = ("mem0", "langchain.embeddings", "spacy", "en_core_web_sm", "fastembed")
    package = "mem0ai"
    install = "pip install mem0ai spacy fastembed 'langchain<1' && python -m spacy download en_core_web_sm"
    setup = "infer off, local Qdrant, user_id, vectors and its English BM25, no threshold"

    def open(self, folder: Path, language: str) -> None:  # noqa: ARG002
        os.environ["MEM0_DIR"] = str(folder)  # read when mem0 is imported; else it writes to the home folder
        from mem0 import Memory

        self._model = _given_vectors()
        store = {"path": str(folder / "qdrant"), "embedding_model_dims": 384, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "embedder": {"provider": "langchain", "config": {"model": self._model}},
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.vector_store._bm25_encoder = _bm25_encoder(folder)

    def add_many(self, records: Iterable[NewRecord]) -> None:
        """Add one by one: a call with several messages gives them all the same metadata."""
        for record in records:
            self.add(record)

    def add(self, record: NewRecord) -> None:
        self._model.vector = _floats(record.vector)
        self._memory.add(spoken(record), user_id=record.scope, metadata={"record": _id(record)}, infer=False)

    def search(self, text: str, vector: Sequence[float], scope: str | None) -> list[str]:
        self._model.vector = _floats(vector)
        # "*" is its documented wildcard; a search without any user, agent or run is refused.
        found = self._memory.search(text, filters={"user_id": scope or "*"}, top_k=LIMIT, threshold=0.0)
        return [hit["metadata"]["record"] for hit in found["results"]]

    def close(self) -> None:
        self._memory.close()
        self._memory.vector_store.client.close()


STORES: dict[str, type[Store]] = {store.name: store for store in (Recall, Chroma, Lance, Mem0)}


def missing_modules(store: type[Store]) -> list[str]:
    """Return what a store needs and is not installed."""
    return [name for name in store.modules if not _is_installed(name)]


def describe(store: type[Store]) -> str:
    """Return a store's name, version and configuration."""
    return f"{store.name} {version(store.package)}: {store.setup}"


def peak_megabytes() -> float:
    """Return the peak resident memory of this process; getrusage on Linux has that of the parent in it."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def spoken(record: NewRecord) -> str:
    """Return a text led by its speaker's name, where speakers have names: recall_core indexes it like that, too."""
    return f"{record.role}: {record.text}" if record.session is not None and record.role else record.text


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that the module lies in
        return False


def _id(record: NewRecord) -> str:
    assert record.id is not None
    return record.id


def _floats(vector: Sequence[float] | None) -> list[float]:
    assert vector is not None
    return [float(value) for value in vector]


def _batches(records: Iterable[NewRecord], size: int) -> Iterator[list[NewRecord]]:
    iterator = iter(records)
    while batch := list(islice(iterator, size)):
        yield batch


class _GivenSpace:
    """The space of the bundled model's vectors, for texts and queries that all have theirs."""

    model_id = "given"
    dimensions = 384

    def embed_passages(self, texts: Sequence[str]) -> Any:
        raise ValueError(f"{len(texts)} texts were given no vector")

    embed_queries = embed_passages

    def language_mean(self, language: str, kind: Literal["passage", "query"]) -> Any:
        from recall_core.embedding import load_bundled

        bundled: Any = load_bundled()  # shared, and its model stays unloaded
        return bundled.language_mean(language, kind)


def _given_vectors() -> Any:
    """Return a langchain embedder, one of mem0's providers, that answers with the vector it was last given.

    mem0 also embeds the names in a query, to look for memories linked to them. With infer off it links none.
    """
    from langchain.embeddings.base import Embeddings

    class GivenVectors(Embeddings):
        vector: list[float]

        def embed_query(self, text: str) -> list[float]:  # noqa: ARG002
            return self.vector

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.vector for _ in texts]

    return GivenVectors()


def _bm25_encoder(folder: Path) -> Any:
    """Return what mem0 would make itself, but with spaCy's stop words: its own list comes from a model hub."""
    from fastembed import SparseTextEmbedding
    from spacy.lang.en.stop_words import STOP_WORDS

    return SparseTextEmbedding("Qdrant/bm25", specific_model_path=str(folder), stopwords=set(STOP_WORDS))
