"""Maintenance in several processes at once, beside others who write, and interrupted by the user."""

from __future__ import annotations

import signal
import sys

import pytest
from cli_support import start_waiting
from maintenance_support import fill, find_term
from store_support import WRITES, beside, embedder, faults, finish, release, run_python, start, vector_faults
from support import LIMIT, wait_until

from recall_core import Memory

COMMANDS = {
    "cleanup": ["cleanup", "--older-than", "2000-01-01", "--below-importance", "0.3"],
    "cleanup for good": ["cleanup", "--below-importance", "0.3", "--hard"],
    "vacuum": ["vacuum"],
    "reindex": ["reindex"],
    "dict add": ["dict", "add", "灰度发布平台", "--reindex"],
    "dict add another": ["dict", "add", "项目部署", "--reindex"],
    "backup": ["backup", "copy.db", "--force"],
    "backup too": ["backup", "copy.db", "--force"],
}
# What a command may say where others never let go of the log for seconds, as on a busy machine.
LATER = ("what was deleted stays in the log", "another program is reading an old state of the file")


def recall(path, *arguments):
    return run_python(["-c", "from recall_core.cli import main; main()", *arguments, "--db", str(path)])


def test_all_commands_at_once_and_a_writer_do_no_harm(db_path, monkeypatch):
    fill(db_path, 400)
    with Memory.open(db_path, embedder=embedder()) as memory:
        memory.add_many({"text": f"unimportant {number}", "importance": 0.1} for number in range(300))
    monkeypatch.chdir(db_path.parent)
    writer = start("write", db_path, 7)
    workers = {name: recall(db_path, *arguments) for name, arguments in COMMANDS.items()}
    release(db_path, writer)
    for name, worker in workers.items():
        out, err = worker.communicate(timeout=LIMIT)
        assert worker.returncode == 0, (name, out, err)
        assert [line for line in err.splitlines() if not any(part in line for part in LATER)] == []
    assert finish(writer).count == WRITES
    assert faults(db_path) == faults(db_path.with_name("copy.db")) == []
    assert [file.name for file in db_path.parent.iterdir() if "partial" in file.name] == []
    with Memory.open(db_path, embedder=embedder()) as memory:
        assert memory.count() == 400 + WRITES
        assert vector_faults(memory) == []
        assert memory.stats().notes == ()
        assert memory.words() == ["灰度发布平台", "项目部署"]
    assert len(find_term(db_path, "灰度发布平台")) == 40
    assert len(find_term(db_path, "项目部署")) == 360


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
def test_ctrl_c_ends_a_command_between_two_batches_and_says_what_is_done(db_path):
    fill(db_path, 1000)
    beside(db_path, "UPDATE chunk SET latin = 'spoiled', grams = '', words = '', labels = ''")
    with Memory.open(db_path, embedder=None) as memory:
        worker = start_waiting(db_path, "reindex", "reindex")

        def has_begun():
            with memory._engine.store.database.read() as connection:
                sql = "SELECT count(*) FROM meta WHERE key = 'reindex' AND json_extract(value, '$.after') > 0"
                return connection.execute(sql).fetchall() == [(1,)]

        wait_until(has_begun)
        worker.send_signal(signal.SIGINT)
        out, err = worker.communicate(timeout=LIMIT)
    assert (worker.returncode, out) == (130, "")
    assert err.strip() == "recall: stopped; what was done is kept, and the same command goes on"
    assert 0 < len(find_term(db_path, "note")) < 1000
    assert recall(db_path, "reindex").communicate(timeout=LIMIT)[1] == ""
    assert len(find_term(db_path, "note")) == 1000
