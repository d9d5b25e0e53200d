"""Where a file lies: SQLite's write-ahead log needs a local disk, since processes share memory through it."""

from __future__ import annotations

from pathlib import Path

MOUNTS = Path("/proc/self/mounts")  # Linux; elsewhere nothing is known
NETWORK_TYPES = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "9p", "ceph", "glusterfs", "lustre"})
NETWORK_FUSE = ("fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.davfs")


def network_type(path: str, mounts: str | None = None) -> str | None:
    r"""Return the type of the network file system that `path` lies on, None for a local disk or where it is not known.

    `mounts` is the text of /proc/self/mounts: device, folder, type, … a line, blanks in folders as \040.
    """
    if mounts is None:
        try:
            mounts = MOUNTS.read_text("utf-8", "replace")
        except OSError:
            return None
    file = Path(path).resolve()
    longest, found = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        folder = Path(fields[1].replace("\\040", " "))
        if file.is_relative_to(folder) and len(folder.parts) > longest:
            longest, found = len(folder.parts), fields[2]
    return found if found in NETWORK_TYPES or found.startswith(NETWORK_FUSE) else None
