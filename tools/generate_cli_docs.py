"""Write the help of every command into docs/cli.md, between two markers: make docs.

With --check nothing is written; the exit code is 1 if the page is not what it would be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from recall_core.cli.app import app

WIDTH = 88  # wherever this runs
PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
BEGIN = "<!-- begin: written by make docs -->"
END = "<!-- end: written by make docs -->"
NEW_PAGE = f"# The command line\n\n{BEGIN}\n{END}\n"


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    page = PAGE.read_text("utf-8") if PAGE.exists() else NEW_PAGE
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        print(f"{PAGE} has no lines {BEGIN!r} and {END!r}; add them where the commands shall stand", file=sys.stderr)
        return 1
    wanted = f"{before}{BEGIN}\n{reference()}{END}{after}"
    if "--check" not in arguments:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(wanted, "utf-8", newline="\n")
    elif wanted != page:
        print(f"{PAGE} shows other commands or options than there are; run: make docs", file=sys.stderr)
        return 1
    return 0


def reference() -> str:
    """Return a section for `recall` and each of its commands: a heading and what --help prints."""
    return "".join(f"\n## {' '.join(path)}\n\n```text\n{show_help(path)}\n```\n" for path in commands()) + "\n"


def commands(command: click.Command = app, path: tuple[str, ...] = ("recall",)) -> Iterator[tuple[str, ...]]:
    """Return the words of each command, parents before children, in the order that --help has."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


def show_help(path: tuple[str, ...]) -> str:
    """Return what a command prints for --help."""
    runner = CliRunner(env={"RECALL_DB": None, "RECALL_MODEL": None, "NO_COLOR": "1"})
    result = runner.invoke(app, [*path[1:], "--help"], prog_name=path[0], terminal_width=WIDTH, max_content_width=WIDTH)
    if result.exit_code:
        raise SystemExit(f"{' '.join(path)} --help ended with {result.exit_code}:\n{result.output}")
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
