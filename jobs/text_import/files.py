"""Files of a source: one file, all of a folder, or all of a zip archive; a bad one does not stop the others."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from jobs.benchmarks.samples import parse_json
from jobs.errors import UnreadableText, UsageError
from jobs.text_import.types import ReadFailure, ReadResult
from pipeline.errors import SubtitleError


class _TextFile(NamedTuple):
    name: str
    """Its path below the folder or in the archive."""
    read: Callable[[], bytes]


def read_files(
    source: Path, suffixes: Collection[str], texts_of: Callable[[str, bytes], Iterable[ReadResult]]
) -> Iterator[ReadResult]:
    """Apply `texts_of` to the name and the bytes of every file that has one of these suffixes.

    Raises UsageError if the source does not exist, or holds no such file.
    """
    found = False
    for file in _files(source, suffixes):
        found = True
        try:
            yield from texts_of(file.name, _content(file))
        except (UnreadableText, SubtitleError) as error:
            yield ReadFailure(file.name, None, type(error).__name__, str(error))
    if not found:
        raise UsageError(
            f"got {source}, which holds no text; give {', '.join(sorted(suffixes))} files, or a zip of them"
        )


def _content(file: _TextFile) -> bytes:
    try:
        return file.read()
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:  # RuntimeError: a member is encrypted
        raise UnreadableText(f"{file.name}: cannot be read ({error}); repair the file or remove it") from error


def _files(source: Path, suffixes: Collection[str]) -> Iterator[_TextFile]:
    """List the files in the order of their names, without hidden ones."""
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            name = path.relative_to(source).as_posix()
            if _is_wanted(name, suffixes) and path.is_file():
                yield _TextFile(name, path.read_bytes)
    elif not source.is_file():
        raise UsageError(f"got {source}, which does not exist; give a file, a folder or a zip archive on this machine")
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            for name in sorted(archive.namelist()):
                if _is_wanted(name, suffixes):
                    yield _TextFile(name, partial(archive.read, name))
    elif _is_wanted(source.name, suffixes):
        yield _TextFile(source.name, source.read_bytes)


def _is_wanted(name: str, suffixes: Collection[str]) -> bool:
    path = PurePosixPath(name)
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)  # a video's id may begin with __
    return path.suffix.lower() in suffixes and not hidden


def stem(name: str) -> str:
    return PurePosixPath(name).stem


def json_of(name: str, data: bytes) -> Any:
    """Parse the JSON document in a file; raises UnreadableText."""
    try:
        return parse_json(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableText(f"{name}: is not JSON ({error}); repair the file or remove it") from error
