"""State of a file as its filesystem shows it: equal states show, without reading, that nobody wrote to it between."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileState:
    """State of the file at `path`: its size, its times of change in ns, its inode.

    A file that is replaced by renaming, written in place or restored to its old time differs in one of them: `ctime_ns`
    is set only by the kernel. The device is left out, because other machines number theirs otherwise.
    """

    path: str
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def file_state(path: Path) -> FileState:
    """Read the state of a file, opened, for network file systems ask their server only then; raises OSError."""
    with path.open("rb") as file:
        info = os.fstat(file.fileno())
    return FileState(str(path), info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def differ_by_inode_alone(before: FileState, after: FileState) -> bool:
    """Return True if all but the inode is common, which some network filesystems forget: only the bytes decide then."""
    return before != after == replace(before, inode=after.inode)
