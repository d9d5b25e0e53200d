"""Where a file lies, and why it can't be opened there."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

# SQLite's write-ahead log needs a local disk, since processes share memory through it.
MOUNTS = Path("/proc/self/mounts")  # Linux; elsewhere nothing is known
NETWORK_TYPES = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "9p", "ceph", "glusterfs", "lustre"})
LOG = ("-wal", "-shm")  # the names of SQLite's log and its index, behind that of the file
NETWORK_FUSE = ("fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.davfs")


def find_status(path: str | Path) -> os.stat_result | None:
    """Return what is known of a file; None if there is none, or if it can't be looked at."""
    try:
        return Path(path).stat()
    except (OSError, ValueError):
        return None


def find_place(path: str) -> tuple[int, int] | None:
    """Return what tells a file from others, by whatever path it is reached: its device and its number there."""
    status = find_status(path)
    return None if status is None else (status.st_dev, status.st_ino)


def explain_kind(path: str) -> str | None:
    """Say what `path` is if it is no file, None if it is one or nothing."""
    status = find_status(path)
    if status is None or stat.S_ISREG(status.st_mode):
        return None
    kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
    return f"it is {kind}; give the path of a file"


def explain_path(path: str) -> str | None:
    """Say in words why `path` can't be opened for writing, None if nothing seems wrong with it."""
    if reason := explain_kind(path):
        return reason
    folder = Path(path).parent
    try:
        folder.stat()
    except PermissionError:
        return f"no permission to enter the folder {folder}"
    except (OSError, ValueError):
        return f"the folder {folder} does not exist, and can't be made"
    if find_status(path) is not None and not os.access(path, os.W_OK):
        return (
            "it lies on a read-only file system"
            if _is_mounted_read_only(path)
            else "no permission to write to the file"
        )
    if os.access(folder, os.W_OK | os.X_OK) or all(os.access(path + end, os.W_OK) for end in LOG):
        return None
    if _is_mounted_read_only(folder):
        return f"the folder {folder} lies on a read-only file system"
    return f"no permission to write to the folder {folder}, where SQLite keeps its log beside the file"


def find_obstacle(path: str) -> str | None:
    """Say in words why a file that can be read can't be written to, None if it can, or is not there to be read."""
    status = find_status(path)
    readable = status is not None and stat.S_ISREG(status.st_mode) and status.st_size and os.access(path, os.R_OK)
    return explain_path(path) if readable else None


def has_log(path: str) -> bool:
    """Tell whether SQLite has a log or a journal beside a file: others have it open, or did not close it."""
    return any(find_status(path + end) is not None for end in (LOG[0], "-journal"))


def find_state(path: str) -> tuple[object, ...]:
    """Return what differs once somebody is about to write to a file, and behind that what differs once that is done."""
    status = find_status(path)
    return (has_log(path), *((status.st_mtime_ns, status.st_size) if status else ()))


def _is_mounted_read_only(path: str | Path) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except (AttributeError, OSError):  # Windows has no such thing
        return False


def temporary_folder() -> str:
    """Return the folder in which SQLite makes its temporary files."""
    if os.name == "nt":
        return tempfile.gettempdir()
    named = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp")
    usable = (name for name in named if name and Path(name).is_dir() and os.access(name, os.W_OK | os.X_OK))
    return next(usable, ".")


def find_lack(wanted: Sequence[tuple[str, int]]) -> tuple[str, int, int] | None:
    """Return the first of these folders on whose disk there is less room than wanted, with what is wanted on that disk
    altogether and what is there, in bytes; None if there is enough.
    """
    sums: dict[int, int] = {}
    for folder, size in wanted:
        device = Path(folder).stat().st_dev
        sums[device] = sums.get(device, 0) + size
        free = shutil.disk_usage(folder).free
        if free < sums[device]:
            return folder, sums[device], free
    return None


def network_type(path: str, mounts: str | None = None) -> str | None:
    r"""Return the type of the network file system that `path` lies on, None for a local disk or where it is not known.

    `mounts` is the text of /proc/self/mounts: device, folder, type, … a line, blanks in folders as \040.
    """
    if mounts is None:
        try:
            mounts = MOUNTS.read_text("utf-8", "replace")
        except OSError:
            return None
    try:
        file = Path(path).resolve()
    except (OSError, RuntimeError):  # a loop of symbolic links
        return None
    longest, found = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        folder = Path(fields[1].replace("\\040", " "))
        if file.is_relative_to(folder) and len(folder.parts) > longest:
            longest, found = len(folder.parts), fields[2]
    return found if found in NETWORK_TYPES or found.startswith(NETWORK_FUSE) else None
