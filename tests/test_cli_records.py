"""`recall list`, `get`, `delete` and `stats`: what is in the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from cli_support import COFFEE, DEPLOY, run, run_json, store

from recall_core import NewRecord


def test_list_shows_a_line_for_each_memory_oldest_first(db_path):
    ids = store(db_path, NewRecord(text="first\nline", scope="user/42"), COFFEE)
    lines = run(db_path, "list").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == ids
    assert lines[0].endswith("  user/42  first line")


def test_list_goes_on_where_a_page_ended(db_path):
    ids = store(db_path, "a", "b", "c")
    first = run_json(db_path, "list", "--limit", "2")
    assert first["after"] == ids[1]
    second = run_json(db_path, "list", "--limit", "2", "--after", first["after"])
    assert [record["id"] for record in second["records"]] == ids[2:]
    assert second["after"] is None


def test_list_says_that_there_is_more(db_path):
    ids = store(db_path, "a", "b")
    assert run(db_path, "list", "--limit", "1").stderr == f"recall: there are more; go on with --after {ids[0]}\n"


def test_list_sees_only_what_the_options_admit(db_path):
    store(db_path, NewRecord(text="a", scope="x", session="s", metadata={"n": 1}), NewRecord(text="b", scope="y"))
    for options in (["--scope", "x"], ["--session", "s"], ["--where", '{"n": 1}']):
        assert [record["text"] for record in run_json(db_path, "list", *options)["records"]] == ["a"]


def test_list_of_nothing_is_no_failure(db_path):
    store(db_path)
    result = run(db_path, "list")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_get_prints_a_memory_in_full(db_path):
    (one,) = store(db_path, NewRecord(text="first\nsecond", tags=["a", "b"], metadata={"名": "值"}, payload=[1]))
    shown = run(db_path, "get", one).stdout
    assert f"id          {one}\n" in shown
    assert "tags        a, b\n" in shown
    assert 'metadata    {"名": "值"}\n' in shown
    assert "\n\nfirst\nsecond\n" in shown


def test_get_tells_of_ids_that_there_are_not(db_path):
    (one,) = store(db_path, DEPLOY)
    result = run(db_path, "get", "nobody", one, "--json")
    assert (result.exit_code, result.stderr) == (1, "recall: there is no memory with the id nobody\n")
    found = json.loads(result.stdout)
    assert ([record["id"] for record in found["records"]], found["missing"]) == ([one], ["nobody"])


def test_delete_deletes_and_tells_of_ids_that_there_are_not(db_path):
    one, two = store(db_path, DEPLOY, COFFEE)
    result = run(db_path, "delete", one, "nobody", one, "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (1, {"deleted": [one], "missing": ["nobody"]})
    assert [record["id"] for record in run_json(db_path, "list")["records"]] == [two]


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")
@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 1), (b"y\n", 0, 0)])
def test_delete_asks_on_a_terminal(db_path, answer, code, left):
    import pty

    (one,) = store(db_path, DEPLOY)
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    command = [sys.executable, "-c", "from recall_core.cli import main; main()", "delete", one, "--db", str(db_path)]
    done = subprocess.run(command, stdin=theirs, capture_output=True, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == code
    assert b"Delete 1 memory?" in done.stderr
    assert len(run_json(db_path, "list")["records"]) == left


def test_stats_tell_the_state_of_the_file(db_path):
    store(db_path, DEPLOY, COFFEE)
    assert "records   2 in 2 chunks" in run(db_path, "stats").stdout
    told = run_json(db_path, "stats")
    assert told.items() >= {"path": str(db_path), "records": 2, "chunks": 2, "sessions": 0, "spaces": []}.items()
