"""The videos of rows of tables.

A row belongs to the videos that it names: by id, address, path (from the table's own folder, or the end of one), file
name, stem or title, in a column of `KEYS`; or by a regular expression for addresses in a column `pattern`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import regex

from kinodex.index.rows import VideoRow
from kinodex.index.text import composed
from kinodex.jobs.errors import UsageError
from kinodex.jobs.metadata.input import MetadataInput
from kinodex.pipeline.filesystems import is_remote
from kinodex.redaction import redact_uri

PATTERN_S = 2.0
"""Seconds that a pattern of a table may look at a path."""


def values_by_video(
    given: MetadataInput, videos: Sequence[VideoRow]
) -> tuple[Mapping[str, Mapping[str, Any]], tuple[str, ...], tuple[str, ...]]:
    """Return the values of each video by the rows that name it, of which the last counts.

    The other two are the rows that fit no video, and those that fit several.
    """
    named: dict[str, list[str]] = defaultdict(list)
    paths = {video.video_id: composed(path_of(video.uri)) for video in videos}
    for video in videos:
        path = PurePosixPath(paths[video.video_id])
        for name in set(map(composed, (video.video_id, video.uri, str(path), path.name, path.stem, video.title))):
            named[name].append(video.video_id)
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    unmatched: list[str] = []
    ambiguous: list[str] = []
    for place, kind, key, row in given.rows:
        if kind == "pattern":
            ids = [id_ for id_, path in paths.items() if _matches(place, key, path)]
        else:
            ids = list(_ids(key, given.folders, named, paths))
            if len(ids) > 1:
                ambiguous.append(f"{place} ({key!r} is the name of {len(ids)} videos)")
                continue
        if not ids:
            unmatched.append(f"{place} ({key!r})")
        for video_id in ids:
            values[video_id] |= row
    return values, tuple(unmatched), tuple(ambiguous)


def _matches(place: str, pattern: str, path: str) -> bool:
    """Look for a pattern of a table in a path; raises UsageError for one that tries ever more ways to match."""
    try:
        return regex.search(composed(pattern), path, timeout=PATTERN_S) is not None
    except TimeoutError as error:
        what = f"got the pattern {pattern!r}, which does not come to an end within {PATTERN_S:g} s at {path}"
        raise UsageError(f"{place}: {what}; leave out repetitions of repetitions") from error


def _ids(
    key: str, folders: Iterable[Path], named: Mapping[str, Sequence[str]], paths: Mapping[str, str]
) -> Sequence[str]:
    """Return the videos of a name: by it as it stands, from a table's folder, or as the end of their path."""
    plain = composed(redact_uri(key.removeprefix("file://")))
    for name in (plain, *(composed(str((folder / plain).resolve())) for folder in folders if not is_remote(plain))):
        if name in named:
            return named[name]
    last = PurePosixPath(plain).name
    return [id_ for id_ in named.get(last, ()) if paths[id_].endswith(f"/{plain}")] if "/" in plain else ()


def path_of(uri: str) -> str:
    return unquote(urlsplit(uri).path) if is_remote(uri) else uri
