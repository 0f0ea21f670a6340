"""Files of a source: one file, all of a folder, or all of a zip archive; a bad one does not stop the others."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from kinodex.jobs.errors import UnreadableText, UsageError
from kinodex.jobs.json_files import parse_json
from kinodex.jobs.text_import.video_text import ReadFailure, ReadResult
from kinodex.pipeline.errors import SubtitleError
from kinodex.pipeline.sources import walk

SMALL_BYTES, MOST_TIMES = 64_000_000, 50
"""Texts of an archive are read if they take no more than this, or than this many times the archive's own size."""


def read_files(
    source: Path, suffixes: Collection[str], texts_of: Callable[[str, bytes], Iterable[ReadResult]]
) -> Iterator[ReadResult]:
    """Apply `texts_of` to the name and the bytes of every file that has one of these suffixes; raises UsageError."""
    found = False
    for name, read in _files(source, suffixes):
        found = True
        try:
            data = read()
        except (OSError, zipfile.BadZipFile, RuntimeError) as error:  # RuntimeError: a member is encrypted
            message = f"{name}: cannot be read ({error}); repair the file or remove it"
            yield ReadFailure(name, None, UnreadableText.__name__, message)
            continue
        try:
            yield from texts_of(name, data)
        except (UnreadableText, SubtitleError) as error:
            yield ReadFailure(name, None, type(error).__name__, str(error))
    if not found:
        raise UsageError(
            f"got {source}, which holds no text; give {', '.join(sorted(suffixes))} files, or a zip of them"
        )


def _files(source: Path, suffixes: Collection[str]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """List files by their names in the folder or archive, in order and without hidden ones, with their readers."""
    if source.is_dir():
        unread: list[str] = []
        files = sorted(Path(folder, name) for folder, names in walk(str(source), unread) for name in names)
        for path in files:
            name = path.relative_to(source).as_posix()
            if _is_wanted(name, suffixes) and path.is_file():
                yield name, path.read_bytes
        for place in map(Path, unread):  # reading one says why
            yield place.relative_to(source).as_posix(), place.read_bytes
    elif not source.is_file():
        raise UsageError(f"got {source}, which does not exist; give a file, a folder or a zip archive on this machine")
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            members = _members(source, archive, suffixes)
            _check_unpacked(source, members.values())
            for name in sorted(members):
                yield name, partial(archive.read, members[name])  # no more of it than it says that there is
    elif source.suffix.lower() == ".zip":
        raise UsageError(
            f"got {source}, which is no whole zip archive; copy it again, or unpack it and give the folder"
        )
    elif _is_wanted(source.name, suffixes):
        yield source.name, source.read_bytes


def _members(source: Path, archive: zipfile.ZipFile, suffixes: Collection[str]) -> dict[str, zipfile.ZipInfo]:
    """Return the texts of an archive by name, with / between folders, for which Windows may write \\.

    Raises UsageError.
    """
    members: dict[str, zipfile.ZipInfo] = {}
    for each in archive.infolist():
        name = each.filename.replace("\\", "/")
        if _is_wanted(name, suffixes) and members.setdefault(name, each) is not each:
            raise UsageError(f"got {source}, which holds two files called {name}; unpack it, and give the folder")
    return members


def _check_unpacked(source: Path, members: Iterable[zipfile.ZipInfo]) -> None:
    """Raise UsageError for an archive that unpacks to more than texts do."""
    unpacked_bytes = sum(each.file_size for each in members)
    most_bytes = max(SMALL_BYTES, MOST_TIMES * source.stat().st_size)
    if unpacked_bytes > most_bytes:
        raise UsageError(
            f"got {source}, whose texts unpack to {unpacked_bytes / 1e6:,.0f} MB, and of an archive of its size "
            f"{most_bytes / 1e6:,.0f} MB are taken; unpack it yourself, and give the folder"
        )


def _is_wanted(name: str, suffixes: Collection[str]) -> bool:
    path = PurePosixPath(name)
    hidden = any(
        (part.startswith(".") and part != "..") or part == "__MACOSX" for part in path.parts
    )  # a video's id may begin with __
    return path.suffix.lower() in suffixes and not hidden


def stem(name: str) -> str:
    return PurePosixPath(name).stem


def json_of(name: str, data: bytes) -> Any:
    """Parse the JSON document in a file; raises UnreadableText."""
    try:
        return parse_json(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableText(f"{name}: is not JSON ({error}); repair the file or remove it") from error
