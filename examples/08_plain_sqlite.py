"""The file belongs to you: read it, add to it, change it and delete from it with Python's own sqlite3."""

import array
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from recall_core import Memory

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "agent.db"
    with Memory.open(path) as memory:
        memory.add("The build cache lives on /mnt/cache.", tags=["build"])
        memory.add("The old cache server is called atlas.")

    with closing(sqlite3.connect(path)) as connection, connection:
        for text, tags in connection.execute("SELECT text, tags FROM record ORDER BY key"):
            print("read:", text, tags)
        blob = connection.execute("SELECT vector FROM embedding").fetchone()[0]
        vector = array.array("f", blob)  # float32, little-endian
        if sys.byteorder == "big":
            vector.byteswap()
        print(f"a vector: {len(vector)} numbers, length {sum(x * x for x in vector) ** 0.5:.3f}")

        connection.execute("INSERT INTO record(text, scope) VALUES ('新的缓存服务器叫 boreas', 'user/42')")
        connection.execute("UPDATE record SET text = replace(text, '/mnt/cache', '/srv/cache')")
        connection.execute("DELETE FROM record WHERE text LIKE '%atlas%'")

    with Memory.open(path) as memory:  # takes up what changed: cut, indexed, embedded
        print("still to embed:", memory.flush())
        for question in ("缓存服务器叫什么", "/srv/cache", "atlas"):
            hits = memory.search(question, min_relevance=0.3)
            print(f"{question}: {[hit.record.text for hit in hits]}")
