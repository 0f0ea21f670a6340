"""Folder that an export writes: new or empty at first, continued after a kill, and whole once its work is moved in.

All is written under `.unfinished/` beside a note of the export's settings and parts, moved to its place when every
part is there, and the note goes last. So who opens the folder too early finds nothing in it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.jobs.errors import UsageError

UNFINISHED = ".unfinished"
NOTE, LOCK = "export.json", "lock"


@dataclass(frozen=True, slots=True)
class Target:
    """A folder that is being written, by this process alone."""

    folder: Path
    plan: Mapping[str, Any]
    """Parts of the export, as JSON holds them: those that its first run planned."""

    @property
    def work(self) -> Path:
        """The folder for what is not finished."""
        return self.folder / UNFINISHED

    def write(self, name: str, fill: Callable[[Path], object]) -> None:
        """Write one file of the work by a function that gets a path, so that it is there whole or not at all."""
        self.work.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        partial = self.work / "partial"
        fill(partial)
        _move(partial, self.work / name)

    def write_bytes(self, name: str, content: bytes | str) -> None:
        """Write one file of the work with this content, of a text in UTF-8 with its line ends as they are."""
        data = content.encode() if isinstance(content, str) else content
        self.write(name, lambda path: path.write_bytes(data))

    def has(self, name: str) -> bool:
        """Return True if this file of the work was written, by an earlier run too."""
        return (self.work / name).exists() or (self.folder / name).exists()

    def finish(self, *names: str) -> None:
        """Move files and folders of the work to their place, in this order, and delete the rest of it."""
        for name in names:
            if (self.work / name).exists():
                _move(self.work / name, self.folder / name)
        (self.work / NOTE).unlink()
        shutil.rmtree(self.work)


@contextmanager
def target_folder(folder: Path, settings: Mapping[str, Any], plan: Callable[[], Mapping[str, Any]]) -> Iterator[Target]:
    """Begin an export into a folder that is new or empty, by a `plan`, or go on with one of the same settings.

    Raises UsageError for a folder that holds anything else, and while another process writes it.
    """
    import fcntl

    if folder.exists() and not folder.is_dir():
        raise UsageError(f"got {folder}, which is a file; give a folder that is new or empty")
    work = folder / UNFINISHED
    held = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    if not (work / NOTE).exists() and [name for name in held if name != UNFINISHED]:
        raise UsageError(f"got {folder}, which is not empty ({held[0]}); give a folder that is new or empty")
    work.mkdir(parents=True, exist_ok=True)
    with (work / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            what = "which another export writes at this moment; give another folder"
            raise UsageError(f"got {folder}, {what}") from error
        if (work / NOTE).exists():
            known = json.loads((work / NOTE).read_text(encoding="utf-8"))
            before = known["settings"]
            changed = sorted(name for name in {*before, *settings} if before.get(name) != settings.get(name))
            if changed:
                raise UsageError(
                    f"got {folder}, an unfinished export with another {' and '.join(changed)}; give what it was begun "
                    "with, or delete the folder"
                )
            yield Target(folder, known["plan"])
            return
        target = Target(folder, dict(plan()))
        target.write_bytes(NOTE, json.dumps({"settings": dict(settings), "plan": target.plan}))
        yield target


def _move(source: Path, target: Path) -> None:
    """Move a file or folder once its bytes are on the disk: after a power cut it is whole or not there."""
    files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
    for path in files:
        with path.open("rb") as written:
            os.fsync(written.fileno())
    source.rename(target)
