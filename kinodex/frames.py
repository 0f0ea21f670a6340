"""Stored frames for users of the front door, with their pictures as PIL and numpy have them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from kinodex.index.rows import StoredFrame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Frame(StoredFrame):
    """A stored frame: the picture on screen from `time_s` (seconds, as a player shows them) until the next one."""

    jpeg: bytes = field(repr=False)

    @property
    def image(self) -> Image:
        """The frame as an RGB picture; raises `PictureError` if the stored one cannot be read."""
        from kinodex.jobs.library import picture_of

        return picture_of(self)

    @property
    def array(self) -> NDArray[np.uint8]:
        """The frame as `[height, width, 3]` of uint8, RGB; raises `PictureError`."""
        import numpy as np

        return np.asarray(self.image)


def frame_of(row: StoredFrame) -> Frame:
    """Make a frame of the library's row."""
    return Frame(**{each.name: getattr(row, each.name) for each in fields(StoredFrame)})
