"""Find a video by any of its names, or several by a glob."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from index.errors import UnknownVideo
from index.rows import VideoRow

MIN_PREFIX = 4
NAMES_SHOWN = 5


def find_video(videos: Mapping[str, VideoRow], name: str) -> VideoRow:
    """Find the one video of that id, id prefix, title, file name or URI; raises UnknownVideo."""
    if name in videos:
        return videos[name]
    named = _named(videos, name)
    if not named and len(name) >= MIN_PREFIX:
        named = [row for row in videos.values() if row.video_id.startswith(name)]
    if len(named) == 1:
        return named[0]
    if named:
        several = _listed([f"{row.title} ({row.video_id[:12]})" for row in named])
        raise UnknownVideo(f"got video {name!r}, which is a name of {len(named)} videos: {several}; give an id")
    if not videos:
        raise UnknownVideo(f"got video {name!r}, but the library holds no video yet; ingest some")
    titles = [row.title for row in videos.values()]
    near = get_close_matches(name, titles, n=NAMES_SHOWN, cutoff=0.3) or sorted(titles)
    raise UnknownVideo(f"got video {name!r}, which is none of the {len(videos)} here, such as {_listed(near)}")


def matching_videos(videos: Mapping[str, VideoRow], pattern: str) -> list[VideoRow]:
    """Find videos whose title, or whose URI from its end, matches a glob: `holiday-*`, `2026/*.mp4`; by title.

    None where a video has exactly this name, such as `film [abc].mp4`: that one is meant, not `film a.mp4`.
    """
    if _named(videos, pattern):
        return []
    found = [row for row in videos.values() if fnmatchcase(row.title, pattern) or PurePosixPath(row.uri).match(pattern)]
    return sorted(found, key=lambda row: (row.title, row.video_id))


def _named(videos: Mapping[str, VideoRow], name: str) -> list[VideoRow]:
    return [row for row in videos.values() if name in (row.title, row.uri, PurePosixPath(row.uri).name)]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown + (", ..." if len(names) > NAMES_SHOWN else "")
