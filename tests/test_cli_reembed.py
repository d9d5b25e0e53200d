"""`recall reembed` moves a file to another model, and says how far it got."""

from __future__ import annotations

import signal
import sys

import numpy as np
import pytest
from cli_support import run, run_json, start_waiting
from models import MEAN, WORDS, build_model
from reembed_support import (
    NEW,
    OLD,
    StoppingEmbedder,
    assert_works,
    fill,
    models,
    old,
)
from store_support import faults
from support import LIMIT, HashedEmbedder, wait_until

from recall_core import Memory, Settings

OLD_ID, NEW_ID = f"hashed-{OLD}", f"hashed-{NEW}"
needs_kill = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
BACKGROUND = Settings(embedding="background")


# The command


@pytest.fixture
def folder(tmp_path):
    table = np.random.default_rng(1).normal(size=(len(WORDS), 512)).astype(np.float32)
    return str(build_model(tmp_path / "model", table=table, pooling=MEAN))


def test_the_command_moves_a_file_from_the_bundled_model_and_back(db_path, folder):
    with Memory.open(db_path) as memory:
        memory.add_many({"text": f"the cat sat on a mat {number}"} for number in range(20))
    done = run_json(db_path, "reembed", "--model", folder)
    assert {name: done[name] for name in ("dimensions", "chunks", "recut", "refused")} == {
        "dimensions": 512, "chunks": 20, "recut": 0, "refused": 0,
    }  # fmt: skip
    assert run_json(db_path, "search", "--model", folder, "cat 7")["degraded"] is None
    assert run(db_path, "search", "cat").exit_code == 3
    result = run(db_path, "reembed", "--model", "default")
    assert (result.exit_code, result.stdout[:9], result.stderr) == (0, "moved to ", "")
    assert run_json(db_path, "search", "cat 7")["degraded"] is None
    assert "already" in run(db_path, "reembed", "--model", "default").stdout
    assert faults(db_path) == []


def test_the_command_drops_an_unfinished_move(db_path):
    fill(db_path)
    assert run_json(db_path, "reembed", "--abort") == {"dropped": None}
    with Memory.open(db_path, embedder=old()) as memory, pytest.raises(KeyboardInterrupt):
        memory.reembed(StoppingEmbedder(NEW, 3, KeyboardInterrupt()), batch=16)
    assert "reembed" in " ".join(run_json(db_path, "stats")["notes"])
    assert NEW_ID in run(db_path, "reembed", "--abort").stdout
    assert_works(db_path)


@pytest.mark.parametrize("arguments", [(), ("--model", "default", "--abort")])
def test_the_command_wants_a_model_or_to_drop_a_move(db_path, arguments):
    fill(db_path, 1)
    result = run(db_path, "reembed", *arguments)
    assert result.exit_code == 2
    assert "--abort" in result.stderr


def test_the_command_refuses_another_target_while_a_move_is_unfinished(db_path, folder):
    fill(db_path)
    with Memory.open(db_path, embedder=old()) as memory, pytest.raises(KeyboardInterrupt):
        memory.reembed(StoppingEmbedder(NEW, 3, KeyboardInterrupt()), batch=16)
    result = run(db_path, "reembed", "--model", folder)
    assert result.exit_code == 3
    assert NEW_ID in result.stderr


@needs_kill
def test_ctrl_c_ends_the_command_between_two_batches(db_path, folder):
    fill(db_path, 2000, HashedEmbedder(OLD))
    worker = start_waiting(db_path, "reembed", "reembed", "--model", folder)
    with Memory.open(db_path, embedder=None) as memory:
        wait_until(lambda: models(memory).get("memory:next", ("", 0))[1] > 0)
        worker.send_signal(signal.SIGINT)
        out, err = worker.communicate(timeout=LIMIT)
    assert (worker.returncode, out) == (130, "")
    assert err.startswith("recall: stopped; ")
    assert_works(db_path, 2000)
