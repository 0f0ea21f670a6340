"""Watch a page of the web: its video, subtitles and chapters into a library that is kept, to be asked about.

A page is read by yt-dlp (the extra `watch`), a file by plain HTTP. What was watched before is not fetched again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from kinodex.index.annotations.chapters import CHAPTERS
from kinodex.index.errors import NotALibrary
from kinodex.index.library import Library
from kinodex.index.rows import ChapterRow, SegmentRow, VideoRow
from kinodex.ingestion import ingest
from kinodex.jobs.errors import UsageError
from kinodex.page_downloads import download
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.sources import VIDEO_SUFFIXES, read_download
from kinodex.redaction import redact_uri

PAGE_CHAPTERS = "chapters of the page"
"""The model of chapters that a page gives."""


def watched_place() -> Path:
    """Return the folder of what was watched, in the user's data (`XDG_DATA_HOME`): `library`, and `films` beside it."""
    home = os.environ.get("XDG_DATA_HOME", "")
    root = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "share"
    return root / "kinodex" / "watched"


def watch(address: str, library: str, **settings: Any) -> VideoRow:
    """Index the video of a page or a file on the web into a library, unless it is there; returns its row.

    `settings` are those of `kinodex.ingest`. Raises UsageError for what is no address on the web, a live broadcast or a
    list of videos, SourceForbidden for what may not be fetched, SourceUnreachable, or as `kinodex.ingest` does.
    """
    shown = redact_uri(address)
    if not is_remote(address) or urlsplit(address).scheme not in ("http", "https"):
        raise UsageError(f"got {shown}, which is no address on the web; `kinodex ingest` takes files and folders")
    if (known := _known(address, library)) is not None:
        return known
    is_file = PurePosixPath(urlsplit(address).path).suffix.lower() in VIDEO_SUFFIXES
    film = address if is_file else str(download(address, watched_place() / "films"))
    (outcome,) = ingest(film, library=library, **settings).outcomes
    if outcome.video_id is None:
        raise UsageError(f"cannot index {shown}: {outcome.problem}")
    opened = Library.open(library)
    video = opened.video(outcome.video_id)
    if not is_file:
        _add_chapters(opened, video, read_download(film).get("chapters") or [])
    return video


def _known(address: str, library: str) -> VideoRow | None:
    """Return the video of a library that was fetched from this address."""
    try:
        opened = Library.open(library)
    except NotALibrary:
        return None
    videos = opened.videos()
    columns = opened.metadata.of([row.video_id for row in videos])  # of a page, ingest has kept the address
    pages = {video_id: found.get("webpage_url") for video_id, found in columns.items()}
    return next((row for row in videos if address in (row.uri, pages.get(row.video_id))), None)


def _add_chapters(library: Library, video: VideoRow, chapters: Sequence[Mapping[str, Any]]) -> None:
    """Keep the chapters that a page gives as those of a model are, to be searched and shown."""
    rows = list(_rows(video, library.segments(video.video_id), chapters))
    if not rows:
        return
    with library.lease(f"add {CHAPTERS}", "kinodex watch"):
        library.additions.discard_leftovers(CHAPTERS, PAGE_CHAPTERS)
        library.chapters.add({video.video_id: rows})
        library.additions.complete(CHAPTERS, PAGE_CHAPTERS, {video.video_id: len(rows)}, {})


def _rows(
    video: VideoRow, segments: Sequence[SegmentRow], chapters: Sequence[Mapping[str, Any]]
) -> Iterator[ChapterRow]:
    number = 0
    for each in chapters:
        start_s, end_s, title = each.get("start_time"), each.get("end_time"), str(each.get("title") or "")
        if not isinstance(start_s, int | float) or not isinstance(end_s, int | float) or not start_s < end_s:
            continue
        within = [at for at, segment in enumerate(segments) if start_s <= segment.start_s < end_s]
        first = within[0] if within else 0
        span = float(start_s), min(float(end_s), video.duration_s), first, len(within)
        yield ChapterRow(video.video_id, "chapter", number, *span, title, "", PAGE_CHAPTERS)
        number += 1
