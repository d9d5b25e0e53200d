"""`recall similar`, `recall merge` and `recall topics`: what says the same, one made of several, what it is about."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from recall_core.errors import InvalidInputError
from recall_core.models import Json

from .opening import open_existing
from .options import db_option, json_option, parse_age, parse_object, scope_option, until_option, where_option
from .output import NOTHING, one_line, tell, write, write_json
from .records import ids_argument
from .shapes import record_shape, show_time
from .stopping import confirm

if TYPE_CHECKING:
    from recall_core.insight.values import GroupKind, Merge, SimilarGroup, Topic

SHOWN_TEXT = 100  # characters of a memory


@click.command()
@scope_option
@where_option
@click.option("--kind", type=click.Choice(["duplicate", "conflict"]), help="Only groups of this kind.")
@click.option(
    "--threshold",
    metavar="0.5..1",
    type=float,
    default=0.85,
    show_default=True,
    help="How much of a text's words another has to share.",
)
@click.option(
    "--limit",
    "-n",
    metavar="N",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Show at most so many groups.",
)
@db_option
@json_option
def similar(
    scope: str, where: str | None, kind: str | None, threshold: float, limit: int, db: str | None, as_json: bool
) -> None:
    """Show groups of memories that say the same, or the same but for a number, a negation or a word.

    The first of a group is the one that is suggested to survive a recall merge. Exit code 1: there are no groups.
    """
    condition = parse_object(where, "--where")
    with open_existing(db) as memory:
        groups = memory.similar(
            scope=scope, where=condition, kind=cast("GroupKind | None", kind), threshold=threshold, limit=limit
        )
    if as_json:
        write_json({"groups": [group_shape(group) for group in groups]})
    else:
        for place, group in enumerate(groups):
            print_group(group, last=place == len(groups) - 1)
    if not groups:
        if not as_json:
            tell("nothing is said twice")
        click.get_current_context().exit(NOTHING)


@click.command()
@ids_argument
@click.option("--into", metavar="ID", help="The memory that is left; by default the one that says most.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
@db_option
@json_option
def merge(ids: Sequence[str], into: str | None, dry_run: bool, yes: bool, db: str | None, as_json: bool) -> None:
    """Make one memory of several of the same scope: what they say, their tags, metadata and links are joined.

    Tells first what would be done, and asks; without a terminal --yes has to be given. The others are deleted.
    """
    with open_existing(db) as memory:
        plan = memory.merge(ids, into=into, dry_run=True)
        if not as_json:
            print_merge(plan)
        if not dry_run:
            if not yes:
                _ask(len(plan.deleted) + 1)
            plan = memory.merge(ids, into=into)
    if as_json:
        write_json(merge_shape(plan))
    elif not dry_run:
        write(f"merged into {plan.record.id}")


@click.command()
@scope_option
@where_option
@click.option("--since", metavar="TIME|30d", default="30d", show_default=True, help="Where the period begins.")
@until_option
@click.option(
    "--limit", "-n", metavar="N", type=click.IntRange(1), default=20, show_default=True, help="At most so many topics."
)
@db_option
@json_option
def topics(
    scope: str, where: str | None, since: str, until: str | None, limit: int, db: str | None, as_json: bool
) -> None:
    """Show what is remembered, by topic: how much, how it grows, and where little is known.

    A line has the number of memories, how many of them are new in the period, and the change against the one before.
    """
    condition = parse_object(where, "--where")
    with open_existing(db) as memory:
        found = memory.topics(scope=scope, where=condition, since=parse_age(since, "--since"), until=until, limit=limit)
    if as_json:
        write_json({"topics": [topic_shape(topic) for topic in found]})
    else:
        for topic in found:
            write(describe_topic(topic))
    if not found:
        if not as_json:
            tell("there are no topics yet: no two memories are about the same")
        click.get_current_context().exit(NOTHING)


@click.command()
@click.option("--since", metavar="TIME|7d", default="7d", show_default=True, help="Where the period begins.")
@until_option
@scope_option
@where_option
@click.option("--git", metavar="REPO", help="Set the commits of this repository beside it, day by day.")
@click.option("--language", type=click.Choice(["zh", "en"]), help="Of its labels; by default that of the memories.")
@click.option("--output", "-o", metavar="FILE", help="Write it there; - is stdout, the default.")
@db_option
def digest(
    since: str,
    until: str | None,
    scope: str,
    where: str | None,
    git: str | None,
    language: str | None,
    output: str | None,
    db: str | None,
) -> None:
    """Write a report in Markdown on what was remembered: decisions and errors first, then by topic."""
    condition = parse_object(where, "--where")
    with open_existing(db) as memory:
        report = memory.digest(
            since=parse_age(since, "--since"), until=until, scope=scope, where=condition, git=git, language=language
        )
    if output in (None, "-"):
        write(report.rstrip("\n"))
    else:
        Path(output).expanduser().write_text(report, encoding="utf-8")


def topic_shape(topic: Topic) -> dict[str, Json]:
    """Return a topic."""
    return asdict(topic) | {
        "growth": topic.growth,
        "first_at": show_time(topic.first_at),
        "last_at": show_time(topic.last_at),
        "examples": [record_shape(record) for record in topic.examples],
    }


def describe_topic(topic: Topic) -> str:
    """Return a topic as one line."""
    facts = [
        f"{topic.size:>5}",
        f"+{topic.recent}",
        f"({topic.growth:+})",
        f"{topic.first_at:%Y-%m-%d} to {topic.last_at:%Y-%m-%d}",
        topic.label,
        *([f"[{', '.join(topic.thin)}]"] if topic.thin else []),
    ]
    return "  ".join(one_line(fact) if place else fact for place, fact in enumerate(facts))


def group_shape(group: SimilarGroup) -> dict[str, Json]:
    """Return a group of similar records."""
    return {
        "kind": group.kind,
        "survivor": group.survivor,
        "reason": group.reason,
        "records": [record_shape(record) for record in group.records],
        "likenesses": [asdict(likeness) for likeness in group.likenesses],
    }


def merge_shape(merge: Merge) -> dict[str, Json]:
    """Return what a merge did, or would do."""
    return {
        "record": record_shape(merge.record),
        "deleted": list(merge.deleted),
        "added": list(merge.added),
        "disagreements": [
            {"name": one.name, "kept": one.kept, "others": dict(one.others)} for one in merge.disagreements
        ],
        "links": merge.links,
        "dry_run": merge.dry_run,
    }


def print_group(group: SimilarGroup, last: bool) -> None:
    """Print a group: what it is, the survivor, then the others with what each has to do with that."""
    facts = [group.kind, f"{len(group.records)} memories", group.reason]
    lines = ["  ".join(facts)]
    first = "keep" if group.kind == "duplicate" else "newest"
    reasons = [first, *(f"{one.similarity:.2f} {one.reason}" for one in group.likenesses)]
    for record, reason in zip(group.records, reasons, strict=True):
        lines.append(f"    {record.id}  {record.created_at:%Y-%m-%d}  {shorten(record.text)}  ({one_line(reason)})")
    write("\n".join(lines) + ("" if last else "\n"))


def print_merge(merge: Merge) -> None:
    """Print what a merge comes to."""
    rows = [
        ("keep", merge.record.id),
        ("delete", " ".join(merge.deleted)),
        *(("add", shorten(text)) for text in merge.added),
        *(("tags", ", ".join(merge.record.tags)) for _ in merge.record.tags[:1]),
        *(("links", f"{merge.links} taken over") for _ in range(min(merge.links, 1))),
        *(("differ", _describe(one.name, one.kept, list(one.others.values()))) for one in merge.disagreements),
    ]
    for name, value in rows:
        write(f"{name:<10}{one_line(value)}")


def shorten(text: str) -> str:
    """Return the beginning of a text as one line."""
    line = one_line(text)
    return line if len(line) <= SHOWN_TEXT else line[: SHOWN_TEXT - 1] + "…"


def _describe(name: str, kept: Json, others: Sequence[Json]) -> str:
    return f"{name}: {shorten(str(kept))} is kept, not {', '.join(shorten(str(value)) for value in others)}"


def _ask(count: int) -> None:
    if not sys.stdin.isatty():
        raise InvalidInputError("nobody can be asked without a terminal; give --yes, or --dry-run to only look")
    confirm(f"Make one of these {count} memories?", "nothing was merged")
