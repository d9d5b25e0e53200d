"""`recall import`: what goes in, what is refused and how that is told."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from cli_support import COFFEE, DEPLOY, run, run_json, store, texts
from hypothesis import given
from hypothesis import strategies as st

from recall_core import NewRecord
from recall_core.errors import InvalidInputError
from recall_core.transfer.lines import read_line

VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=2)
LINES = VALUES | st.dictionaries(st.sampled_from(["text", "id", "time", "metadata", "colour"]), VALUES)


def write_lines(folder: Path, *lines: object) -> str:
    """Write a JSONL file, a line that is bytes as it is, and return its path."""
    path = folder / "lines.jsonl"
    raw = [line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode() for line in lines]
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return str(path)


def test_all_that_a_line_says_is_stored(db_path, tmp_path):
    line = {
        "text": DEPLOY, "id": "one", "scope": "user/42", "session": "s", "role": "user", "time": "2026-01-31T09:30:00Z",
        "turn": 3, "tags": ["a"], "metadata": {"stars": 3}, "kind": "fact", "source": "chat", "importance": 0.9,
        "payload": [1], "expires_at": "2999-01-01T00:00:00Z",
    }  # fmt: skip
    result = run(db_path, "import", write_lines(tmp_path, line))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "imported 1, skipped 0, failed 0\n", "")
    (record,) = run_json(db_path, "list")["records"]
    assert record.items() >= {**{key: line[key] for key in line if key != "time"}, "created_at": line["time"]}.items()


def test_stdin_can_be_imported(db_path):
    assert run(db_path, "import", "-", given=f'{{"text": "{COFFEE}"}}\n').exit_code == 0
    assert texts(run_json(db_path, "list")["records"]) == [COFFEE]


def test_a_broken_line_is_told_by_its_number_and_the_rest_goes_in(db_path, tmp_path):
    store(db_path, NewRecord(text=DEPLOY, id="taken"))
    broken = {
        2: (b"{'text': 1}", "not JSON: Expecting property name"),
        3: (b'{"id": "x"}', "no text"),
        4: ({"text": "x", "time": "yesterday"}, "created_at: 'yesterday' is no ISO 8601 time"),
        5: ({"text": "x", "id": "taken"}, "the id 'taken' is taken (see --on-duplicate)"),
        6: ("只有文字".encode("gbk"), "not UTF-8"),
        7: (b"[1]", "not a JSON object but list"),
        8: ({"text": ["x"]}, "text is a string, not ['x']"),
        9: ({"text": "x", "scope": "a//b"}, "has an empty segment"),
        10: ({"text": "x", "importance": 7}, "importance is a number from 0 to 1"),
        11: (b'{"text": "x", "importance": NaN}', "NaN is no JSON value"),
        12: (b"[" * 100_000, "nested too deep"),
        13: ({"text": "x", "metadata": [1]}, "metadata is a mapping"),
        15: ({"text": "x", "id": "twice"}, "the id 'twice' is taken (see --on-duplicate)"),
    }
    lines = {number: line for number, (line, _) in broken.items()}
    whole = {1: {"text": "first"}, 14: {"text": "x", "id": "twice"}, 16: {"text": "last"}}
    file = write_lines(tmp_path, *(line for _, line in sorted({**lines, **whole}.items())))

    result = run(db_path, "import", file)
    assert (result.exit_code, result.stdout) == (1, "imported 3, skipped 0, failed 13\n")
    told = dict(line.removeprefix("recall: line ").split(": ", 1) for line in result.stderr.splitlines())
    assert sorted(map(int, told)) == sorted(broken)
    for number, (_, reason) in broken.items():
        assert reason in told[str(number)]
        assert "record 0" not in told[str(number)]
    assert texts(run_json(db_path, "list")["records"]).count("first") == 1


def test_the_summary_has_a_json_shape(db_path, tmp_path):
    result = run(db_path, "import", write_lines(tmp_path, {"text": "x", "colour": "red"}, b"{"), "--json")
    summary = json.loads(result.stdout)
    assert list(summary) == [
        "imported", "skipped", "failed", "failures", "ignored", "format", "read", "added", "replaced", "present",
        "left_out", "sessions", "words", "links", "vectors", "dry_run",
    ]  # fmt: skip
    assert (summary["imported"], summary["skipped"], summary["failed"]) == (1, 0, 1)
    assert [failure["line"] for failure in summary["failures"]] == [2]
    assert summary["ignored"] == ["colour"]


@pytest.mark.parametrize("batch", ["1", "2", "256"])
def test_a_refused_record_costs_no_other_of_its_batch(db_path, tmp_path, batch):
    lines = [{"text": f"note {number}", "turn": "two" if number == 3 else number} for number in range(7)]
    result = run(db_path, "import", write_lines(tmp_path, *lines), "--batch", batch)
    assert result.stdout == "imported 6, skipped 0, failed 1\n"
    assert sorted(record["turn"] for record in run_json(db_path, "list")["records"]) == [0, 1, 2, 4, 5, 6]


def test_ignored_keys_are_told_once(db_path, tmp_path):
    file = write_lines(tmp_path, *({"text": f"note {number}", "colour": 1, "form": 2} for number in range(3)))
    assert (
        run(db_path, "import", file).stderr == "recall: ignored the keys colour, form; --extra-to-metadata keeps them\n"
    )


def test_unknown_keys_become_metadata_if_asked_for(db_path, tmp_path):
    file = write_lines(tmp_path, {"text": "x", "colour": "red", "stars": 1, "metadata": {"stars": 5}})
    assert run(db_path, "import", file, "--extra-to-metadata").stderr == ""
    assert run_json(db_path, "list")["records"][0]["metadata"] == {"colour": "red", "stars": 5}


def test_everything_goes_below_a_scope(db_path, tmp_path):
    file = write_lines(tmp_path, {"text": "a"}, {"text": "b", "scope": "project/x"})
    run(db_path, "import", file, "--scope", "user/42")
    scopes = [record["scope"] for record in run_json(db_path, "list")["records"]]
    assert sorted(scopes) == ["user/42", "user/42/project/x"]


def test_lines_without_ids_are_stored_once_however_often_their_file_is_imported(db_path, tmp_path):
    lines = [{"text": "ok", "role": "user"}, {"text": "ok", "role": "user"}, {"text": "dated", "time": "2026-01-31"}]
    file = write_lines(tmp_path, *lines)
    assert run(db_path, "import", file).stdout == "imported 3, skipped 0, failed 0\n"
    assert run(db_path, "import", file, "--dry-run").stdout == "would import 0, skipped 3, failed 0\n"
    file = write_lines(tmp_path, {"text": "new"}, *reversed(lines), {"text": "ok", "role": "assistant"})
    assert run(db_path, "import", file).stdout == "imported 2, skipped 3, failed 0\n"
    assert run(db_path, "import", file, "--scope", "other").stdout == "imported 5, skipped 0, failed 0\n"


@pytest.mark.parametrize(
    ("choice", "summary", "code", "text"),
    [
        ("keep", "imported 1, skipped 0, failed 1\n", 1, "old"),
        ("touch", "imported 1, skipped 0, failed 1\n", 1, "old"),
        ("skip", "imported 1, skipped 1, failed 0\n", 0, "old"),
        ("replace", "imported 2, skipped 0, failed 0\n", 0, "new"),
    ],
)
def test_a_taken_id_is_settled_as_asked_for(db_path, tmp_path, choice, summary, code, text):
    store(db_path, NewRecord(text="old", id="one"))
    result = run(
        db_path, "import", write_lines(tmp_path, {"text": "new", "id": "one"}, {"text": "x"}), "--on-duplicate", choice
    )
    assert (result.exit_code, result.stdout) == (code, summary)
    assert run_json(db_path, "get", "one")["records"][0]["text"] == text


def test_texts_that_are_there_are_skipped_if_asked_for(db_path, tmp_path):
    store(db_path, "a")
    file = write_lines(tmp_path, {"text": "a"}, {"text": "b"}, {"text": "b"}, {"text": "c"})
    assert run(db_path, "import", file, "--on-duplicate", "skip").stdout == "imported 2, skipped 2, failed 0\n"
    assert sorted(texts(run_json(db_path, "list")["records"])) == ["a", "b", "c"]


def test_importing_again_with_skip_changes_nothing(db_path, tmp_path):
    file = write_lines(tmp_path, *({"text": f"note {number}", "id": str(number)} for number in range(5)))
    run(db_path, "import", file)
    again = run(db_path, "import", file, "--on-duplicate", "skip")
    assert (again.exit_code, again.stdout) == (0, "imported 0, skipped 5, failed 0\n")


def test_what_was_imported_is_found_by_meaning(db_path, tmp_path):
    run(db_path, "import", write_lines(tmp_path, {"text": DEPLOY}, {"text": COFFEE}))
    found = run_json(db_path, "search", "容器化上线的规定", "--limit", "1")
    assert [hit["record"]["text"] for hit in found["hits"]] == [DEPLOY]


def test_a_file_that_is_not_there_is_told_and_makes_no_memory(db_path, tmp_path):
    result = run(db_path, "import", str(tmp_path / "nowhere.jsonl"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"recall: {tmp_path / 'nowhere.jsonl'} can't be read: ")
    assert not db_path.exists()


@pytest.mark.parametrize("options", [["--batch", "0"], ["--batch", "257"], ["--scope", "/"], ["--on-duplicate", "ask"]])
def test_bad_options_are_refused(db_path, tmp_path, options):
    result = run(db_path, "import", write_lines(tmp_path, {"text": "x"}), *options)
    assert (result.exit_code, result.stdout) == (2, "")


def test_an_empty_file_imports_nothing(db_path, tmp_path):
    result = run(db_path, "import", write_lines(tmp_path, b"", b"  "))
    assert (result.exit_code, result.stdout) == (0, "imported 0, skipped 0, failed 0\n")


# Export


def test_what_was_exported_is_imported_as_it_was(db_path, tmp_path):
    store(db_path, NewRecord(text=DEPLOY, id="a", scope="user/42", session="s"), NewRecord(text=COFFEE, id="b"))
    file = tmp_path / "out.jsonl.gz"
    assert run(db_path, "export", str(file)).stdout == "exported 2\n"
    other = tmp_path / "other.db"
    assert run(other, "import", str(file)).stdout == "imported 2, skipped 0, failed 0\n"
    assert run(other, "import", str(file)).stdout == "imported 0, skipped 2, failed 0\n"
    assert run(other, "export").stdout_bytes == run(db_path, "export", "-").stdout_bytes
    assert run_json(db_path, "export", str(file), "--scope", "user/42")["records"] == 1


def test_an_export_to_stdout_has_no_summary(db_path):
    store(db_path, DEPLOY)
    assert run(db_path, "export", "--json").exit_code == 2
    assert [json.loads(line)["type"] for line in run(db_path, "export").stdout.splitlines()] == [
        "header",
        "record",
        "end",
    ]


def test_an_export_of_no_memory_makes_no_file(db_path, tmp_path):
    result = run(db_path, "export", str(tmp_path / "out.jsonl"))
    assert result.exit_code == 3
    assert list(tmp_path.iterdir()) == []


# Files


def test_a_dry_run_stores_nothing(db_path, tmp_path):
    file = write_lines(tmp_path, {"text": "x"}, {"text": "y", "time": "2020-01-01"}, b"{")
    result = run(db_path, "import", file, "--dry-run", "--since", "2021-01-01")
    assert (result.exit_code, result.stdout) == (1, "would import 1, skipped 1, failed 1\n")
    assert run_json(db_path, "list")["records"] == []


def test_a_memory_in_ram_is_said_to_be_gone_afterwards(db_path, tmp_path):
    file = write_lines(tmp_path, {"text": "x"})
    assert ":memory: is gone when this command ends" in run(db_path, "import", file, "--db", ":memory:").stderr


# lines


def test_empty_values_count_as_not_given():
    line = {"text": "x", "time": "", "session": "", "turn": None, "scope": None, "kind": "", "tags": None}
    assert read_line(json.dumps(line).encode()) == (NewRecord(text="x"), ())


def test_created_at_wins_over_time():
    record, _ = read_line(b'{"text": "x", "time": "2026-01-01", "created_at": "2026-02-02"}')
    assert record.created_at == "2026-02-02"


def test_numbers_are_taken_as_names():
    record, _ = read_line(b'{"text": "x", "id": 7, "session": 12}')
    assert (record.id, record.session) == ("7", "12")


def test_a_byte_order_mark_is_passed_over():
    assert read_line(b'\xef\xbb\xbf{"text": "x"}')[0].text == "x"


@given(st.binary() | LINES.map(json.dumps).map(str.encode), st.booleans())
def test_any_line_is_read_or_refused(raw, keeps_extra):
    with contextlib.suppress(InvalidInputError):
        record, _ = read_line(raw, keeps_extra=keeps_extra)
        assert record.text.strip()


@pytest.mark.parametrize("id", [True, 1.5, [1]])
def test_a_line_with_an_id_that_is_no_string_fails_alone(db_path, id):
    lines = [{"text": "a"}, {"text": "b", "id": id}, {"text": "c"}]
    result = run(db_path, "import", "-", given="\n".join(map(json.dumps, lines)))
    assert result.exit_code == 1
    assert "line 2" in result.stderr
    assert "imported 2" in result.stdout


@pytest.mark.parametrize("content", [b"a line of prose\n" * 100, b"\0{\n" * 3], ids=["prose", "binary"])
def test_a_file_that_is_plainly_no_lines_of_json_is_refused_as_a_whole(db_path, tmp_path, content):
    file = tmp_path / "notes"
    file.write_bytes(content)
    result = run(db_path, "import", str(file))
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "is no file that can be imported; formats are" in result.stderr
    read = run(db_path, "import", str(file), "--format", "jsonl")
    assert (read.exit_code, "line 1: " in read.stderr) == (1, True)
