"""A report on what was remembered: counts, decisions and errors, topics, links, and the commits of the same days."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from cli_support import run, store
from hypothesis import given
from hypothesis import strategies as st
from insight_support import open_memory, open_with_vectors
from markdown_it import MarkdownIt
from support import NOW

from recall_core import NewRecord
from recall_core.errors import InvalidInputError
from recall_core.insight.git import read_commits
from recall_core.insight.markdown import escape, show_line
from recall_core.times import to_micros

NASTY = [
    "# heading\n## another",
    "<script>alert(1)</script> & <!-- comment",
    "```\ncode\n```",
    "~~~ fence",
    "[link](javascript:alert(1)) ![image](x) <http://a.b>",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "*bold* _emphasis_ `code` ~~gone~~",
    "- item\n1. one\n> quote\n\n    indented",
    "---",
    "a  \nb\\\nc",
    "&lt;b&gt; &#35;",
    "\u202eright to left\u2066 \x1b[31mred \x07",
    "$x^2$ \\",
]


@pytest.fixture(params=[open_memory, open_with_vectors], ids=["keywords", "vectors"])
def memory(request):
    with request.param() as opened:
        yield opened


@pytest.fixture
def repository(tmp_path):
    """A repository with three commits, on three days."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    for day, subject in ((1, "first"), (20, "# fix *it* <b>"), (30, "last\n\nwith a body")):
        time = f"2026-01-{day:02}T12:00:00+00:00"
        git(folder, "commit", "-q", "--allow-empty", "-m", subject, GIT_AUTHOR_DATE=time, GIT_COMMITTER_DATE=time)
    return folder


def git(folder, *arguments, **environment):
    names = {f"GIT_{who}_{what}": "anna@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **names, **environment}
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, env=env)


def between(first, last):
    return to_micros(f"2026-01-{first:02}"), to_micros(f"2026-01-{last:02}")


def test_a_report_has_counts_decisions_errors_and_topics(memory):
    memory.add("We use Redis as cache", id="d1", tags=["Decision"], session="s")
    memory.add("Error 500 after the release", id="e1", kind="error", created_at=NOW - timedelta(days=1))
    memory.add_many({"text": f"数据库迁移第{name}步", "id": f"m{name}"} for name in ("甲", "乙"))
    memory.add("old", created_at=NOW - timedelta(days=8))
    memory.link("d1", "e1", "prevents")
    lines = memory.digest(language="en").splitlines()
    assert lines[0] == "# Digest: 2026-01-24 09:30 – 2026-01-31 09:30 UTC"
    assert lines[2] == "Memories: 4, topics: 1, decisions: 1, errors: 1, sessions: 1, links: 1"
    headings = [line for line in lines if line.startswith("#")][1:]
    assert headings[:3] == ["## Decisions", "## Errors", "## Topics"]
    assert headings[3].startswith("### 数据库")
    assert "- 2026-01-31 We use Redis as cache \\#Decision (d1)" in lines
    assert lines[lines.index("- 2026-01-31 We use Redis as cache \\#Decision (d1)") + 1] == "  - prevents → e1"
    assert "- 2026-01-30 Error 500 after the release (e1)" in lines
    assert "  - ← d1 prevents" in lines


@pytest.mark.parametrize(("text", "title"), [("数据库在五号机", "# 摘要"), ("the database is on host 5", "# Digest")])
def test_labels_are_in_the_language_of_the_memories(memory, text, title):
    memory.add(text, created_at=NOW - timedelta(hours=1))
    assert memory.digest().startswith(title)
    assert memory.digest(language="zh").startswith("# 摘要")


def test_a_period_is_given_by_times_or_by_its_length(memory):
    memory.add("January", created_at="2026-01-10")
    memory.add("later", created_at="2026-01-20")
    assert "January" in memory.digest(since="2026-01-10", until="2026-01-11")
    assert "January" in memory.digest(since=timedelta(days=30))
    assert "January" not in memory.digest(since=timedelta(days=12))
    assert "Memories: 1," in memory.digest(since=timedelta(days=1), until="2026-01-20T12:00:00", language="en")
    with pytest.raises(InvalidInputError, match="is not before until"):
        memory.digest(since="2027-01-01")
    with pytest.raises(InvalidInputError, match="language is 'fr'"):
        memory.digest(language="fr")


def test_nothing_remembered_is_said(memory):
    assert memory.digest(language="en").endswith("\nNothing was remembered in this period.\n")


def test_a_view_reports_what_lies_below_it_and_no_link_out_of_it(memory):
    made = NOW - timedelta(hours=1)
    memory.add("mine", id="a", scope="x/y", created_at=made)
    memory.add("secret", id="b", scope="xy", created_at=made)
    memory.add("expired", scope="x", ttl=1, created_at=made)
    memory.link("a", "b", "knows")
    memory._engine.clock.advance(2)
    report = memory.scoped("x").digest(language="en")
    assert "mine" in report
    assert not [word for word in ("secret", "expired", "knows") if word in report]
    assert memory.digest(scope="x", language="en") == report
    assert "knows" in memory.digest(language="en")


def shapes(markdown: str) -> list[str]:
    """Return the kinds of blocks and of what stands in them, other than plain text."""
    found = []
    for token in MarkdownIt("gfm-like", {"linkify": False}).parse(markdown):
        found.append(token.type)
        found += [child.type for child in token.children or () if child.type not in ("text", "text_special")]
    return [kind for kind in found if kind != "inline"]


@pytest.mark.parametrize("text", NASTY)
def test_no_text_breaks_the_report(text):
    def report(of):
        with open_memory() as memory:
            memory.add(of, id="x", created_at=NOW - timedelta(hours=1))
            return memory.digest(language="en")

    assert shapes(report(text)) == shapes(report("plain words"))
    assert not [character for character in report(text) if character != "\n" and not character.isprintable()]


@given(st.text() | st.sampled_from(NASTY))
def test_an_escaped_text_is_one_line_that_shows_it(text):
    line = escape(text)
    assert "\n" not in line
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(f"- x {line}")
    inline = [token for token in tokens if token.type == "inline"]
    assert len(inline) == 1
    shown = "".join(child.content for child in inline[0].children)
    assert shown.split() == ["x", *show_line(text).split()]


def test_a_long_text_is_cut():
    assert escape("word " * 100, 20) == "word word word word…"


def test_commits_of_the_same_days_stand_beside_it(memory, repository):
    memory.add("数据库迁移", id="r1", created_at="2026-01-30T10:00:00")
    report = memory.digest(since="2026-01-19", until="2026-01-31", git=repository, language="en")
    lines = report.splitlines()
    assert lines[2].endswith(", commits: 2")
    days = lines[lines.index("## By day") :]
    assert [line for line in days if line.startswith("### ")] == ["### 2026-01-20", "### 2026-01-30"]
    assert any("\\# fix \\*it\\* &lt;b\\> (anna@example.org)" in line for line in days)
    assert days[-1] == "- r1: 数据库迁移"
    assert days[-2].endswith(" last (anna@example.org)")


def test_commits_are_read_oldest_first_of_the_period_alone(repository):
    assert [commit.subject for commit in read_commits(repository, *between(1, 31))] == [
        "first",
        "# fix *it* <b>",
        "last",
    ]
    (commit,) = read_commits(str(repository), *between(20, 21))
    assert (commit.made_at, commit.author) == (datetime(2026, 1, 20, 12, tzinfo=UTC), "anna@example.org")
    assert len(commit.id) >= 40
    assert commit.id.startswith(commit.short_id)


def test_a_repository_without_commits_has_none(tmp_path):
    git(tmp_path, "init", "-q")
    assert read_commits(tmp_path, *between(1, 31)) == []


def test_settings_of_a_repository_run_no_program(repository, tmp_path):
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o700)
    for name in ("core.fsmonitor", "core.pager", "pager.log", "diff.external", "core.sshCommand"):
        git(repository, "config", name, str(trap))
    assert len(read_commits(repository, *between(1, 31))) == 3
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{tmp}/missing", "there is no folder"),
        ("{tmp}", "git can't read a repository at"),
        ("--exec=touch {tmp}/x", "there is no folder"),
        ("", "git is the path of a repository"),
        ("a\0b", "git is the path of a repository"),
    ],
)
def test_what_is_no_repository_is_refused(memory, tmp_path, path, message, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    with pytest.raises(InvalidInputError, match=message):
        memory.digest(git=path.format(tmp=tmp_path))


def test_a_missing_git_program_is_told(memory, repository, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert shutil.which("git") is None
    with pytest.raises(InvalidInputError, match="there is no git program"):
        memory.digest(git=repository)


def test_recall_digest_prints_or_writes_the_report(db_path, tmp_path, repository):
    store(db_path, NewRecord(text="数据库迁移", id="r1", created_at="2026-01-30"))
    options = ["--since", "2d", "--until", "2026-01-31", "--language", "en", "--git", str(repository)]
    printed = run(db_path, "digest", *options)
    assert (printed.exit_code, printed.stderr) == (0, "")
    assert printed.stdout.startswith("# Digest: 2026-01-29 00:00 – 2026-01-31 00:00 UTC\n\nMemories: 1, ")
    target = tmp_path / "report.md"
    assert run(db_path, "digest", *options, "-o", str(target)).stdout == ""
    assert target.read_text("utf-8") == printed.stdout


@pytest.mark.parametrize(
    ("options", "code"),
    [(["--since", "x"], 2), (["--git", "/missing"], 2), (["--language", "fr"], 2), (["-o", "/missing/report.md"], 3)],
)
def test_recall_digest_tells_what_it_can_not_do(db_path, options, code):
    store(db_path, "a")
    result = run(db_path, "digest", *options)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("recall: ")
