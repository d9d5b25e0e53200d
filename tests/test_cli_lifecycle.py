"""`recall delete --hard`, `restore`, `deleted`, `forget`, `touch`, `link` and `unlink`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from cli_support import COFFEE, DEPLOY, DISK, run, run_json, store, texts

from recall_core import Memory, NewRecord


def test_a_deleted_memory_is_listed_and_comes_back(db_path):
    one, two = store(db_path, DEPLOY, COFFEE)
    assert run(db_path, "delete", one).stdout == "deleted 1\n"
    listed = run(db_path, "deleted").stdout
    assert (listed.startswith(f"{one}  deleted 2"), DEPLOY[:20] in listed) == (True, True)
    result = run(db_path, "restore", one, two)
    assert (result.exit_code, result.stdout) == (1, "restored 1\n")
    assert result.stderr == f"recall: nothing can be restored of {two}\n"
    assert texts(run_json(db_path, "list")["records"]) == [DEPLOY, COFFEE]
    assert run_json(db_path, "search", "Docker Compose 部署")["hits"][0]["record"]["id"] == one


def test_restore_and_deleted_print_json(db_path):
    one, two = store(db_path, DEPLOY, COFFEE)
    run(db_path, "delete", one, two)
    page = run_json(db_path, "deleted", "--limit", "1")
    assert (page["after"], page["deleted"][0]["record"]["id"]) == (two, two)
    rest = run_json(db_path, "deleted", "--after", two)
    assert (rest["after"], [shape["record"]["text"] for shape in rest["deleted"]]) == (None, [DEPLOY])
    restored = run_json(db_path, "restore", one)
    assert (texts(restored["restored"]), restored["missing"]) == ([DEPLOY], [])


def test_restore_refuses_an_id_that_is_taken(db_path):
    store(db_path, NewRecord(text="old", id="r"))
    run(db_path, "delete", "r")
    store(db_path, NewRecord(text="new", id="r"))
    result = run(db_path, "restore", "r")
    assert (result.exit_code, "'r' can't be restored" in result.stderr) == (1, True)


def test_what_is_deleted_hard_can_not_be_restored_and_is_gone_from_the_file(db_path):
    one, two, three, four = store(db_path, DEPLOY, "zyxwolfram is the word", DISK, COFFEE)
    run(db_path, "delete", one)
    result = run(db_path, "delete", "--hard", one, two, three, "nobody", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (1, {"deleted": [one, two, three], "missing": ["nobody"]})
    assert run_json(db_path, "deleted")["deleted"] == []
    assert b"zyxwolfram" not in db_path.read_bytes()
    assert [record["id"] for record in run_json(db_path, "list")["records"]] == [four]


def test_forget_tells_what_it_would_delete_and_deletes_it_when_told_to(db_path):
    store(db_path, *(NewRecord(text=f"note {n}", metadata={"old": n < 3}) for n in range(5)))
    dry = run(db_path, "forget", "--where", '{"old": true}', "--dry-run")
    assert (dry.exit_code, len(dry.stdout.splitlines()), dry.stdout.splitlines()[-1]) == (0, 4, "would delete 3")
    refused = run(db_path, "forget", "--where", '{"old": true}')
    assert (refused.exit_code, "give --yes" in refused.stderr) == (2, True)
    assert run(db_path, "forget", "--where", '{"old": true}', "--yes").stdout == "deleted 3\n"
    found = run_json(db_path, "forget", "--everything", "--hard", "--yes")
    assert (found["count"], found["hard"], found["dry_run"], len(found["sample"])) == (5, True, False, 2)
    assert run_json(db_path, "list")["records"] == []


def test_forget_of_nothing_deletes_nothing(db_path):
    store(db_path, DEPLOY)
    assert run(db_path, "forget", "--tag", "unknown", "--yes").stdout == "deleted 0\n"
    assert run(db_path, "forget", "--tag", "unknown", "--dry-run").stdout == "would delete 0\n"
    assert not run_json(db_path, "forget", "--tag", "unknown", "--yes")["dry_run"]
    result = run(db_path, "forget", "--yes")
    assert (result.exit_code, "nothing to select by" in result.stderr) == (2, True)


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")
@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 12), (b"y\n", 0, 0)])
def test_forget_shows_some_and_asks_on_a_terminal(db_path, answer, code, left):
    import pty

    store(db_path, *(f"note {n}" for n in range(12)))
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    command = [sys.executable, "-c", "from recall_core.cli import main; main()", "forget", "--everything"]
    done = subprocess.run([*command, "--db", str(db_path)], stdin=theirs, capture_output=True, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, b"and 2 more" in done.stderr, b"Delete 12?" in done.stderr) == (code, True, True)
    assert len(run_json(db_path, "list")["records"]) == left


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")
@pytest.mark.parametrize("command", [("forget", "--everything"), ("delete", "r")], ids=str)
def test_who_stops_at_the_question_is_told_that_nothing_was_deleted(db_path, command):
    import pty

    store(db_path, NewRecord(text=DEPLOY, id="r"))
    ours, theirs = pty.openpty()
    os.write(ours, b"\x04")  # the end of the input
    called = [sys.executable, "-c", "from recall_core.cli import main; main()", *command, "--db", str(db_path)]
    done = subprocess.run(called, stdin=theirs, capture_output=True, timeout=60, text=True)
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "recall: nothing was deleted")
    assert len(run_json(db_path, "list")["records"]) == 1


def test_an_interrupted_forget_says_how_far_it_came_and_the_same_command_goes_on(db_path, monkeypatch):
    store(db_path, *(f"note {n}" for n in range(5)))
    left = [2]

    def interrupt(*_arguments):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("recall_core.deletion.BATCH", 2)
        patch.setattr("recall_core.deletion.purge_trash", interrupt)
        result = run(db_path, "forget", "--everything", "--yes")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.strip() == "recall: stopped; deleted 4 of 5; the same command goes on"
    assert run(db_path, "forget", "--everything", "--yes").stdout == "deleted 1\n"


@pytest.mark.parametrize("command", [("forget", "--everything", "--yes"), ("delete", "r")], ids=str)
def test_an_interrupted_deletion_for_good_says_that_the_file_is_not_cleared_yet(db_path, monkeypatch, command):
    store(db_path, NewRecord(text=DEPLOY, id="r"))

    def interrupt(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("recall_core.store.remains.Remains.clear_terms", interrupt)
        result = run(db_path, *command, "--hard")
    assert (result.exit_code, "of 1, and the file is not cleared of their words yet" in result.stderr) == (130, True)
    run(db_path, *command, "--hard")
    assert b"Docker" not in db_path.read_bytes()


def test_touch_prolongs_a_life_and_makes_a_memory_stay(db_path):
    (one,) = store(db_path, NewRecord(text=DEPLOY, ttl=60))
    assert run(db_path, "touch", one, "--importance", "0.9", "--ttl", "30d").stdout == "touched 1\n"
    (record,) = run_json(db_path, "get", one)["records"]
    assert (record["importance"], record["accessed_at"] is None) == (0.9, False)
    assert record["expires_at"] > record["accessed_at"]
    run(db_path, "touch", one, "--expires-at", "never")
    assert run_json(db_path, "get", one)["records"][0]["expires_at"] is None
    result = run(db_path, "touch", one, "nobody", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (1, {"touched": 1, "missing": ["nobody"]})
    assert run(db_path, "touch", one, "--expires-at", "2020-01-01").exit_code == 2
    assert "not both" in run(db_path, "touch", one, "--expires-at", "never", "--ttl", "5d").stderr


def test_links_are_made_shown_and_deleted(db_path):
    store(db_path, NewRecord(text="Error 503", id="error"), NewRecord(text="Restart the backend", id="fix"))
    assert run(db_path, "link", "fix", "error", "--kind", "solves").stdout == "fix solves error\n"
    assert run_json(db_path, "link", "fix", "error")["kind"] == "related"
    shown = run(db_path, "get", "error").stdout
    assert "link        ← solves fix: Restart the backend\n" in shown
    assert "link        solves → error: Error 503\n" in run(db_path, "get", "fix").stdout
    assert "    ← solves fix\n" in run(db_path, "search", "503", "--mode", "keyword").stdout
    assert "← solves fix" in run(db_path, "search", "503", "--mode", "keyword", FORCE_COLOR="1").stdout
    got = run_json(db_path, "get", "error")
    assert ([link["kind"] for link in got["links"]], texts(got["linked"])) == (
        ["solves", "related"],
        ["Restart the backend"],
    )
    (hit,) = run_json(db_path, "search", "503", "--mode", "keyword")["hits"]
    assert [(link["source"], link["target"]) for link in hit["links"]] == [("fix", "error")] * 2
    assert run(db_path, "unlink", "fix", "error", "--kind", "solves").stdout == "unlinked 1\n"
    assert run_json(db_path, "unlink", "fix", "error")["unlinked"] == 1
    assert run(db_path, "unlink", "fix", "error").exit_code == 1
    assert run(db_path, "link", "fix", "nobody").exit_code == 1


def test_a_link_shows_no_control_characters(db_path):
    store(db_path, NewRecord(text="a\x1b[31mred", id="a"), NewRecord(text="b", id="b"))
    with Memory.open(db_path, embedder=None) as memory:
        memory.link("a", "b", "kind")
    assert "\x1b" not in run(db_path, "get", "b").stdout
