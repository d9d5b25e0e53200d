"""Text as it may stand in Markdown: whatever it is, it stays one line of plain text."""

from __future__ import annotations

import unicodedata

from ..patterns import compile_late

ELLIPSIS = "…"
# "<" and "&" become entities, which also readers without escapes show as text.
_MARKUP = compile_late(r"([\\`*_{}\[\]#|~>^$])")
# What would begin a list, a heading or a rule where a line begins.
_OPENING = compile_late(r"^(\d{1,9})([.)])|^([-+=:])")
_JOINERS = "\u200c\u200d"


def escape(text: str, most: int | None = None) -> str:
    """Return a text as one line of Markdown that shows it as it is: no heading, HTML, code, link or table comes of it.

    `most` is the number of characters after which it is cut. Unseen characters that could turn text around are dropped.
    """
    line = show_line(text)
    if most is not None and len(line) > most:
        line = line[: most - 1].rstrip() + ELLIPSIS
    line = _MARKUP.sub(r"\\\1", line).replace("&", "&amp;").replace("<", "&lt;")
    return _OPENING.sub(lambda found: f"{found[1]}\\{found[2]}" if found[1] else f"\\{found[3]}", line)


def show_line(text: str) -> str:
    """Return a text as one line, without unseen characters."""
    return " ".join("".join(map(_show, " ".join(text.split()))).split())


def _show(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    return "" if unicodedata.category(character) in ("Cc", "Cf") else "\ufffd"
