"""Folder that an export writes: new or empty at first, continued after a kill, and whole once its work is moved in.

All is written under `.unfinished/` beside a note of the export's settings and parts, moved to its place when every part
is there, and the note goes last. So who opens the folder too early finds nothing in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from jobs.errors import UsageError

UNFINISHED = ".unfinished"
NOTE, LOCK = "export.json", "lock"


@dataclass(frozen=True, slots=True)
class Target:
    """A folder that is being written, by this process alone."""

    folder: Path
    plan: Mapping[str, Any]
    """Parts of the export, as JSON holds them: those that its first run planned."""
    is_continued: bool

    @property
    def work(self) -> Path:
        """The folder for what is not finished."""
        return self.folder / UNFINISHED

    def write(self, name: str, fill: Callable[[Path], None]) -> None:
        """Write one file of the work by a function that gets a path, so that it is there whole or not at all."""
        self.work.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        partial = self.work / "partial"
        fill(partial)
        _move(partial, self.work / name)

    def write_bytes(self, name: str, content: bytes | str) -> None:
        """Write one file of the work with this content, of a text in UTF-8 with its line ends as they are."""
        data = content.encode() if isinstance(content, str) else content

        def fill(path: Path) -> None:
            path.write_bytes(data)

        self.write(name, fill)

    def has(self, name: str) -> bool:
        """True if this file of the work was written, by an earlier run too."""
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
    """Begin an export into a folder that is new or empty, or go on with one of the same settings.

    `plan` is called when it begins. Raises UsageError for a folder that holds anything else, and while another process
    writes it.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"got {folder}, which is a file; give a folder that is new or empty")
    work = folder / UNFINISHED
    _check_vacant(folder)
    work.mkdir(parents=True, exist_ok=True)
    with (work / LOCK).open("w") as lock:
        _take(lock, folder)
        known = _read_note(work / NOTE)
        if known is None:
            planned = dict(plan())
            _write_note(work, {"settings": dict(settings), "plan": planned})
        else:
            _check_same(folder, known["settings"], settings)
            planned = known["plan"]
        yield Target(folder, planned, known is not None)


def _check_vacant(folder: Path) -> None:
    """Raise UsageError for a folder with other things than an unfinished export."""
    held = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    if not (folder / UNFINISHED / NOTE).exists() and [name for name in held if name != UNFINISHED]:
        raise UsageError(f"got {folder}, which is not empty ({held[0]}); give a folder that is new or empty")


def _take(lock: TextIO, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"got {folder}, which another export writes at this moment; give another folder") from error


def _read_note(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    note: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return note


def _write_note(work: Path, note: Mapping[str, Any]) -> None:
    partial = work / "partial"
    partial.write_text(json.dumps(note), encoding="utf-8")
    _move(partial, work / NOTE)


def _check_same(folder: Path, known: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    changed = sorted(name for name in {*known, *settings} if known.get(name) != settings.get(name))
    if changed:
        raise UsageError(
            f"got {folder}, an unfinished export with another {' and '.join(changed)}; give what it was begun with, or "
            "delete the folder"
        )


def _move(source: Path, target: Path) -> None:
    """Move a file or folder once its bytes are on the disk: after a power cut it is whole or not there."""
    files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
    for path in files:
        with path.open("rb") as written:
            os.fsync(written.fileno())
    source.rename(target)
