"""The `recall` command: what each of its commands does, prints and ends with."""

from __future__ import annotations

import json
import sqlite3
import sys

import pytest
from cli_support import COFFEE, DEPLOY, DISK, run, run_json, run_process, store

from recall_core import Memory, NewRecord, __version__

ANSI = "\x1b["
RECORD_KEYS = [
    "id",
    "text",
    "scope",
    "session",
    "turn",
    "role",
    "kind",
    "tags",
    "metadata",
    "payload",
    "source",
    "importance",
    "created_at",
    "updated_at",
    "accessed_at",
    "expires_at",
]


def test_the_version_is_shown(db_path):
    assert run(db_path, "--version").stdout == f"recall {__version__}\n"


def test_without_a_command_the_help_is_shown(db_path):
    result = run(db_path)
    assert (result.exit_code, result.stdout) == (0, run(db_path, "--help").stdout)


@pytest.mark.parametrize("command", ["add", "search", "context", "list", "get", "delete", "import", "stats"])
def test_every_option_of_a_command_is_explained(db_path, command):
    import click

    from recall_core.cli.app import app

    found = app.get_command(click.Context(app), command)
    options = [option for option in found.params if isinstance(option, click.Option)]
    assert options
    assert [option.name for option in options if not option.help] == []


# add


def test_add_prints_the_id_of_what_it_stored(db_path):
    result = run(db_path, "add", DEPLOY)
    with Memory.open(db_path, embedder=None) as memory:
        assert [record.text for record in memory.get(result.stdout.strip())] == [DEPLOY]


def test_add_stores_all_that_it_is_given(db_path):
    printed = run_json(
        db_path, "add", COFFEE, "--scope", "user/42", "--session", "s", "--turn", "3", "--role", "user",
        "--kind", "fact", "--tag", "a", "--tag", "b", "--metadata", "stars=3", "--metadata", "name=Ann=x",
        "--metadata-json", '{"deep": {"x": [1]}}', "--source", "chat", "--importance", "0.9",
        "--created-at", "2026-01-31T09:30:00Z", "--expires-at", "2999-01-01", "--id", "one",
    )  # fmt: skip
    assert list(printed) == RECORD_KEYS
    assert printed.items() >= {
        "id": "one", "text": COFFEE, "scope": "user/42", "session": "s", "turn": 3, "role": "user", "kind": "fact",
        "tags": ["a", "b"], "metadata": {"deep": {"x": [1]}, "stars": 3, "name": "Ann=x"}, "source": "chat",
        "importance": 0.9, "created_at": "2026-01-31T09:30:00Z", "expires_at": "2999-01-01T00:00:00Z",
    }.items()  # fmt: skip


def test_add_forgets_after_a_ttl(db_path):
    run(db_path, "add", COFFEE, "--ttl", "30d", "--id", "one")
    with Memory.open(db_path, embedder=None) as memory:
        (record,) = memory.get("one")
    assert record.expires_at is not None
    assert (record.expires_at - record.created_at).days == 30


@pytest.mark.parametrize("arguments", [["add"], ["add", "-"]])
def test_add_reads_stdin(db_path, arguments):
    result = run(db_path, *arguments, given="第一行\nsecond line\n")
    with Memory.open(db_path, embedder=None) as memory:
        assert memory.get(result.stdout.strip())[0].text == "第一行\nsecond line"


def test_add_takes_a_text_that_begins_with_a_dash_behind_two_dashes(db_path):
    run(db_path, "add", "--id", "one", "--", "- a list item")
    with Memory.open(db_path, embedder=None) as memory:
        assert memory.get("one")[0].text == "- a list item"


def test_add_refuses_an_id_that_is_taken(db_path):
    store(db_path, NewRecord(text=DEPLOY, id="one"))
    result = run(db_path, "add", COFFEE, "--id", "one")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "recall: the id 'one' is taken; choose another, or add --on-duplicate replace\n"


def test_add_skips_a_text_that_is_there_if_asked_to(db_path):
    (first,) = store(db_path, DEPLOY)
    assert run(db_path, "add", DEPLOY, "--on-duplicate", "skip").stdout == f"{first}\n"


@pytest.mark.parametrize(
    ("arguments", "given", "reason"),
    [
        ([""], None, "there is no text to store"),
        (["-"], b"", "there is no text to store"),
        (["-"], "数据库".encode("gbk"), "stdin is not UTF-8"),
        (["x", "--ttl", "soon"], None, "--ttl is 'soon'"),
        (["x", "--ttl", "99999999999w"], None, "--ttl 99999999999w reaches beyond"),
        (["x", "--metadata", "key"], None, "--metadata takes key=value, not 'key'"),
        (["x", "--metadata-json", "[1]"], None, "--metadata-json is a JSON object"),
        (["x", "--metadata-json", "{"], None, "--metadata-json is no JSON"),
        (["x", "--created-at", "yesterday"], None, "created_at: 'yesterday' is no ISO 8601 time"),
        (["x", "--importance", "2"], None, "importance is a number from 0 to 1"),
        (["x", "--scope", "a//b"], None, "has an empty segment"),
        (["x", "--turn", "one"], None, "Invalid value for '--turn'"),
        (["x", "--on-duplicate", "ask"], None, "Invalid value for '--on-duplicate'"),
        (["x", "y"], None, "unexpected extra argument"),
    ],
)
def test_add_refuses_bad_input(db_path, arguments, given, reason):
    result = run(db_path, "add", *arguments, given=given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("recall: ")
    assert reason in result.stderr
    assert "record 0" not in result.stderr
    assert result.stderr.count("\n") == 1


# search and context


def test_search_finds_by_keyword(db_path):
    (deploy, _) = store(db_path, NewRecord(text=DEPLOY, scope="user/42", role="user", turn=3, source="chat"), COFFEE)
    result = run(db_path, "search", "docker", "--mode", "keyword")
    facts, text = result.stdout.splitlines()
    assert facts.split("  ")[1] == deploy
    assert facts.split("  ")[3:] == ["user turn 3", "chat", "user/42"]
    assert text == f"    {DEPLOY}"


def test_search_finds_by_meaning(db_path):
    for text in (DEPLOY, COFFEE, DISK):
        run(db_path, "add", text)
    found = run_json(db_path, "search", "硬盘不够了", "--limit", "1")
    assert [hit["record"]["text"] for hit in found["hits"]] == [DISK]
    assert (found["mode"], found["degraded"]) == ("hybrid", None)


def test_search_prints_json_of_a_known_shape(db_path):
    store(db_path, DEPLOY)
    found = run_json(db_path, "search", "docker", "--mode", "keyword")
    assert list(found) == ["query", "mode", "degraded", "hits"]
    (hit,) = found["hits"]
    assert list(hit) == ["relevance", "score", "record", "chunk", "highlights", "why", "links"]
    assert list(hit["record"]) == RECORD_KEYS
    assert list(hit["chunk"]) == ["index", "start", "end", "text"]
    assert [hit["chunk"]["text"][start:end] for start, end in hit["highlights"]] == ["Docker"]
    assert hit["why"]["keyword_rank"] == 1


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--scope", "b"], ["b"]),
        (["--role", "user"], ["a"]),
        (["--role", "user", "--role", "tool"], ["a", "b"]),
        (["--tag", "y"], ["b"]),
        (["--session", "s1"], ["a"]),
        (["--since", "2026-02-01"], ["b"]),
        (["--until", "2026-02-01"], ["a"]),
        (["--where", '{"stars": {"$gte": 3}}'], ["b"]),
        (["--limit", "0"], []),
        (["--min-relevance", "1"], []),
    ],
)
def test_search_sees_only_what_the_options_admit(db_path, options, wanted):
    store(
        db_path,
        NewRecord(
            id="a", text="alpha docker", scope="a", role="user", tags=["x"], session="s1", created_at="2026-01-01",
            metadata={"stars": 1},
        ),
        NewRecord(
            id="b", text="beta gamma delta docker", scope="b", role="tool", tags=["y"], session="s2",
            created_at="2026-03-01", metadata={"stars": 5},
        ),
    )  # fmt: skip
    result = run(db_path, "search", "docker", "--mode", "keyword", "--json", *options)
    assert sorted(hit["record"]["id"] for hit in json.loads(result.stdout)["hits"]) == wanted


def test_search_without_a_hit_ends_with_1_as_grep_does(db_path):
    store(db_path, COFFEE)
    result = run(db_path, "search", "kubernetes", "--mode", "keyword")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "recall: nothing found\n")


def test_search_says_why_if_asked(db_path):
    store(db_path, DEPLOY)
    assert "(keyword #1 (bm25" in run(db_path, "search", "docker", "--mode", "keyword", "--why").stdout


def test_search_says_on_stderr_that_only_keywords_counted(db_path):
    store(db_path, DEPLOY)
    with sqlite3.connect(db_path) as connection:  # as after failures of the model: its turn comes later
        connection.execute("UPDATE pending SET attempts = 1, next_at = 4000000000000000")
    connection.close()
    result = run(db_path, "search", "docker")
    assert result.stderr.startswith("recall: found by keywords only: ")


@pytest.mark.parametrize(
    "query", ['"', "a AND NOT (", "-x", "*", "😀", "'; DROP TABLE record; --", "a\nb", "x" * 100_000]
)
def test_any_query_can_be_searched_for(db_path, query):
    store(db_path, DEPLOY)
    result = run(db_path, "search", "--mode", "keyword", "--", query)
    assert (result.exit_code, result.stderr) == (1, "recall: nothing found\n")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--mode", "fuzzy"], "Invalid value for '--mode'"),
        (["--limit", "-1"], "limit is a whole number"),
        (["--where", "stars > 3"], "--where is no JSON"),
        (["--where", "[]"], "--where is a JSON object"),
        (["--where", '{"stars": {"$near": 3}}'], "$near"),
        (["--since", "recently"], "since: 'recently' is no ISO 8601 time"),
        (["--min-relevance", "7"], "min_relevance is a number from 0 to 1"),
        (["--recency", "7"], "recency is a number from 0 to 1"),
        (["--scope", "../x"], "'..'"),
    ],
)
def test_search_refuses_bad_input(db_path, options, reason):
    store(db_path, DEPLOY)
    result = run(db_path, "search", "docker", "--mode", "keyword", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("recall: ")
    assert reason in result.stderr


def test_context_prints_a_block_for_a_prompt(db_path):
    (deploy,) = store(db_path, DEPLOY)
    block = run(db_path, "context", "docker", "--mode", "keyword", "--min-relevance", "0").stdout
    assert block.startswith("<recalled_memories>\n")
    assert f"[{deploy}]" in block
    assert f"> {DEPLOY}\n</recalled_memories>\n" in block


def test_context_says_in_the_wanted_language_that_nothing_is_known(db_path):
    store(db_path, DEPLOY)
    result = run(db_path, "context", "kubernetes", "--mode", "keyword", "--language", "zh")
    assert result.exit_code == 0
    assert "没有相关的记忆" in result.stdout


def test_context_prints_json_of_a_known_shape(db_path):
    store(db_path, DEPLOY)
    found = run_json(db_path, "context", "docker", "--mode", "keyword", "--max-chars", "300")
    assert list(found) == ["query", "mode", "degraded", "context"]
    assert len(found["context"]) <= 300


def test_context_refuses_a_budget_that_is_too_small(db_path):
    store(db_path, DEPLOY)
    result = run(db_path, "context", "docker", "--mode", "keyword", "--max-chars", "10")
    assert result.exit_code == 2
    assert "max_chars is 10" in result.stderr


# files


@pytest.mark.parametrize(
    "arguments", [["search", "x"], ["context", "x"], ["list"], ["get", "x"], ["delete", "x"], ["stats"]]
)
def test_a_command_that_reads_makes_no_file(db_path, arguments):
    result = run(db_path, *arguments)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith(f"recall: there is no memory at {db_path} yet")
    assert not db_path.exists()


def test_a_folder_is_no_memory(db_path):
    result = run(db_path.parent, "list")
    assert result.exit_code == 3
    assert "it is a folder" in result.stderr


def test_another_kind_of_file_is_no_memory(db_path):
    db_path.write_text("just a text\n" * 100)
    result = run(db_path, "add", "x")
    assert result.exit_code == 3
    assert "is no SQLite database" in result.stderr


def test_a_missing_folder_is_made_to_write_and_not_to_read(db_path):
    file = db_path.parent / "no" / "memory.db"
    assert run(file, "list").exit_code == 3
    assert not file.parent.exists()
    assert run(file, "add", "x").exit_code == 0
    assert file.exists()


def test_db_on_the_command_line_wins_over_the_environment(db_path, tmp_path):
    store(tmp_path / "other.db", COFFEE)
    assert COFFEE in run(db_path, "list", "--db", str(tmp_path / "other.db")).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the folder is not found through an environment variable")
def test_without_a_name_the_memory_lies_in_the_data_folder(tmp_path):
    data = str(tmp_path / "data")
    assert run_process(tmp_path, "add", COFFEE, RECALL_DB="", XDG_DATA_HOME=data).returncode == 0
    assert (tmp_path / "data" / "dualrecall" / "memory.db").exists()


def test_a_missing_model_is_told(db_path, tmp_path):
    result = run(db_path, "add", "x", "--model", str(tmp_path / "nowhere"))
    assert result.exit_code == 3
    assert "nowhere" in result.stderr


# mcp


def test_without_the_sdk_the_server_says_what_to_install(db_path):
    from importlib.util import find_spec

    if find_spec("mcp") is not None:
        pytest.skip("the SDK is installed here")
    done = run_process(db_path, "mcp")
    assert (done.returncode, done.stdout, b"dualrecall[mcp]" in done.stderr) == (2, b"", True)
