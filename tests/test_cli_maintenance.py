"""The commands that keep a file in shape."""

from __future__ import annotations

import contextlib
import json

import click.testing
import pytest
from cli_support import run, run_json, store
from maintenance_support import find_term

WORD = "灰度发布平台"


@pytest.fixture
def path(db_path):
    store(db_path, f"{WORD}上线了", "something else", f"又一个{WORD}")
    return db_path


def interrupt(*_arguments):
    raise KeyboardInterrupt


# The dictionary


def test_a_word_is_added_and_the_records_that_hold_it_are_indexed_anew(path):
    done = run_json(path, "dict", "add", WORD, "Project Heron", "--reindex")
    assert done == {"added": [WORD, "Project Heron"], "removed": [], "missing": [], "reindexed": 2, "left": 0}
    assert len(find_term(path, WORD)) == 2
    assert run(path, "dict", "list").stdout == f"Project Heron\n{WORD}\n"


def test_without_a_terminal_the_index_is_left_for_later_and_said_so(path):
    result = run(path, "dict", "add", WORD)
    assert (result.exit_code, result.stdout) == (0, "added 1, removed 0; 0 memories indexed anew\n")
    assert "2 memories" in result.stderr
    assert "recall reindex --words" in result.stderr
    assert run_json(path, "reindex", "--words", "--dry-run")["records"] == 2
    assert find_term(path, WORD) == []
    assert run_json(path, "reindex", "--words") == {"records": 2, "changed": 2, "vectors": 0, "dry_run": False}
    assert len(find_term(path, WORD)) == 2


@pytest.mark.parametrize(("answer", "indexed"), [("y\n", 2), ("\n", 2), ("n\n", 0)])
def test_on_a_terminal_it_is_asked(path, monkeypatch, answer, indexed):
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda self: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    result = run(path, "dict", "add", WORD, given=answer)
    assert (result.exit_code, "Index the 2 memories" in result.stderr) == (0, True)
    assert len(find_term(path, WORD)) == indexed


def test_words_to_remove_that_are_not_there_are_named(path):
    run(path, "dict", "add", WORD, "Project Heron", "--reindex")
    result = run(path, "dict", "remove", WORD, "Project  Heron", "unknown", "--no-reindex")
    assert (result.exit_code, result.stdout) == (1, "added 0, removed 2; 0 memories indexed anew\n")
    assert result.stderr.splitlines()[-1] == "recall: the dictionary has no word unknown"
    result = run(path, "dict", "remove", WORD, "--reindex", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (
        1,
        {"added": [], "removed": [], "missing": [WORD], "reindexed": 2, "left": 0},
    )


def test_an_interrupted_change_of_words_says_what_was_done_and_is_finished_by_the_same_command(path, monkeypatch):
    @contextlib.contextmanager
    def interrupted(*_arguments, **_options):
        yield interrupt

    with monkeypatch.context() as patch:
        patch.setattr("recall_core.cli.dictionary.show_count", interrupted)
        result = run(path, "dict", "add", WORD, "--reindex")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.strip() == "recall: stopped; added 1, removed 0; the same command goes on"
    run(path, "dict", "add", WORD, "--reindex")
    assert len(find_term(path, WORD)) == 2


def test_who_stops_at_the_question_is_told_that_the_words_were_changed(path, monkeypatch):
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda self: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    result = run(path, "dict", "add", WORD, given="")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "recall: stopped; added 1, removed 0; the same command goes on"


def test_words_come_from_a_file(path, tmp_path):
    words = tmp_path / "words.txt"
    words.write_bytes(f"\ufeff{WORD}\r\n\r\n  Project Heron 2 \n".encode())
    assert run_json(path, "dict", "import", str(words))["added"] == [WORD, "Project Heron 2"]


def test_words_come_from_a_dictionary_of_jieba(path):
    given = f"{WORD} 5 n\n云计算 3\n创新办 i\n台中\nProject Heron 7 nz\n"
    done = run_json(path, "dict", "import", "--jieba", "-", given=given)
    assert done["added"] == [WORD, "云计算", "创新办", "台中", "Project Heron"]


def test_a_file_that_is_no_utf_8_is_refused_as_a_whole(path):
    result = run(path, "dict", "import", "-", given="甲\n".encode() + "乙\n".encode("gbk"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "line 2 is not UTF-8" in result.stderr
    assert run_json(path, "dict", "list") == {"words": []}


def test_words_are_removed(path):
    run(path, "dict", "add", WORD, "--reindex")
    assert run_json(path, "dict", "remove", WORD, "--reindex")["removed"] == [WORD]
    assert find_term(path, WORD) == []


# Indexes anew


def test_all_records_are_indexed_anew(path):
    assert "indexed 3 memories anew, 0 of them otherwise" in run(path, "reindex").stdout
    assert run_json(path, "reindex", "--where", '{"@text": {"$contains": "else"}}')["records"] == 1
    assert run_json(path, "reindex", "--vectors")["records"] == 0
    result = run(path, "reindex", "--keywords", "--words")
    assert result.exit_code == 2
    assert "give one of" in result.stderr
