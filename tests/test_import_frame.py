"""What holds for all importers: how files are read, and what interrupts an import."""

from __future__ import annotations

import gzip
import io
import json
import os

import pytest
from cli_support import DEPLOY

from recall_core import Memory
from recall_core.errors import InvalidInputError
from recall_core.transfer.input import HEAD_BYTES, open_input


def open_memory():
    return Memory.open(":memory:", embedder=None)


def make_lines(count):
    return "".join(json.dumps({"text": f"{DEPLOY} {number}"}, ensure_ascii=False) + "\n" for number in range(count))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_is_read_however_it_is_packed_and_encoded(tmp_path, encoding, pack):
    file = tmp_path / "lines"
    file.write_bytes(pack(make_lines(1500).encode(encoding)))  # longer than what a format is told by
    assert file.stat().st_size > HEAD_BYTES or pack is gzip.compress
    with open_memory() as memory:
        imported = memory.import_(file)
        assert (imported.added, imported.failed) == (1500, 0)
        assert memory.count(where={"@text": {"$contains": DEPLOY}}) == 1500


def test_a_damaged_archive_is_told_and_what_came_before_it_is_stored(tmp_path):
    lines = b"".join(json.dumps({"text": os.urandom(30).hex()}).encode() + b"\n" for _ in range(3000))
    file = tmp_path / "lines.gz"
    file.write_bytes(gzip.compress(lines)[:-5000])
    with open_memory() as memory:
        imported = memory.import_(file)
        assert (imported.failed, len(imported.failures)) == (1, 1)
        assert "it ends early" in imported.failures[0].reason
        assert f"damaged from line {imported.added + 1} on" in imported.failures[0].reason
        assert 2000 < memory.count() == imported.added < 3000


def test_text_that_is_cut_within_a_character_is_told(tmp_path):
    raw = make_lines(10).encode("utf-16")[:-3]
    with open_memory() as memory:
        imported = memory.import_(io.BytesIO(raw))
        assert (imported.added, imported.failed) == (9, 1)


def test_a_stream_of_bytes_can_be_imported():
    with open_memory() as memory:
        for pack, scope in ((bytes, "plain"), (gzip.compress, "packed")):
            stream = io.BytesIO(pack(make_lines(3).encode()))
            assert memory.import_(stream, scope=scope).added == 3
            assert not stream.closed
        with pytest.raises(InvalidInputError, match="path is a path or a stream of bytes, not 3"):
            memory.import_(3)


def test_what_is_no_file_to_import_is_refused(tmp_path):
    Memory.open(tmp_path / "other.db", embedder=None).close()
    with open_memory() as memory:
        with pytest.raises(InvalidInputError, match=r"is a memory itself; export it first"):
            memory.import_(tmp_path / "other.db")
        with pytest.raises(InvalidInputError, match=r"no folder that can be imported; formats are recall, "):
            memory.import_(tmp_path)
        with pytest.raises(InvalidInputError, match="format is 'csv'; choose one of auto, recall, "):
            memory.import_(io.BytesIO(b"{}"), format="csv")
        with pytest.raises(InvalidInputError, match="can't be read: No such file"):
            memory.import_(tmp_path / "nowhere")


@pytest.mark.parametrize("options", [{"on_duplicate": "ask"}, {"batch": 0}, {"batch": True}, {"since": "soon"}])
def test_options_that_mean_nothing_are_refused(options):
    with open_memory() as memory, pytest.raises(InvalidInputError):
        memory.import_(io.BytesIO(b'{"text": "x"}'), **options)


def test_progress_counts_what_was_read():
    seen = []
    with open_memory() as memory:
        memory.import_(io.BytesIO(make_lines(25).encode()), batch=10, progress=seen.append)
    assert seen == [10, 20, 25]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupted_import_counts_what_it_has_stored_and_is_completed_by_another(monkeypatch, moment):
    """The interrupt comes within a batch: before its transaction is committed, or right after."""
    lines = "".join(
        json.dumps({"id": f"{number:04}", "text": f"note {number}"}) + "\n" for number in range(100)
    ).encode()
    early = []
    with open_memory() as memory:
        writes = 0
        records = memory._engine.store.records
        transaction = records.transaction

        class Interrupted:
            def __init__(self):
                self.inner = transaction()

            def __enter__(self):
                return self.inner.__enter__()

            def __exit__(self, *what):
                nonlocal writes
                writes += 1
                if writes == 3 and moment == "before":
                    self.inner.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
                    raise KeyboardInterrupt
                self.inner.__exit__(*what)
                if writes == 3:
                    raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(records, "transaction", Interrupted)
            with pytest.raises(KeyboardInterrupt):
                memory.import_(io.BytesIO(lines), batch=10, stopped=early.append)
        assert early[0].added == memory.count() == (20 if moment == "before" else 30)
        again = memory.import_(io.BytesIO(lines), on_duplicate="skip")
        assert (again.added, again.present) == (100 - early[0].added, early[0].added)


def test_secrets_are_taken_out_of_all_that_is_imported_if_asked_for(db_path):
    secret = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8t" * 2
    lines = [
        {"type": "header", "format": "dualrecall", "version": 1},
        {"type": "session", "session": "s", "title": f"key {secret}", "created_at": "2026-01-01"},
        {"type": "record", "id": "a", "text": f"key {secret}", "metadata": {"k": secret}, "payload": [secret]},
        {"type": "end", "lines": 2},
    ]
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with Memory.open(db_path, embedder=None) as memory:
        assert memory.import_(io.BytesIO(raw), redact=True).added == 1
        assert "key " in memory.get("a")[0].text
        for file in db_path.parent.glob("memory.db*"):
            assert secret.encode() not in file.read_bytes()
    with open_memory() as memory:
        memory.import_(io.BytesIO(raw))
        assert secret in memory.get("a")[0].text


def test_a_session_keeps_the_title_that_it_was_given():
    lines = [
        {"type": "header", "format": "dualrecall", "version": 1},
        {"type": "session", "session": "s", "title": "theirs", "created_at": "2026-01-01T00:00:00Z"},
        {"type": "end", "lines": 1},
    ]
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with open_memory() as memory:
        memory.session("s", title="mine")
        assert memory.import_(io.BytesIO(raw)).failed == 0
        assert memory.session("s").title == "mine"
        memory.import_(io.BytesIO(raw), on_duplicate="replace")
        assert memory.session("s").title == "theirs"


def test_a_long_line_does_not_fill_the_head(tmp_path):
    file = tmp_path / "lines"
    file.write_text(json.dumps({"text": "x" * 3 * HEAD_BYTES}) + "\n" + make_lines(1))
    with open_input(file) as opened:
        assert len(opened.head) == HEAD_BYTES
        assert next(len(line) for _, line in opened.lines()) > 3 * HEAD_BYTES
