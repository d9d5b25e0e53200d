"""Each command of maintenance is killed (-9) ten times, at moments spread over its work: the file stays good, nothing
is half done that must be whole, and the same command finishes.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import sys
from collections import Counter

import pytest
from maintenance_support import WORKS, Killer, find_term, found
from store_support import beside, embedder, faults, use_small_index, vector_faults

from recall_core import Memory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9 and no fork")

KILLS = 10
WORD = "灰度发布平台"
SIZES = {f"old{number}": 1 + number % 7 for number in range(30)}  # messages of sessions that are to go


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Return a file with much to do: old sessions and records, free pages, spoiled terms and codes."""
    path = tmp_path_factory.mktemp("pristine") / "memory.db"
    with pytest.MonkeyPatch.context() as patch, Memory.open(path, embedder=embedder()) as memory:
        use_small_index(patch)
        memory.add_many({"text": f"to be deleted {number}"} for number in range(300))
        memory.add_many(
            {"text": f"message {place} of {name}", "session": name, "role": "user", "created_at": "2001-01-01"}
            for name, size in SIZES.items()
            for place in range(size)
        )
        memory.add_many({"text": f"old {number}", "created_at": "2001-01-01"} for number in range(100))
        memory.add_many(
            {
                "text": f"note {number}: {WORD if number % 10 == 0 else '部署'} {number * 7919 % 104729}",
                "id": f"n{number}",
            }
            for number in range(300)
        )
        memory.delete([record.id for record in memory.records(limit=300)], hard=True)
    spoiled = "UPDATE chunk SET latin = 'spoiled', grams = '', words = '', labels = '' WHERE key % 2"
    beside(path, spoiled, "UPDATE code_page SET codes = zeroblob(length(codes)) WHERE number % 2")
    assert faults(path) == []
    return path


def look(path):
    """Return what has to be the same however often a command was killed before it finished."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [
            sorted(connection.execute(sql).fetchall())
            for sql in (
                "SELECT id, text, scope, session, created_at FROM record",
                "SELECT id, text, session FROM trash",
                "SELECT record.id, chunk.place, start, stop, latin, grams, words, labels FROM chunk JOIN record "
                "ON record.key = record_key",
                "SELECT record.id, vector FROM embedding JOIN chunk ON chunk.key = chunk_key JOIN record "
                "ON record.key = record_key",
                "SELECT word FROM dictionary",
                "SELECT key FROM meta WHERE key <> 'deleted_terms'",
            )
        ]


def whole_sessions(path):
    """Tell whether each session is there as a whole, or is as a whole in the trash or gone."""
    for table in ("record", "trash"):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(f"SELECT session FROM {table} WHERE session IS NOT NULL").fetchall()
        if any(SIZES[name] != count for name, count in Counter(name for (name,) in rows).items()):
            return False
    return True


@pytest.fixture(scope="module", params=WORKS)
def killer(request):
    with Killer(request.param) as killer:
        yield killer


def test_a_killed_command_leaves_a_good_file_and_finishes_when_run_again(killer, pristine, tmp_path, monkeypatch):
    use_small_index(monkeypatch)
    work = killer.work
    expected = tmp_path / "expected.db"
    shutil.copy(pristine, expected)
    killed, moments = killer.run(expected)
    assert not killed
    assert moments >= 2 * KILLS
    begun = 0
    for number in range(KILLS):
        path = tmp_path / f"{number}.db"
        shutil.copy(pristine, path)
        killed, _ = killer.run(path, 1 + number * (moments - 1) // (KILLS - 1))
        begun += killed
        assert faults(path) == []
        assert whole_sessions(path)
        copy = path.with_name(f"{path.name}.copy")
        assert not copy.exists() or faults(copy) == []
        killer.run(path)
        assert faults(path) == []
        assert look(path) == look(expected)
        assert path.stat().st_size <= expected.stat().st_size * (1.05 if work == "vacuum" else 2)
        with Memory.open(path, embedder=embedder()) as memory:
            assert memory.flush() == 0
            assert work != "reindex" or vector_faults(memory) == []
            assert len(found(memory)[1]) == 20
        if work == "backup":
            assert faults(copy) == []
            assert look(copy) == look(pristine)
    assert begun >= KILLS - 2  # the last moments may come a little later in another run, or not at all
    assert [file.name for file in tmp_path.iterdir() if "partial" in file.name] == []
    assert work != "dict add" or len(find_term(path, WORD)) == 30
