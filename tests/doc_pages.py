"""Reads Markdown pages for test_docs.py: fenced blocks, what they print, links and headings.

What the pages' authors need to know:

* ```` ```python ```` blocks of a page run in order, in one namespace and one empty folder.
* ```` ```bash ```` blocks that call `recall` run as one script each, in that same folder, with RECALL_DB below it.
  Installing and building commands (pip, uv, pipx, git, make, cd) do nothing in it.
* ```` ```console ```` blocks run their `$ ` lines one by one; the lines below one are what it prints.
* A ```` ```text ```` block right below a python or bash block is what that block prints.
* In all printed text `...` stands for anything. Nothing is compared where no output is shown.
* `<!-- not run: why -->` on the line above a block leaves it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w+-]*)[^\n]*\n(?P<code>.*?)^(?P=indent)```[ \t]*$", re.M | re.S)
_NOT_RUN = re.compile(r"<!-- not run: \S.* -->\s*\Z")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)|!\[[^\]]*\]\(([^)\s]+)\)")
_LEFT_OUT = "pip() { :; }; pipx() { :; }; uv() { :; }; git() { :; }; make() { :; }; cd() { :; }\n"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its code, the line its code starts on, and what it shall print, if that is said."""

    language: str
    code: str
    line: int
    output: str | None = None


def blocks_to_run(page: str) -> list[Block]:
    """Return the blocks of a page that run, each with its output block if one follows."""
    found = [(match, _block(match, page)) for match in _FENCE.finditer(page)]
    run = []
    for number, (match, block) in enumerate(found):
        if _NOT_RUN.search(page[: match.start()]):
            continue
        if block.language == "console":
            run.extend(_console_blocks(block))
        elif block.language == "python" or (block.language in ("bash", "sh") and calls_recall(block.code)):
            run.append(Block(block.language, block.code, block.line, _output_below(page, found, number)))
    return run


def calls_recall(script: str) -> bool:
    """Tell whether a shell script runs the command `recall`."""
    return re.search(r"(^|[|&;(] *)recall\b", script, re.M) is not None


def shell_script(block: Block) -> str:
    """Return what bash shall run for a block."""
    return f"set -euo pipefail\n{_LEFT_OUT}{block.code}"


def links(page: str) -> list[str]:
    """Return the targets of a page's links and pictures that lie in the project."""
    prose = _FENCE.sub("", page)
    targets = [first or second for first, second in _LINK.findall(prose)]
    return [target for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:", target)]


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    seen: dict[str, int] = {}
    names = set()
    for heading in _HEADING.findall(_FENCE.sub("", path.read_text("utf-8"))):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return names


def _block(match: re.Match[str], page: str) -> Block:
    indent = len(match["indent"])
    code = "".join(line[indent:] if line[:indent].isspace() else line for line in match["code"].splitlines(True))
    return Block(match["language"], code, page.count("\n", 0, match.start("code")) + 1)


def _output_below(page: str, found: list[tuple[re.Match[str], Block]], number: int) -> str | None:
    if number + 1 == len(found):
        return None
    between = page[found[number][0].end() : found[number + 1][0].start()]
    below = found[number + 1][1]
    return below.code if below.language in ("text", "output") and not between.strip() else None


def _console_blocks(block: Block) -> Iterator[Block]:
    lines = block.code.splitlines(True)
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        end = start + 1
        while lines[end - 1].endswith("\\\n"):
            end += 1
        command = "".join(lines[start:end]).removeprefix("$ ")
        if calls_recall(command):
            yield Block("console", command, block.line + start, "".join(lines[end:stop]) or None)
