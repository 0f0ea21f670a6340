"""The file of a video of a library: reached where it was when it was indexed, and still with the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from index.library_reader import LibraryReader
from index.redact import redact_uri
from index.rows import SourceRow, VideoRow
from index.store.filters import one_of
from pipeline.errors import PipelineError, SourceChanged, SourceMissing
from pipeline.media.facts import EditFacts, read_edit_facts
from pipeline.sources.fetch import Source, content_id, is_remote, local_copy, stamp


@contextmanager
def video_file(library: LibraryReader, video: VideoRow) -> Iterator[Path]:
    """Provide the path of a video's file, for a remote one of a copy that is deleted on leaving.

    Equal size and mark of change show that the bytes are those that were indexed; else all of them are read.

    Raises:
        SourceMissing: it was imported as text, or nothing is there any more.
        SourceForbidden, SourceUnreachable: it cannot be read.
        SourceChanged: its bytes are others by now.
    """
    if not video.frames:
        raise SourceMissing(f"{video.title}: was imported as text; there is no file to cut")
    source = Source(video.uri, video.title)
    with local_copy(source) as path:
        if not _is_unchanged(library, video, source) and content_id(path) != video.video_id:
            raise SourceChanged(
                f"{redact_uri(video.uri)}: holds other bytes than those that were indexed; ingest it again first"
            )
        yield path


def edit_facts_of(library: LibraryReader, videos: Iterable[VideoRow]) -> dict[str, EditFacts]:
    """Read start time codes and times of frames, by video id, of those whose file is on this machine and unchanged."""
    found = {}
    for video in {each.video_id: each for each in videos}.values():
        if is_remote(video.uri):
            continue  # a whole film would be fetched for a few bytes
        try:
            with video_file(library, video) as path:
                found[video.video_id] = read_edit_facts(path, video.title)
        except PipelineError:  # without its file a video is counted by its rate, as remote ones are
            continue
    return found


def _is_unchanged(library: LibraryReader, video: VideoRow, source: Source) -> bool:
    now = stamp(source)
    rows = library.tables.rows("sources", one_of("uri", [video.uri, redact_uri(video.uri)])).to_pylist()
    known = [SourceRow(**row) for row in rows]
    return now is not None and any(
        (row.video_id, row.size_bytes, row.stamp) == (video.video_id, now.size_bytes, now.mark) for row in known
    )
