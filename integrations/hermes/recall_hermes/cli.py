"""`hermes recall status | doctor | search`, which are `recall-hermes status | doctor | search` as well."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from recall_core import DEFAULT, Memory
from recall_core.errors import RecallError
from recall_core.opening import read_all

from .callers import rename_scope
from .files import SETTINGS
from .names import memory_file
from .reporting import describe_home
from .setup import find_home

WORDLESS = ("status", "rename-profile")  # commands that need no model


def register_cli(subparser: argparse.ArgumentParser) -> None:
    """Add the subcommands to Hermes' `recall` command, or to ours."""
    commands = subparser.add_subparsers(dest="recall_command", required=True)
    status = commands.add_parser("status", help="what is stored, what waits, what failed last")
    status.add_argument("--json", action="store_true", help="print JSON")
    doctor = commands.add_parser("doctor", help="look for what keeps the memory from working; ends with 1 if something")
    doctor.add_argument("--quick", action="store_true", help="leave out what takes long")
    search = commands.add_parser("search", help="search what is remembered, of all users of this home")
    search.add_argument("query")
    search.add_argument("--limit", type=int, default=10)
    search.add_argument("--scope", default="", help="a scope, such as user/default/telegram/42")
    rename = commands.add_parser("rename-profile", help="give a renamed profile the memories that its old name has")
    rename.add_argument("old")
    rename.add_argument("new")
    subparser.set_defaults(func=recall_command)


def recall_command(args: argparse.Namespace) -> int:
    """Run a subcommand, and return the exit code."""
    try:
        code = _run(args)
    except RecallError as error:
        print(f"recall: {error}", file=sys.stderr)  # noqa: T201
        code = 2
    if code:
        raise SystemExit(code)  # Hermes does not look at what a command returns
    return code


def _run(args: argparse.Namespace) -> int:
    home = Path(getattr(args, "home", None) or find_home())
    file = memory_file(home)
    if not file.exists():
        print(f"{file} does not exist yet: nothing has been remembered in {home}")  # noqa: T201
        return 0
    with Memory.open(file, embedder=None if args.recall_command in WORDLESS else DEFAULT, settings=SETTINGS) as memory:
        if args.recall_command == "status":
            _print_status(home, memory, as_json=args.json)
            return 0
        if args.recall_command == "doctor":
            return _print_checkup(home, memory, quick=args.quick)
        if args.recall_command == "rename-profile":
            print(f"{rename_profile(memory, args.old, args.new)} memories belong to {args.new} now.")  # noqa: T201
            return 0
        for hit in memory.search(args.query, limit=args.limit, scope=args.scope):
            record = hit.record
            print(f"{hit.relevance:.2f}  {record.created_at:%Y-%m-%d}  {record.scope}  {record.id}")  # noqa: T201
            print(f"      {' '.join(hit.chunk.text.split())}")  # noqa: T201
    return 0


def _print_status(home: Path, memory: Memory, *, as_json: bool) -> None:
    state = describe_home(home, memory)
    if as_json:
        print(json.dumps(state, ensure_ascii=False, indent=2))  # noqa: T201
        return
    for name, value in state.items():
        shown = "; ".join(value) if isinstance(value, list) else value
        print(f"{name + ':':22}{'none' if shown in (None, '') else shown}")  # noqa: T201


def _print_checkup(home: Path, memory: Memory, *, quick: bool) -> int:
    checkup = memory.check(quick=quick)
    for problem in checkup.problems:
        print(f"- {problem.problem}\n  {problem.advice}")  # noqa: T201
    failure = describe_home(home, memory)["last failure"]
    if failure:
        print(f"last failure: {failure}")  # noqa: T201
    print("All is well." if not checkup.problems else f"{len(checkup.problems)} problems")  # noqa: T201
    return 1 if checkup.problems else 0


def rename_profile(memory: Memory, old: str, new: str) -> int:
    """Give the memories of a profile's scopes to another name of it; return how many there were."""
    moved = 0
    for record in list(read_all(memory)):
        scope = rename_scope(record.scope, old, new)
        if scope != record.scope:
            memory.update(record.id, scope=scope)
            moved += 1
    return moved
