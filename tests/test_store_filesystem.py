"""A file on a network file system is told apart from one on a local disk."""

from __future__ import annotations

import pytest

from recall_core.store.filesystem import network_type

MOUNTS = r"""
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local xfs rw 0 0
//server/share /mnt/my\040share cifs rw 0 0
user@host: /mnt/ssh fuse.sshfs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/var/memory.db", None),
        ("/home/me/memory.db", "nfs4"),
        ("/home/local/memory.db", None),
        ("/homework/memory.db", None),
        ("/mnt/my share/memory.db", "cifs"),
        ("/mnt/ssh/memory.db", "fuse.sshfs"),
    ],
)
def test_the_innermost_mount_says_whether_a_file_is_on_the_network(path, found):
    assert network_type(path, MOUNTS) == found


def test_a_file_in_a_temporary_folder_is_on_a_local_disk(tmp_path):
    assert network_type(str(tmp_path / "memory.db")) is None
