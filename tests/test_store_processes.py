"""Many processes on one file: none fails, none waits long, and one that is killed leaves nothing half done."""

from __future__ import annotations

import contextlib
import random
import sys
import time

import pytest
from store_support import WRITES, embedder, faults, finish, release, start, use_small_index, vector_faults
from support import wait_until

from recall_core import Memory

WRITERS, READERS = 8, 2
KILLS = 10


def test_eight_processes_write_into_one_fresh_file_while_two_read(db_path, capsys):
    writers = [start("write", db_path, number) for number in range(WRITERS)]
    readers = [start("read", db_path) for _ in range(READERS)]
    release(db_path, *writers, *readers)
    longest_log = watch_log(db_path, writers)
    written = [finish(writer) for writer in writers]
    db_path.with_name("stop").touch()
    read = [finish(reader) for reader in readers]

    worst = max(report.worst for report in written)
    worst_read = max(report.worst for report in read)
    rate = WRITERS * WRITES / max(report.seconds for report in written)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{rate:.0f} records/s, worst write {worst:.2f} s, worst read {worst_read:.2f} s, "
            f"longest log {longest_log / 1e6:.0f} MB\n"
        )
    assert all(report.count == WRITES for report in written)
    assert all(report.count > 0 for report in read)
    assert longest_log < 100e6  # bytes; it begins anew although there is always somebody who reads or writes
    assert faults(db_path) == []
    with Memory.open(db_path, embedder=embedder()) as memory:
        assert (memory.flush(), memory.count()) == (0, WRITERS * WRITES)
        assert [memory.count(f"user/{number}") for number in range(WRITERS)] == [WRITES] * WRITERS
        assert vector_faults(memory) == []


def watch_log(path, workers) -> int:
    """Wait until the workers are done, and return the largest size of the file's log, in bytes."""
    log, longest = path.with_name(path.name + "-wal"), 0
    while any(worker.poll() is None for worker in workers):
        with contextlib.suppress(OSError):
            longest = max(longest, log.stat().st_size)
        time.sleep(0.01)
    return longest


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_a_process_that_is_killed_while_it_writes_leaves_a_sound_file(db_path, monkeypatch):
    use_small_index(monkeypatch)
    release(db_path)
    rng = random.Random(7)
    counts = []
    for round_ in range(KILLS):
        worker = start("bulk", db_path, round_)
        wait_for_growth(db_path)
        time.sleep(rng.uniform(0, 0.4))
        worker.kill()
        worker.communicate()
        assert worker.returncode == -9
        assert faults(db_path) == []
        # By this clock, what the killed process was embedding is free again.
        with Memory.open(db_path, embedder=embedder(), clock=lambda: time.time() + 60) as memory:
            assert memory.flush() == 0
            counts.append(memory.count())
            assert vector_faults(memory) == []
            assert len(memory.search("批量写入", limit=3)) == min(3, counts[-1])
        assert faults(db_path) == []
    assert counts == sorted(counts)
    assert counts[-1] > KILLS  # most were killed in the midst of it


def wait_for_growth(path) -> None:
    """Return as soon as a worker has written to the file."""
    log = path.with_name(path.name + "-wal")
    wait_until(lambda: log.exists() and log.stat().st_size > 0)
