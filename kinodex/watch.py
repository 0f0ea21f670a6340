"""Watch a page of the web: its video, subtitles and chapters into a library that is kept, to be asked about.

A page is read by yt-dlp (the extra `watch`), a file by plain HTTP. What was watched before is not fetched again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kinodex.frames import ingest
from kinodex.index.annotations.chapters import CHAPTERS
from kinodex.index.errors import NotALibrary
from kinodex.index.library import Library
from kinodex.index.rows import ChapterRow, SegmentRow, VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.errors import SourceForbidden, SourceUnreachable
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.sources import VIDEO_SUFFIXES, read_download
from kinodex.redaction import redact_uri

if TYPE_CHECKING:
    from kinodex.jobs.live import NewRows
    from kinodex.jobs.standing_queries import StandingQueries

PAGE_CHAPTERS = "chapters of the page"
"""The model of chapters that a page gives."""
MOST_HEIGHT_PX = 720
"""Of what is fetched: a frame is stored smaller than that, and embedded smaller still."""
REFUSALS = {
    "drm": "is protected by DRM, which no program may open; give a video that may be downloaded",
    "private": "is private; sign in in a browser, download the file yourself, and give that to `kinodex ingest`",
    "sign in": "is shown to those who sign in; download the file yourself, and give that to `kinodex ingest`",
    "log in": "is shown to those who log in; download the file yourself, and give that to `kinodex ingest`",
    "members": "is for members; download the file yourself, and give that to `kinodex ingest`",
    "unsupported url": "is a page in which yt-dlp finds no video; give the address of the video's own page or file",
}
"""What to say for words of yt-dlp's error."""


def watched_place() -> Path:
    """The folder of what was watched, in the user's data (`XDG_DATA_HOME`): `library`, and `films` beside it."""
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
    film = address if is_file else str(_download(address, watched_place() / "films"))
    (outcome,) = ingest(film, library=library, **settings).outcomes
    if outcome.video_id is None:
        raise UsageError(f"cannot index {shown}: {outcome.problem}")
    opened = Library.open(library)
    video = opened.video(outcome.video_id)
    if not is_file:
        _add_chapters(opened, video, read_download(film).get("chapters") or [])
    return video


def _known(address: str, library: str) -> VideoRow | None:
    """The video of a library that was fetched from this address."""
    try:
        opened = Library.open(library)
    except NotALibrary:
        return None
    videos = opened.videos()
    columns = opened.metadata.of([row.video_id for row in videos])  # of a page, ingest has kept the address
    pages = {video_id: found.get("webpage_url") for video_id, found in columns.items()}
    return next((row for row in videos if address in (row.uri, pages.get(row.video_id))), None)


# By yt-dlp.


def _download(address: str, folder: Path) -> Path:
    """Fetch the video of a page with its subtitles and what the page says of it; returns the video's file."""
    import yt_dlp

    joins = shutil.which("ffmpeg") is not None
    best = f"[height<=?{MOST_HEIGHT_PX}]"
    settings: dict[str, Any] = {
        "format": f"bv*{best}+ba/b{best}/bv*/b" if joins else f"b{best}/b/bv*",
        "outtmpl": str(folder / "%(title).80B [%(id).40B].%(ext)s"),
        "noplaylist": True,
        "writeinfojson": True,
        "writesubtitles": True,
        "subtitleslangs": ["all", "-live_chat"],
        "quiet": True,
        "noprogress": True,
        "no_warnings": True,
        "logger": _Silent(),
    }
    try:
        with yt_dlp.YoutubeDL(settings) as client:
            found = client.extract_info(address, download=False)
            _check_fetchable(found, address)
            done = client.process_ie_result(found, download=True)
    except yt_dlp.utils.DownloadError as error:
        raise _refusal(address, str(error.msg)) from error
    return Path(done["requested_downloads"][0]["filepath"])


class _Silent:
    """A logger that says nothing: what matters is raised."""

    def debug(self, message: str) -> None: ...

    def warning(self, message: str) -> None: ...

    def error(self, message: str) -> None: ...


def _check_fetchable(found: Mapping[str, Any], address: str) -> None:
    shown = redact_uri(address)
    if "entries" in found:
        raise UsageError(f"{shown} lists several videos; give the address of one of them")
    if found.get("is_live") or found.get("live_status") in ("is_live", "is_upcoming"):
        raise UsageError(f"{shown} is a live broadcast; give it once it has ended and can be fetched as a whole")


def _refusal(address: str, said: str) -> Exception:
    shown, plain = redact_uri(address), said.lower()
    for words, why in REFUSALS.items():
        if words in plain:
            return SourceForbidden(f"{shown} {why}")
    reason = redact_uri(said.removeprefix("ERROR: ").splitlines()[0][:200])
    return SourceUnreachable(f"cannot fetch {shown}: {reason}")


# Chapters of the page.


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


# A source that grows.


def watch_live(
    address: str,
    library: str | Path,
    *,
    name: str = "",
    queries: StandingQueries | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_rows: Callable[[NewRows], None] = lambda rows: None,
    on_wait: Callable[[str], None] = lambda reason: None,
    part_s: float = 3600.0,
    stall_s: float = 15.0,
    **settings: Any,
) -> None:
    """Put the frames of a source that grows into a library as they come, until it ends or `stop` says so.

    The source is a file that is being written, the address of an HLS playlist, or an rtsp:// address. See
    `kinodex.jobs.live.watch_live`; `settings` are those of `kinodex.ingest`, such as `space="builtin"`, `fps=2.0`.
    """
    from kinodex.frames import library_place
    from kinodex.jobs.ingest.config import held_settings, resolve
    from kinodex.jobs.live import LiveSource
    from kinodex.jobs.live import watch_live as follow

    live = LiveSource(address, name, stall_s=stall_s, part_s=part_s)
    uri = library_place(library)
    config = resolve(settings, {}, {}, None, held_settings(uri), caller="watch").config
    follow(config, live, uri, stop=stop, on_rows=on_rows, on_wait=on_wait, queries=queries)
