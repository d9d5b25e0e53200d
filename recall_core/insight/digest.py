"""What was remembered in a period, as a report in Markdown to start from: decisions and errors first, then by topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from ..engine import Engine
from ..errors import InvalidInputError
from ..filters import Selection
from ..models import Link, Record
from ..text import detect_language
from ..times import from_micros
from .git import Commit
from .markdown import escape
from .topics import cluster_records

BATCH = 500  # records that are read at a time
MOST_TEXT = 400  # characters of a memory
MOST_LABEL = 80
LANGUAGES = ("zh", "en")

# Tags and kinds by which records come first.
DECISIONS = frozenset(["decision", "decisions", "decided", "adr", "决定", "决策", "决议"])
ERRORS = frozenset(["error", "errors", "bug", "bugs", "incident", "failure", "fault", "错误", "故障", "缺陷", "事故"])


@dataclass(frozen=True, slots=True)
class Labels:
    """The words of a report in one language."""

    title: str
    counts: str
    commits: str
    decisions: str
    errors: str
    topics: str
    other: str
    by_day: str
    nothing: str


LABELS = {
    "en": Labels(
        title="Digest",
        counts="Memories: {memories}, topics: {topics}, decisions: {decisions}, errors: {errors}, "
        "sessions: {sessions}, links: {links}",
        commits=", commits: {commits}",
        decisions="Decisions",
        errors="Errors",
        topics="Topics",
        other="Other",
        by_day="By day",
        nothing="Nothing was remembered in this period.",
    ),
    "zh": Labels(
        title="摘要",
        counts="{memories} 条记忆，{topics} 个主题，{decisions} 项决定，{errors} 个错误，"
        "{sessions} 个会话，{links} 条关联",
        commits="，{commits} 次提交",
        decisions="决定",
        errors="错误",
        topics="主题",
        other="其他",
        by_day="按日期",
        nothing="这段时间没有记忆。",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What a report tells: the records of a period [since, until), those of each topic by its label, the records that
    are in none, links by record, and commits, None if none were asked for.
    """

    since: datetime
    until: datetime
    scope: str
    decisions: Sequence[Record]
    errors: Sequence[Record]
    topics: Sequence[tuple[str, Sequence[Record]]]
    others: Sequence[Record]
    links: Mapping[str, Sequence[Link]]
    commits: Sequence[Commit] | None


def make_digest(engine: Engine, selection: Selection, commits: Sequence[Commit] | None, language: str | None) -> str:
    """Return the report on the selected records, of a period that is given; None detects the language."""
    found = cluster_records(engine.store, selection)
    records = _read(engine, selection, [row.id for row in found.records])
    decisions = _chosen(records, DECISIONS)
    errors = _chosen([one for one in records.values() if one not in decisions], ERRORS)
    first = {record.id for record in (*decisions, *errors)}

    def pick(rows: Sequence[int]) -> list[Record]:
        ids = (found.records[row].id for row in rows)
        return _in_order([records[id] for id in ids if id in records and id not in first])

    topics = [(cluster.label, pick(cluster.rows)) for cluster in found.clusters]
    links: dict[str, list[Link]] = {}
    for link in _find_links(engine, selection, list(records)):
        for id in {link.source, link.target} & records.keys():
            links.setdefault(id, []).append(link)
    digest = Digest(
        since=from_micros(selection.since or 0), until=from_micros(selection.until or 0), scope=selection.scope,
        decisions=decisions, errors=errors, topics=[topic for topic in topics if topic[1]], others=pick(found.others),
        links=links, commits=commits,
    )  # fmt: skip
    return render_digest(digest, language or detect_language("\n".join(one.text for one in records.values())))


def render_digest(digest: Digest, language: str) -> str:
    """Return a report in Markdown, with labels in "zh" or "en". What is remembered is shown as plain text."""
    labels = LABELS[language]
    return "\n".join(_lines(digest, labels)).rstrip("\n") + "\n"


def check_language(language: str | None) -> str | None:
    """Return the language of a report, None for that of what is remembered."""
    if language not in (None, *LANGUAGES):
        raise InvalidInputError(f"language is {language!r}; choose one of {', '.join(LANGUAGES)}")
    return language


def _lines(digest: Digest, labels: Labels) -> Iterator[str]:
    scope = f" ({escape(digest.scope)})" if digest.scope else ""
    yield f"# {labels.title}{scope}: {digest.since:%Y-%m-%d %H:%M} – {digest.until:%Y-%m-%d %H:%M} UTC\n"
    every = [*digest.decisions, *digest.errors, *(one for _, of in digest.topics for one in of), *digest.others]
    yield _count(digest, every, labels)
    if not every:
        yield f"\n{labels.nothing}"
    for title, records in ((labels.decisions, digest.decisions), (labels.errors, digest.errors)):
        yield from _section(f"\n## {title}\n", records, digest)
    if digest.topics or digest.others:
        yield f"\n## {labels.topics}"
    for label, records in digest.topics:
        yield from _section(f"\n### {escape(label, MOST_LABEL)} ({len(records)})\n", records, digest)
    yield from _section(f"\n### {labels.other} ({len(digest.others)})\n", digest.others, digest)
    if digest.commits is not None:
        yield from _days(every, digest.commits, labels)


def _count(digest: Digest, records: Sequence[Record], labels: Labels) -> str:
    counts = labels.counts.format(
        memories=len(records), topics=len(digest.topics), decisions=len(digest.decisions), errors=len(digest.errors),
        sessions=len({(one.scope, one.session) for one in records if one.session is not None}),
        links=len({link for links in digest.links.values() for link in links}),
    )  # fmt: skip
    return counts + ("" if digest.commits is None else labels.commits.format(commits=len(digest.commits)))


def _section(title: str, records: Sequence[Record], digest: Digest) -> Iterator[str]:
    if records:
        yield title
    for record in records:
        tags = "".join(f" \\#{escape(tag)}" for tag in record.tags)
        yield f"- {record.created_at:%Y-%m-%d} {escape(record.text, MOST_TEXT)}{tags} ({escape(record.id)})"
        for link in digest.links.get(record.id, ()):
            if link.source == record.id:
                yield f"  - {escape(link.kind)} → {escape(link.target)}"
            else:
                yield f"  - ← {escape(link.source)} {escape(link.kind)}"


def _days(records: Sequence[Record], commits: Sequence[Commit], labels: Labels) -> Iterator[str]:
    """Show day by day what was committed beside what was remembered."""
    days: dict[date, tuple[list[Record], list[Commit]]] = {}
    for record in records:
        days.setdefault(record.created_at.date(), ([], []))[0].append(record)
    for commit in commits:
        days.setdefault(commit.made_at.astimezone(UTC).date(), ([], []))[1].append(commit)
    yield f"\n## {labels.by_day}"
    for day in sorted(days):
        remembered, committed = days[day]
        yield f"\n### {day}\n"
        for commit in committed:
            yield f"- {commit.short_id} {escape(commit.subject, MOST_TEXT)} ({escape(commit.author)})"
        for record in _in_order(remembered):
            yield f"- {escape(record.id)}: {escape(record.text, MOST_LABEL)}"


def _chosen(records: Mapping[str, Record] | Sequence[Record], names: frozenset[str]) -> list[Record]:
    """Return the records whose kind or one of whose tags is one of these names."""
    every = records.values() if isinstance(records, Mapping) else records
    return _in_order([one for one in every if not names.isdisjoint(name.casefold() for name in (one.kind, *one.tags))])


def _in_order(records: Sequence[Record]) -> list[Record]:
    return sorted(records, key=lambda record: (record.created_at, record.id))


def _read(engine: Engine, selection: Selection, ids: Sequence[str]) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for start in range(0, len(ids), BATCH):
        found |= {one.id: one for one in engine.store.records.get(ids[start : start + BATCH], selection)}
    return found


def _find_links(engine: Engine, selection: Selection, ids: Sequence[str]) -> list[Link]:
    """Return the links of records, as far as both ends are in the scope, be the other one of the period or not."""
    whole = replace(selection, since=None, until=None, where=None)
    return engine.store.links.find(ids, whole)
