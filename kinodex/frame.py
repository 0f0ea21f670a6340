"""Stored frames for users of the front door: by time, of a hit, or all; their pictures as PIL and numpy have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from index.rows import StoredFrame
from kinodex.arguments import usage_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    from index.library_reader import LibraryReader
    from index.rows import Hit, VideoRow

FRAMES_A_READ = 64
"""Frames read at a time by `frames_of`."""


@dataclass(frozen=True, slots=True)
class Frame(StoredFrame):
    """A stored frame: the picture on screen from `time_s` (seconds, as a player shows them) until the next one."""

    jpeg: bytes = field(repr=False)

    @property
    def image(self) -> Image:
        """The frame as an RGB picture; raises `PictureError` if the stored one cannot be read."""
        from jobs.stored_frames import picture_of

        return picture_of(self)

    @property
    def array(self) -> NDArray[np.uint8]:
        """The frame as `[height, width, 3]` of uint8, RGB; raises `PictureError`."""
        import numpy as np

        return np.asarray(self.image)


def frame_of(row: StoredFrame) -> Frame:
    """Make a frame of the library's row."""
    return Frame(**{each.name: getattr(row, each.name) for each in fields(StoredFrame)})


def frames_at(reader: LibraryReader, video: VideoRow, times_s: Sequence[float]) -> list[Frame]:
    """Read the frames on screen at these times, in this order; raises `TimeOutside`."""
    if isinstance(times_s, int | float):
        raise usage_error(f"got {times_s} for times_s; give a list of times, such as [{times_s}]")
    return [frame_of(row) for row in reader.frames_at(video.video_id, list(times_s), mode="shown")]


def frame_of_hit(reader: LibraryReader, hit: Hit) -> Frame:
    """Read the frame that was found, or the one on screen when a line or caption begins."""
    if hit.frame_no is not None:
        (row,) = reader.frames(hit.video_id, [hit.frame_no])
    else:
        (row,) = reader.frames_at(hit.video_id, [hit.time_s], mode="nearest")
    return frame_of(row)


def frames_of(reader: LibraryReader, video: VideoRow) -> Iterator[Frame]:
    """Read all frames of a video in time order, a few at a time."""
    numbers = reader.vectors(video.video_id).frame_no.tolist()
    for first in range(0, len(numbers), FRAMES_A_READ):
        for row in reader.frames(video.video_id, numbers[first : first + FRAMES_A_READ]):
            yield frame_of(row)
