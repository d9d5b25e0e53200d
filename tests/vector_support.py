"""What the tests of the vector indexes share: a memory with one of them, and what a plain comparison finds."""

from __future__ import annotations

import numpy as np
from store_support import read_codes
from support import NOW, FixedClock

from recall_core import Memory
from recall_core.filters import make_selection
from recall_core.store.nearest import CodeIndex, ExactIndex

D = 12
HOST = "host"
INDEX_FROM = 20
MARGIN = 100


def exact(database):
    return ExactIndex(database)


def coded(database):
    return CodeIndex(database, index_from=INDEX_FROM)


def open_with(path, make_index):
    with Memory.open(path, embedder=None, clock=FixedClock()) as memory:
        store = memory._engine.store
        store.index = make_index(store.database)
        yield memory


def make_vectors(rng, count, dimensions=D):
    """Return vectors of all lengths, shape (count, dimensions)."""
    directions = rng.normal(size=(count, dimensions))
    return (directions * rng.uniform(0.01, 100, (count, 1))).astype(np.float32)


def add(memory, ids, vectors, *, space=HOST, **arguments):
    memory.add_many(
        {"text": f"text {id}", "id": id, "vector": vector, "space": space} | arguments
        for id, vector in zip(ids, vectors, strict=True)
    )


def add_expired(memory, ids, vectors):
    """Add records that have expired by now."""
    clock = memory._engine.clock
    clock.advance(-60)
    add(memory, ids, vectors, ttl=30)
    clock.advance(60)


def names(prefix, count):
    return [f"{prefix}{number:03}" for number in range(count)]


def select(**arguments):
    return make_selection(now=NOW, **arguments)


def find(memory, query, selection=None, limit=5, space=HOST):
    """Return the ids of the records nearest to a query, best first.

    As the library does, this asks for more than it wants and sorts by the vectors: a dozen bits tell little.
    """
    found = ask(memory, query, selection, max(limit, MARGIN), space).keys
    assert len(found) == len(set(found))
    return sort_keys(memory, found, query, space)[:limit]


def ask(memory, query, selection=None, limit=5, space=HOST):
    store = memory._engine.store
    return store.index.nearest(store.vectors.find_space(space), query, selection or select(), limit)


def sort_keys(memory, chunk_keys, query, space=HOST):
    """Return the ids of the records of chunks, best first."""
    store = memory._engine.store
    ids = {key: record.id for key, (record, _) in store.candidates.hydrate(chunk_keys).items()}
    keys, vectors = store.vectors.load(store.vectors.find_space(space), chunk_keys)
    assert set(keys) == set(chunk_keys)
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1)
    return [ids[keys[place]] for place in np.argsort(-cosines, kind="stable")]


def expect(vectors, query, limit=5):
    """Return what `find` has to, from vectors by id, by comparing all of them."""
    cosines = {id: vector @ query / np.linalg.norm(vector) for id, vector in vectors.items()}
    return sorted(cosines, key=lambda id: -cosines[id])[:limit]


def refresh(memory, space=HOST):
    store = memory._engine.store
    while store.index.refresh(store.vectors.find_space(space)):
        pass


def read(memory, sql):
    with memory._engine.store.database.read() as connection:
        return connection.execute(sql).fetchall()


def write(memory, sql):
    with memory._engine.store.database.write() as connection:
        connection.execute(sql)


def coded_keys(memory, space=1):
    with memory._engine.store.database.read() as connection:
        return read_codes(connection, space, D)
