"""decord: as a list of frames for sampling, and as the plain scripts use it, for `kinodex bench ingest`.

It hangs or takes gigabytes on damaged or HEVC transport streams: run it in a process with limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.readers import FrameSource, PickError
from kinodex.pipeline.errors import first_line


def decord_frames(path: Path) -> FrameSource:
    """Open a video by decord, which chooses the stream itself and counts time from the first frame."""
    try:
        import decord
    except (ImportError, OSError) as error:
        raise PickError(f"decord does not load ({error}); pip install decord") from error
    failures = (decord.DECORDError, RuntimeError, IndexError)
    try:
        reader = decord.VideoReader(str(path), ctx=decord.cpu(0), num_threads=1)
    except failures as error:
        raise PickError(f"decord opens nothing ({first_line(error)})") from error

    def decode(indices: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        try:
            images = np.asarray(reader.get_batch(indices).asnumpy(), np.uint8)
            return np.asarray(reader.get_frame_timestamp(indices), np.float64)[:, 0], images
        except failures as error:
            raise PickError(f"decord stops ({first_line(error)})") from error

    return len(reader), decode
