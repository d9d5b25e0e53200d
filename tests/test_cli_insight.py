"""`recall similar` and `recall merge`."""

from __future__ import annotations

import pytest
from cli_support import run, run_json, store, texts

from recall_core import NewRecord

FULL = "Backups run every night at two, stored on S3"
PART = "backups run every night at two"


@pytest.fixture
def db(db_path):
    store(
        db_path,
        NewRecord(text=FULL, id="full", tags=["ops"], created_at="2026-01-02"),
        NewRecord(text=PART, id="part", created_at="2026-01-01"),
        NewRecord(text="部署在 8080", id="old", created_at="2026-01-01"),
        NewRecord(text="部署在 9090", id="new", created_at="2026-01-02"),
    )
    return db_path


def test_similar_shows_each_group_with_the_reasons(db):
    result = run(db, "similar")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "duplicate  2 memories  it says most",
        f"    full  2026-01-02  {FULL}  (keep)",
        f"    part  2026-01-01  {PART}  (1.00 part of what the other says)",
        "",
        "conflict  2 memories  it is the newest: what was said last may hold",
        "    new  2026-01-02  部署在 9090  (newest)",
        "    old  2026-01-01  部署在 8080  (1.00 8080 against 9090)",
    ]


def test_similar_as_json_has_whole_records(db):
    (group,) = run_json(db, "similar", "--kind", "duplicate")["groups"]
    assert (group["kind"], group["survivor"], texts(group["records"])) == ("duplicate", "full", [FULL, PART])
    assert group["likenesses"] == [
        {"id": "part", "similarity": 1.0, "meaning": None, "reason": "part of what the other says"}
    ]


def test_similar_of_a_scope_without_groups_ends_like_grep(db):
    result = run(db, "similar", "--scope", "elsewhere")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "recall: nothing is said twice\n")
    assert run(db, "similar", "--scope", "elsewhere", "--json").exit_code == 1


@pytest.mark.parametrize("options", [["--threshold", "2"], ["--limit", "-1"], ["--where", "x"], ["--kind", "x"]])
def test_similar_refuses_what_means_nothing(db, options):
    result = run(db, "similar", *options)
    assert (result.exit_code, result.stdout) == (2, "")


def test_merge_tells_first_and_changes_nothing_in_a_dry_run(db):
    result = run(db, "merge", "part", "full", "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["keep      full", "delete    part", "tags      ops"]
    assert len(run_json(db, "list")["records"]) == 4


def test_merge_with_yes_merges(db):
    result = run(db, "merge", "part", "full", "--into", "part", "--yes")
    assert result.stdout.splitlines()[-1] == "merged into part"
    assert texts(run_json(db, "get", "part")["records"]) == [f"{PART}\n{FULL}"]
    assert run(db, "get", "full").exit_code == 1


def test_merge_does_nothing_where_nobody_can_be_asked(db):
    result = run(db, "merge", "part", "full")
    assert (result.exit_code, result.stderr.count("--yes")) == (2, 1)
    assert len(run_json(db, "list")["records"]) == 4


def test_merge_as_json_tells_what_was_done(db):
    done = run_json(db, "merge", "old", "new", "--yes")
    assert (done["record"]["id"], done["deleted"], done["dry_run"]) == ("new", ["old"], False)
    assert done["disagreements"] == [{"name": "text", "kept": "部署在 9090", "others": {"old": "部署在 8080"}}]


def test_merge_names_an_id_that_is_not_there(db):
    result = run(db, "merge", "full", "missing", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "'missing'" in result.stderr


def test_topics_shows_a_line_for_each(db_path):
    store(
        db_path,
        *(NewRecord(text=f"coffee for {number}", created_at="2026-01-02") for number in range(3)),
        *(NewRecord(text=f"数据库迁移 {number}", created_at="2026-01-20") for number in range(2)),
    )
    result = run(db_path, "topics", "--since", "7d", "--until", "2026-01-21")
    assert result.stdout.splitlines() == [
        "    3  +0  (+0)  2026-01-02 to 2026-01-02  coffee",
        "    2  +2  (+2)  2026-01-20 to 2026-01-20  数据库 · 迁移",
    ]
    found = run_json(db_path, "topics", "--since", "2026-01-01", "--until", "2026-01-21")["topics"]
    assert [(topic["size"], topic["recent"], len(topic["ids"])) for topic in found] == [(3, 3, 3), (2, 2, 2)]
    assert texts(found[1]["examples"])[0].startswith("数据库迁移")


def test_topics_of_nothing_ends_like_grep(db):
    result = run(db, "topics", "--scope", "elsewhere")
    assert (result.exit_code, result.stdout) == (1, "")


@pytest.mark.parametrize("since", ["soon", "7", "-1d", "2030-01-01"])
def test_topics_refuses_a_period_that_is_none(db, since):
    result = run(db, "topics", "--since", since, "--until", "2026-01-21")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "since" in result.stderr
