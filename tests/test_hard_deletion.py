"""What is deleted for good is gone from the file, the log and the log's index: its text and each of its words."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from store_support import faults, run_python, use_small_index, vector_faults
from support import HashedEmbedder

from recall_core import Memory, Settings
from recall_core.deletion import CLEARED_AT_CLOSE
from recall_core.store.integrity import keyword_index
from recall_core.store.integrity.access import MemoryAccess

SECRET = "zyxwolfram quartzpelican"
TEXT = f"The vault opens with {SECRET} on Fridays, 蓝鲸密码是玄武岩, ask Dana"
WORDS = [b"zyxwolfram", b"quartzpelican", b"quartzpel", "玄武岩".encode(), "武岩".encode(), "玄 武 岩".encode()]
FILLER = [f"note {number} about rockets number {number * number} 关于火箭的第{number}条" for number in range(300)]


def find_words(path: Path) -> set[bytes]:
    """Return which of WORDS stand in the raw bytes of the file, its log, or the log's index."""
    files = [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]
    raw = b"".join(file.read_bytes() for file in files if file.exists())
    return {word for word in WORDS if word in raw}


@pytest.fixture
def memory(db_path, clock):
    with Memory.open(db_path, embedder=HashedEmbedder(), clock=clock) as memory:
        memory.add_many({"text": text, "id": f"n{place}"} for place, text in enumerate(FILLER[:150]))
        memory.add(TEXT, id="secret", session="talk", metadata={"word": SECRET}, payload={"raw": [SECRET]}, tags=["x"])
        memory.add_many({"text": text, "id": f"n{place + 150}"} for place, text in enumerate(FILLER[150:]))
        yield memory


def forget(memory):
    return memory.forget(where={"@id": "secret"}, hard=True).count


DELETIONS = {
    "delete": lambda memory: memory.delete("secret", hard=True),
    "delete of what is in the trash": lambda memory: (memory.delete("secret"), memory.delete("secret", hard=True))[1],
    "forget": forget,
    "forget of what is in the trash": lambda memory: (memory.delete("secret"), forget(memory))[1],
    "delete of a session": lambda memory: memory.session("talk").delete(hard=True),
    "cleanup": lambda memory: memory.cleanup(below_importance=1, where={"@id": "secret"}, hard=True).unimportant,
}


@pytest.mark.parametrize("delete", DELETIONS.values(), ids=DELETIONS)
def test_no_word_of_what_was_deleted_for_good_is_left_in_the_open_file(db_path, memory, delete):
    assert find_words(db_path) >= {WORDS[0], WORDS[3]}
    assert delete(memory) == 1
    assert find_words(db_path) == set()
    assert (faults(db_path), vector_faults(memory)) == ([], [])
    assert memory.search("rockets number 900", mode="keyword")[0].record.id == "n30"


@pytest.mark.parametrize("seed", range(2))
def test_no_word_is_left_of_records_of_all_sizes_however_they_were_deleted(db_path, seed):
    rng = random.Random(seed)
    words = {str(number): "".join(rng.choices("bcdfghjklmnpqrstvwxz", k=12)) for number in range(200)}

    def make_text(id):
        size = rng.choice([1, 5, 20, 100, 600])
        return " ".join([words[id], *(f"word{rng.randrange(3000)}" for _ in range(size)), words[id]])

    gone: set[str] = set()
    with Memory.open(db_path, embedder=HashedEmbedder(8)) as memory:
        for first in range(0, 200, 50):
            ids = [str(number) for number in range(first, first + 50)]
            memory.add_many({"text": make_text(id), "id": id, "metadata": {"word": words[id]}} for id in ids)
        for size in (1, 40, 3):
            ids = rng.sample(sorted(words.keys() - gone), size)
            memory.delete(ids[: size // 2])
            memory.update(ids[-1], text="changed", metadata=None)
            memory.delete(ids, hard=True)
            gone.update(ids)
        raw = b"".join(path.read_bytes() for path in db_path.parent.iterdir())
    assert {id for id, word in words.items() if word.encode() not in raw} == gone


def test_a_session_in_the_trash_is_deleted_for_good_with_it(db_path, memory):
    talk = memory.session("talk", title=SECRET)
    talk.delete()
    assert find_words(db_path) >= {WORDS[0]}
    talk.delete(hard=True)
    assert find_words(db_path) == set()
    assert memory.deleted() == []


def test_forgetting_a_scope_for_good_leaves_no_title_of_its_sessions(db_path, memory):
    for scope in ("user/42", "user/43"):
        memory.session("said", scope=scope, title=SECRET).append("user", "hello", id=scope)
        memory.session("empty", scope=scope, title=SECRET)
    memory.delete("user/42")
    memory.forget(scope="user/42", hard=True)
    assert memory.scoped("user/42").sessions() == []
    assert len(memory.scoped("user/43").sessions()) == 2
    memory.forget(everything=True, hard=True)
    assert (memory.sessions(), find_words(db_path)) == ([], set())


def test_without_a_trash_all_deletions_are_for_good(db_path, clock):
    with Memory.open(db_path, embedder=None, clock=clock, settings=Settings(trash_days=0)) as memory:
        memory.add(TEXT, id="secret")
        memory.delete("secret")
        assert (memory.deleted(), find_words(db_path)) == ([], set())
        memory.add(TEXT)
        assert memory.forget(everything=True).hard
        assert find_words(db_path) == set()
        memory.session("talk").append("user", TEXT)
        memory.session("talk").delete()
        assert find_words(db_path) == set()


CHANGES = {
    "another text": lambda memory: memory.update("secret", text="nothing here", metadata=None, payload=None),
    "a replaced record": lambda memory: memory.add("nothing here", id="secret", on_duplicate="replace"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_word_of_a_text_that_was_changed_is_left_in_the_closed_file(db_path, memory, change):
    change(memory)
    memory.close()
    assert find_words(db_path) == set()
    assert faults(db_path) == []


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_next_deletion_for_good_clears_the_words_of_changed_texts(db_path, memory, change):
    change(memory)
    memory.delete("n7", hard=True)
    assert find_words(db_path) == set()


def test_no_word_of_what_was_purged_from_the_trash_is_left_in_the_closed_file(db_path, memory, clock):
    memory.delete("secret")
    clock.advance(days=31)
    memory.delete("n7")
    assert [deleted.record.id for deleted in memory.deleted()] == ["n7"]
    memory.close()
    assert find_words(db_path) == set()


def test_a_soft_deleted_text_stays_in_the_file_until_its_time_is_over(db_path, memory):
    memory.delete("secret")
    memory.close()
    assert WORDS[0] in find_words(db_path)


def test_the_codes_of_deleted_vectors_go_at_once(db_path, monkeypatch):
    use_small_index(monkeypatch, index_from=10, most_chunks=5)
    with Memory.open(db_path, embedder=HashedEmbedder()) as memory:
        memory.add_many({"text": text, "id": f"n{place}"} for place, text in enumerate(FILLER))
        assert memory.stats().vector_index == "codes"
        memory.delete("n7", hard=True)
        with memory._engine.store.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM vector_change").fetchall() == [(0,)]
        assert vector_faults(memory) == []


def test_what_hard_deletion_has_to_clear_is_noted_in_the_file(db_path, memory):
    remains = memory._engine.store.remains
    assert remains.count() == 0
    memory.update("n1", text="short")
    memory.delete(["n2", "n3"])
    assert remains.count() == 3
    memory.delete("n4", hard=True)
    assert remains.count() == 0


def test_clearing_goes_on_where_it_was_interrupted(db_path, memory, monkeypatch):
    monkeypatch.setattr("recall_core.store.remains.MERGED_PAGES", 1)
    memory.delete("secret")
    remains = memory._engine.store.remains
    assert not remains.clear_terms(timeout=0)
    memory.add("rockets are added meanwhile")
    memory.delete("secret", hard=True)
    assert (remains.count(), find_words(db_path), faults(db_path)) == (0, set(), [])


@pytest.mark.parametrize("delete", DELETIONS.values(), ids=DELETIONS)
def test_a_deletion_that_was_interrupted_before_all_was_cleared_is_completed_by_the_same_call(
    db_path, memory, monkeypatch, delete
):
    with monkeypatch.context() as patch:
        patch.setattr("recall_core.store.remains.Remains.clear_terms", interrupt)
        with pytest.raises(KeyboardInterrupt):
            delete(memory)
    assert find_words(db_path) != set()
    assert delete(memory) == 0
    assert find_words(db_path) == set()


def interrupt(*_args):
    raise KeyboardInterrupt


def test_a_deletion_during_a_repair_is_completed_after_it(db_path, memory, caplog):
    access = MemoryAccess(memory._engine.store.database)
    with access.write() as connection:
        keyword_index._begin(connection)
    assert keyword_index._add_batch(access) is False  # as if the repair had been killed here
    memory.delete("secret", hard=True)
    assert "stay until recall doctor --repair" in caplog.text
    assert find_words(db_path) != set()
    keyword_index.rebuild(access)
    memory.delete("n7", hard=True)
    assert (find_words(db_path), faults(db_path)) == (set(), [])


READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM record").fetchall()
print("reading", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
connection.close()
print("done", flush=True)
sys.stdin.readline()
"""


def test_a_log_that_another_process_reads_is_cleared_by_the_next_write(db_path, memory, monkeypatch, caplog):
    monkeypatch.setattr("recall_core.store.database.LOG_WAIT", 0.1)
    reader = run_python(["-c", READER, str(db_path)], stdin=subprocess.PIPE)
    assert reader.stdout.readline().strip() == "reading"
    memory.delete("secret", hard=True)
    assert "stays in the log" in caplog.text
    assert find_words(db_path) != set()
    reader.stdin.write("\n")
    reader.stdin.flush()
    assert reader.stdout.readline().strip() == "done"
    memory.add("anything")
    assert find_words(db_path) == set()
    reader.stdin.write("\n")
    reader.communicate()


def test_a_large_file_is_not_cleared_when_it_is_closed(db_path, monkeypatch):
    monkeypatch.setattr("recall_core.deletion.CLEARED_AT_CLOSE", 2)
    for texts, left in ((2, 0), (5, 1)):
        with Memory.open(db_path, embedder=None) as memory:
            memory.add_many({"text": text} for text in FILLER[:texts])
            memory.delete(memory.records()[0].id)
        with contextlib.closing(sqlite3.connect(db_path)) as connection:
            noted = connection.execute("SELECT value FROM meta WHERE key = 'deleted_terms'").fetchall()
        assert len(noted) == left
    assert CLEARED_AT_CLOSE > 1000


def test_the_stock_sqlite3_reads_and_writes_a_file_from_which_was_deleted_for_good(db_path, memory):
    memory.delete("secret", hard=True)
    memory.close()
    with contextlib.closing(sqlite3.connect(db_path)) as connection, connection:
        ((version,),) = connection.execute("SELECT v FROM chunk_fts_config WHERE k = 'version'")
        assert version == 4  # what every SQLite with FTS5 reads; its option secure-delete would make it 5
        connection.execute("DELETE FROM record WHERE id = 'n1'")
        connection.execute("UPDATE record SET text = 'changed' WHERE id = 'n2'")
    assert faults(db_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_the_file_its_log_and_the_index_of_that_are_for_the_owner_alone(db_path):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add(TEXT)
        modes = {path.name: path.stat().st_mode & 0o777 for path in db_path.parent.iterdir()}
    assert modes == {f"{db_path.name}{end}": 0o600 for end in ("", "-wal", "-shm")}
