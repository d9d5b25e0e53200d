"""What the tests of the clients' files share."""

from __future__ import annotations

from pathlib import Path

from recall_core.clients.files import write_edits
from recall_core.clients.installing import plan_install, plan_uninstall
from recall_core.clients.known import Place, find_changes

COMMAND = ["/opt/with space/recall", "mcp", "--client", "x"]


def install(client: str, place: Place, command: list[str] = COMMAND) -> None:
    write_edits(plan_install(find_changes(client, command, place)))


def uninstall(client: str, place: Place) -> None:
    write_edits(plan_uninstall(find_changes(client, ["recall", "mcp"], place)))


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
