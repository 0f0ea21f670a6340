"""Files of videos, checked to be those that were indexed, and what is read of them to cut them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kinodex.index.library import LibraryReader
from kinodex.index.rows import SourceRow, VideoRow
from kinodex.pipeline.errors import PipelineError, SourceChanged, SourceError, SourceMissing
from kinodex.pipeline.fetch import content_id, local_copy
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.media.facts import EditFacts, read_edit_facts
from kinodex.pipeline.source import Source
from kinodex.pipeline.stamps import stamp
from kinodex.redaction import redact_uri


@contextmanager
def video_file(library: LibraryReader, video: VideoRow, *, is_here: bool = False) -> Iterator[Path]:
    """Provide the path of a video's file, for a remote one of a copy that is deleted on leaving.

    Where its address cannot be read, the other places where an ingest found it are tried, with `is_here` those of this
    machine. Equal size and mark of change show that the bytes are those that were indexed; else all of them are read.
    Raises the SourceError of its own address: it is not there, cannot be read, or holds other bytes by now.
    """
    if not video.frames:
        raise SourceMissing(f"{video.title}: was imported as text; there is no file to cut")
    places = library.ingest_log.places(video)
    places.sort(key=lambda place: redact_uri(place.uri) != redact_uri(video.uri))
    with ExitStack() as held:
        yield _first_file(video, [each for each in places if not (is_here and is_remote(each.uri))], held)


def _first_file(video: VideoRow, places: Sequence[SourceRow], held: ExitStack) -> Path:
    first: SourceError | None = None
    for place in places:
        try:
            path = held.enter_context(local_copy(Source(place.uri, video.title)))
            now, noted = stamp(Source(place.uri, video.title)), (place.video_id, place.size_bytes, place.stamp)
            is_unchanged = now is not None and noted == (video.video_id, now.size_bytes, now.mark)
            if is_unchanged or content_id(path) == video.video_id:
                return path
            raise SourceChanged(
                f"{redact_uri(place.uri)}: holds other bytes than those that were indexed; ingest it again first"
            )
        except SourceError as error:
            first = first or error
    assert first is not None  # a video has one place at least
    raise first


def edit_facts_of(library: LibraryReader, videos: Iterable[VideoRow]) -> dict[str, EditFacts]:
    """Read start time codes and times of frames, by video id, of those whose file is on this machine and unchanged."""
    found = {}
    for video in {each.video_id: each for each in videos}.values():
        if is_remote(video.uri):
            continue  # a whole film would be fetched for a few bytes
        try:
            with video_file(library, video, is_here=True) as path:
                found[video.video_id] = read_edit_facts(path, video.title)
        except PipelineError:  # without its file a video is counted by its rate, as remote ones are
            continue
    return found
