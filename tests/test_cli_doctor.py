"""`recall doctor` on damaged files: what it tells, what it repairs, and how it ends."""

from __future__ import annotations

import json

import pytest
from cli_support import run
from damage_support import embedder, examine, fill, harm, run_sql

import recall_core.cli.doctor as doctor_command


@pytest.fixture(autouse=True)
def _with_model(monkeypatch):
    monkeypatch.setattr(doctor_command, "resolve_model", lambda model: embedder())


@pytest.fixture
def path(db_path):
    fill(db_path, 60)
    return db_path


def test_the_command_tells_of_damage_and_repairs_it(path):
    harm(path, "DELETE FROM chunk WHERE record_key = 3")
    done = run(path, "doctor")
    assert done.exit_code == 1
    assert "1 records lack chunks (records r002)" in done.stdout
    done = run(path, "doctor", "--repair", "--dry-run")
    assert done.exit_code == 1
    assert done.stdout == "would repair: 1 records lack chunks: cuts and segments the records anew\n"
    done = run(path, "doctor", "--repair")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "cut and segmented 1 records anew" in done.stdout
    assert "recall embed" in done.stdout
    done = run(path, "doctor", "--repair")
    assert done.stdout.splitlines()[0] == "there was nothing to repair"


def test_the_command_s_documents_have_all_of_it(path):
    harm(path, "DELETE FROM chunk WHERE record_key = 3")
    document = json.loads(run(path, "doctor", "--json").stdout)
    assert [(damage["kind"], damage["records"]) for damage in document["damages"]] == [("chunk-missing", ["r002"])]
    document = json.loads(run(path, "doctor", "--repair", "--json").stdout)
    assert document == {
        "dry_run": False,
        "done": ["cut and segmented 1 records anew"],
        "left": [],
        "pending": document["pending"],
    }


def test_the_command_repairs_a_file_that_can_t_be_opened(path):
    run_sql(path, "PRAGMA application_id = 1", "PRAGMA user_version = 0", "DROP TABLE pending")
    done = run(path, "doctor", "--json")
    document = json.loads(done.stdout)
    assert done.exit_code == 1
    assert document["stats"] is None
    assert {damage["kind"] for damage in document["damages"]} >= {"application-id", "schema-version", "table-missing"}
    assert "can't be opened" in run(path, "doctor").stdout
    assert run(path, "doctor", "--repair").exit_code == 0
    assert "all is well" in run(path, "doctor").stdout


def test_the_command_repairs_with_another_model_s_file(path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor_command, "resolve_model", lambda model: type(embedder())(32))
        harm(path, "DELETE FROM chunk WHERE record_key = 3")
        done = run(path, "doctor", "--repair")
    assert done.exit_code == 0
    assert "without it" in done.stderr
    assert "chunk-missing" not in examine(path)


@pytest.mark.parametrize("options", [["--dry-run"], ["--quick", "--repair"]])
def test_options_that_do_not_go_together_are_refused(path, options):
    assert run(path, "doctor", *options).exit_code == 2


@pytest.mark.parametrize("options", [[], ["--quick"], ["--repair"]])
def test_a_file_that_can_not_be_reached_is_not_called_damaged(path, options):
    folder = run(path.parent, "doctor", *options)
    assert (folder.exit_code, "it is a folder" in folder.stderr) == (3, True)
    path.with_name(path.name + "-wal").mkdir()  # as where the log can't be opened for want of permission
    done = run(path, "doctor", *options)
    assert (done.exit_code, done.stdout) == (3, "")
    assert "can't be opened" in done.stderr


@pytest.mark.parametrize("value", ["{bad", "null", "[1]", '{"words": [1, {}], "by": 5, "after": "x"}', '"text"'])
def test_notes_of_unfinished_work_that_are_damaged_stop_nothing(path, value):
    for key in ("changed_words", "changed_words_progress", "reindex"):
        run_sql(path, f"INSERT OR REPLACE INTO meta VALUES ('{key}', '{value}')")
    for command in (["doctor"], ["stats"], ["doctor", "--repair"], ["reindex"], ["dict", "add", "火箭", "--reindex"]):
        done = run(path, *command)
        assert isinstance(done.exception, SystemExit | None), command
        assert done.exit_code in (0, 1), done.stderr
    assert run(path, "reindex", "--words").exit_code == 0
    assert examine(path) == {}
