"""Files taken out of the system's memory, so that the next reader gets them from the disk."""

from __future__ import annotations

import os
from pathlib import Path


def forget_files(folder: Path) -> None:
    """Drop the cached pages of all files in a folder, by `posix_fadvise(DONTNEED)`.

    Advice to the system, which keeps what is not written to the disk yet (so this writes it first) or what another
    process has mapped; the disk's own cache, and that of a host around a virtual machine, stay as they are.
    """
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
