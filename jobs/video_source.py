"""The source of a video of a library, fetched again: for stages that need more than the stored frames."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from index.library import Library
from index.maintenance.repair import FileFacts
from index.rows import VideoRow
from pipeline.decoding.open import open_video
from pipeline.errors import PipelineError, SourceError, SourceMissing
from pipeline.sources.fetch import FetchedVideo, Source, identify, is_remote, scratch_folder


@contextmanager
def source_of(library: Library, video: VideoRow) -> Iterator[FetchedVideo]:
    """Fetch the bytes of a video from any of its sources that still has them.

    Raises the SourceError of the first source if they are gone or changed everywhere.
    """
    with scratch_folder() as folder:
        try:
            found = _fetched(video.uri, video, folder)
        except SourceError as error:
            found = _fetched_elsewhere(library, video, folder, error)
        yield found


def read_facts(uri: str, video_id: str) -> FileFacts | None:
    """Read from a file of this machine what a repair needs of it; None if it no longer holds the video."""
    if is_remote(uri):  # fetching a whole library again is for an ingest
        return None
    try:
        with scratch_folder() as folder:
            found = identify(Source(uri, uri), folder, allow_playlists=True)
            with open_video(Path(found.path), uri, playlist=found.is_playlist) as video:
                known = video.metadata
    except PipelineError:
        return None
    return FileFacts(known.fps, known.width_px, known.height_px, known.codec) if found.video_id == video_id else None


def _fetched(uri: str, video: VideoRow, folder: Path) -> FetchedVideo:
    found = identify(Source(uri, video.title), folder, allow_playlists=True)
    if found.video_id != video.video_id:
        raise SourceMissing(f"{uri}: holds another video by now; put the old one back, or ingest the new one")
    return found


def _fetched_elsewhere(library: Library, video: VideoRow, folder: Path, error: SourceError) -> FetchedVideo:
    """Fetch from another source that ingest found to be the same video."""
    same = [
        row.uri
        for row in library.ingest_log.sources().values()
        if row.video_id == video.video_id and row.uri != video.uri
    ]
    for uri in sorted(same):
        with suppress(SourceError):
            return _fetched(uri, video, folder)
    raise error
