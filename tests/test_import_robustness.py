"""Whatever stands where in a file: what can be read is stored, the rest is told, and nothing else happens."""

from __future__ import annotations

import copy
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import HashedEmbedder
from test_transfer_chatgpt import CONVERSATION, SHORT
from test_transfer_claude_code import LINES
from test_transfer_mem0 import LIBRARY, PLATFORM
from transfer_support import export_bytes

from recall_core import Memory
from recall_core.errors import InvalidInputError

ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.just("x" * 600)
    | st.just("a\n/b"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def make_export():
    with Memory.open(":memory:", embedder=HashedEmbedder(4)) as memory:
        memory.add_words("灰度")
        one = memory.add("部署", id="a", session="s", role="user", tags=["t"], metadata={"k": 1}, ttl=10**9)
        memory.link(one.id, memory.add("other", id="b", payload=[1]).id, "kind")
        memory.session("s", title="title")
        memory.flush()
        return [json.loads(line) for line in export_bytes(memory, vectors=True).splitlines()]


DOCUMENTS = {
    "recall": make_export(),
    "jsonl": [{"text": "x", "id": "a", "tags": ["t"], "metadata": {"k": 1}, "time": "2026-01-01"}, {"text": "y"}],
    "mem0": [LIBRARY, *PLATFORM],
    "chatgpt": [CONVERSATION, SHORT],
    "claude-code": LINES,
}


def paths(value, path=()):
    """Yield the places of all values in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


PLACES = {name: [path for path in paths(document) if path] for name, document in DOCUMENTS.items()}


@pytest.mark.parametrize("name", DOCUMENTS)
@settings(max_examples=25)
@given(data=st.data())
def test_odd_values_cost_nothing_else(name, data):
    document = copy.deepcopy(DOCUMENTS[name])
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(PLACES[name]))
        place = document
        try:
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = data.draw(ODD)
        except (KeyError, IndexError, TypeError):  # it lies in what was replaced before
            continue
    raw = "".join(json.dumps(line) + "\n" for line in document).encode()
    with Memory.open(":memory:", embedder=None) as memory:
        try:
            imported = memory.import_(io.BytesIO(raw), format=name)
        except InvalidInputError:
            assert memory.count() == 0
            return
        assert memory.count() == imported.added
        again = memory.import_(io.BytesIO(raw), format=name, on_duplicate="skip")
        assert again.added == 0


@settings(max_examples=25)
@given(st.lists(ODD, max_size=4), st.sampled_from(["s", None, "", "a\nb", "x" * 600, 7]))
def test_odd_rows_cost_nothing_else(tmp_path_factory, values, session):
    path = tmp_path_factory.mktemp("odd") / "history.db"
    rows = [(session, json.dumps(value)) for value in values]
    rows += [(session, json.dumps({"type": value, "data": {"content": value, "role": value}})) for value in values]
    rows.append((session, json.dumps({"type": "human", "data": {"content": "good"}})))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id, message TEXT)")
        connection.executemany("INSERT INTO message_store (session_id, message) VALUES (?, ?)", rows)
    with Memory.open(":memory:", embedder=None) as memory:
        imported = memory.import_(path)
        assert imported.added + imported.failed + sum(imported.skipped.values()) == len(rows)
        assert "good" in [record.text for record in memory.records()]


@pytest.mark.skipif(os.name != "posix", reason="signals differ elsewhere")
@pytest.mark.parametrize("after", [1, 3])
def test_an_import_that_is_killed_is_completed_by_another(tmp_path, after):
    file, db = tmp_path / "lines.jsonl", tmp_path / "memory.db"
    file.write_text(
        "".join(json.dumps({"id": f"{number:05}", "text": f"note {number}"}) + "\n" for number in range(4000))
    )
    code = (  # half-way it waits to be killed
        "import sys; from recall_core import Memory; memory = Memory.open(sys.argv[1], embedder=None);"
        "tell = lambda done: (print(done, flush=True), done > 2000 and sys.stdin.read());"
        "memory.import_(sys.argv[2], batch=20, progress=tell)"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code, str(db), str(file)], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        for _ in range(after):
            process.stdout.readline()
        time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    with Memory.open(db, embedder=None) as memory:
        before = memory.count()
        assert 20 * after <= before < 4000
        assert before % 20 == 0
        again = memory.import_(file, on_duplicate="skip")
        assert (again.added, again.present, memory.count()) == (4000 - before, before, 4000)
