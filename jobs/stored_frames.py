"""Frames of a library, decoded to pictures for a model."""

from __future__ import annotations

import io
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from index.library import Library
from index.rows import StoredFrame, VideoRow
from pipeline.errors import PictureError

if TYPE_CHECKING:
    from PIL.Image import Image

BATCHES_AHEAD = 2
"""Batches of frames that are read and prepared while the model computes."""


def stored_pictures(
    library: Library, video: VideoRow, batch: int
) -> Generator[list[tuple[StoredFrame, Image]], None, None]:
    """Read all frames of a video in time order, `batch` at a time; raises PictureError."""
    numbers = library.vectors(video.video_id).frame_no.tolist()
    for first in range(0, len(numbers), batch):
        frames = library.frames(video.video_id, numbers[first : first + batch])
        yield [(frame, picture_of(frame)) for frame in frames]


def frames_between(
    library: Library, video: VideoRow, spans_s: Sequence[tuple[float, float]], count: int
) -> list[list[StoredFrame]]:
    """Read for each `[start_s, end_s)` the frame shown in the middle of each of `count` equal parts; no frame twice."""
    times_s = [start_s + (end_s - start_s) * (n + 0.5) / count for start_s, end_s in spans_s for n in range(count)]
    latest_s = video.end_s - 1e-6  # a segment may end by rounding a little after the video
    frames = library.frames_at(video.video_id, [min(time_s, latest_s) for time_s in times_s], mode="shown")
    shown = [frames[first : first + count] for first in range(0, len(frames), count)]
    return [list({frame.frame_no: frame for frame in each}.values()) for each in shown]


def picture_of(frame: StoredFrame) -> Image:
    """Decode a frame to an RGB picture."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(frame.jpeg)) as picture:
            return picture.convert("RGB")
    except (OSError, UnidentifiedImageError) as error:
        raise _unreadable(frame, error) from error


def grey_values(frame: StoredFrame, side_px: int = 96) -> NDArray[np.uint8]:
    """Decode a frame's grey values `[height, width]`, small, which costs a tenth of the whole; raises PictureError."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(frame.jpeg)) as picture:
            picture.draft("L", (side_px, side_px))
            return np.asarray(picture.convert("L"))
    except (OSError, UnidentifiedImageError) as error:
        raise _unreadable(frame, error) from error


def shrunk_jpeg(frame: StoredFrame, side_px: int, quality: int) -> bytes:
    """The frame's own JPEG, re-encoded only if its longest side is above `side_px`; raises PictureError."""
    if max(frame.width_px, frame.height_px) <= side_px:
        return frame.jpeg
    picture, smaller = picture_of(frame), io.BytesIO()
    picture.thumbnail((side_px, side_px))
    picture.save(smaller, "JPEG", quality=quality)
    return smaller.getvalue()


def _unreadable(frame: StoredFrame, error: Exception) -> PictureError:
    where = f"frame {frame.frame_no} of video {frame.video_id[:12]}"
    return PictureError(f"{where}: the stored picture cannot be read ({error}); ingest the video again")
