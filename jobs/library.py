"""Reading of a library for jobs: its frames as pictures for a model, the sources of its videos, and its tokenizer."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinodex.index.clocks import player_s
from kinodex.index.errors import WeightsMissing
from kinodex.index.kinds import LINE_KINDS, QUOTED_KINDS
from kinodex.index.library import Library, LibraryReader
from kinodex.index.pictures import STORED, NotAPicture, opened_picture
from kinodex.index.repair import FileFacts
from kinodex.index.rows import StoredFrame, VideoRow
from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.errors import PictureError, PipelineError, SourceError, SourceMissing
from kinodex.pipeline.fetch import FetchedVideo, check_unchanged, identify
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.scratch import scratch_folder
from kinodex.pipeline.source import Source

if TYPE_CHECKING:
    from PIL.Image import Image

    from kinodex.agent.protocol.frames import ShownFrame
    from kinodex.agent.protocol.notes import Note

BATCHES_AHEAD = 2
"""Batches of frames that are read and prepared while the model computes."""


log = logging.getLogger(__name__)
T = TypeVar("T")


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Split items into runs of `size`; the last may be shorter."""
    return (items[first : first + size] for first in range(0, len(items), size))


def stored_pictures(
    library: Library, video: VideoRow, batch: int
) -> Generator[list[tuple[StoredFrame, Image]], None, None]:
    """Read all frames of a video in time order, `batch` at a time; raises PictureError."""
    numbers, _ = library.frame_times(video.video_id)
    for some in batched(numbers.tolist(), batch):
        yield [(frame, picture_of(frame)) for frame in library.frames(video.video_id, some)]


def frames_between(
    library: LibraryReader, video: VideoRow, spans_s: Sequence[tuple[float, float]], count: int
) -> list[list[StoredFrame]]:
    """Read for each `[start_s, end_s)` the frame shown in the middle of each of `count` equal parts; no frame twice."""
    times_s = [start_s + (end_s - start_s) * (n + 0.5) / count for start_s, end_s in spans_s for n in range(count)]
    latest_s = video.end_s - 1e-6  # a segment may end by rounding a little after the video
    frames = library.frames_at(video.video_id, [min(time_s, latest_s) for time_s in times_s], mode="shown")
    return [list({frame.frame_no: frame for frame in each}.values()) for each in batched(frames, count)]


def shown_between(
    library: LibraryReader, video: VideoRow, spans_s: Sequence[tuple[float, float]], count: int
) -> list[tuple[ShownFrame, ...]]:
    """Return the same frames as a request to a model has them; none for a `count` of 0."""
    from kinodex.agent.protocol.frames import ShownFrame

    if not (count and spans_s):
        return [() for _ in spans_s]
    found = frames_between(library, video, spans_s, count)
    return [tuple(ShownFrame(**asdict(frame)) for frame in each) for each in found]


def notes_between(
    library: LibraryReader, video_id: str, start_s: float, end_s: float, *, captions: bool = True
) -> list[Note]:
    """Quote the lines of a part, kind by kind; `captions` are left out on request."""
    from kinodex.agent.protocol.notes import Note

    lines = library.lines.rows(video_id, LINE_KINDS if captions else QUOTED_KINDS, start_s, end_s)
    return [Note(video_id, line.start_s, line.end_s, line.source, line.text) for line in lines]


def picture_of(frame: StoredFrame | ShownFrame) -> Image:
    """Decode a frame to an RGB picture; raises PictureError."""
    with _opened(frame) as picture:
        return picture.convert("RGB")


def grey_values(frame: StoredFrame, side_px: int = 96) -> NDArray[np.uint8]:
    """Decode a frame's grey values `[height, width]`, small, which costs a tenth of the whole; raises PictureError."""
    with _opened(frame) as picture:
        picture.draft("L", (side_px, side_px))
        return np.asarray(picture.convert("L"))


def shrunk_jpeg(frame: StoredFrame, side_px: int, quality: int) -> bytes:
    """Return the frame's own JPEG, re-encoded only if its longest side is above `side_px`; raises PictureError."""
    if max(frame.width_px, frame.height_px) <= side_px:
        return frame.jpeg
    picture, smaller = picture_of(frame), io.BytesIO()
    picture.thumbnail((side_px, side_px))
    picture.save(smaller, "JPEG", quality=quality)
    return smaller.getvalue()


@contextmanager
def _opened(frame: StoredFrame | ShownFrame) -> Iterator[Image]:
    try:
        with opened_picture(frame.jpeg, STORED) as picture:
            yield picture
    except NotAPicture as error:
        where = f"frame {frame.frame_no} of video {frame.video_id[:12]}"
        raise PictureError(f"{where}: the stored picture cannot be read ({error}); ingest the video again") from error


@contextmanager
def source_of(library: Library, video: VideoRow) -> Iterator[FetchedVideo]:
    """Fetch the bytes of a video from any source that ingest found to hold it, its own first.

    Raises the SourceError of its own source if they are gone or changed everywhere.
    """
    with scratch_folder() as folder:
        yield _fetched(library, video, folder)


def source_frames(
    library: Library, video: VideoRow, fps: float, side_px: int, quality: int, batch: int
) -> Generator[StoredFrame, None, None]:
    """Decode a source once more, in a process of its own, for frames at times of a player.

    Raises SourceError or VideoError.
    """
    from kinodex.pipeline.images import ModelInput
    from kinodex.pipeline.sample import Chunk, SamplingSettings
    from kinodex.pipeline.sandbox import SandboxLimits, SandboxSampler  # not above: who asks needs no decoder

    settings = SamplingSettings(fps, side_px, quality, "auto", ModelInput(1, 1), batch=batch)  # for no model of a space
    sampler = SandboxSampler(SandboxLimits())
    with source_of(library, video) as found, closing(sampler):
        for part in sampler.sample(Chunk(found), settings):
            for frame in part if isinstance(part, list) else ():
                shown = frame.width_px, frame.height_px, frame.jpeg
                yield StoredFrame(video.video_id, frame.number, player_s(video, frame.time_s), *shown)
        check_unchanged(found)


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
    if found.video_id != video_id:
        return None
    return FileFacts(known.fps, known.width_px, known.height_px, known.codec, known.earliest_s)


def _fetched(library: Library, video: VideoRow, folder: Path) -> FetchedVideo:
    try:
        return _fetched_from(video.uri, video, folder)
    except SourceError:
        for place in library.ingest_log.places(video):
            if place.uri != video.uri:
                with suppress(SourceError):
                    return _fetched_from(place.uri, video, folder)
        raise


def _fetched_from(uri: str, video: VideoRow, folder: Path) -> FetchedVideo:
    found = identify(Source(uri, video.title), folder, allow_playlists=True)
    if found.video_id != video.video_id:
        raise SourceMissing(f"{uri}: holds another video by now; put the old one back, or ingest the new one")
    return found


def fetch_or_note(fetch_tokenizer: Callable[[], None]) -> None:
    """Fetch a space's tokenizer; if it cannot be had, log what will be missing, and go on."""
    try:
        fetch_tokenizer()
    except WeightsMissing as error:
        log.warning("note: %s; frames are embedded without it, a search by words will need it", error)
