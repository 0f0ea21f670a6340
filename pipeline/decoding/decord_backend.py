"""decord as a list of frames.

It hangs or takes gigabytes on damaged or HEVC transport streams: run it in a process with limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.select import PickError


class DecordFrames:
    """A `pipeline.decoding.select.FrameSource`. decord chooses the stream itself and counts time from the first frame."""

    def __init__(self, path: Path, stream_index: int) -> None:
        try:
            import decord
        except (ImportError, OSError) as error:
            raise PickError(f"decord does not load ({error}); pip install decord") from error
        self._failures = (decord.DECORDError, RuntimeError, IndexError)
        try:
            self._reader = decord.VideoReader(str(path), ctx=decord.cpu(0), num_threads=1)
        except self._failures as error:
            raise PickError(f"decord opens nothing ({_first_line(error)})") from error

    def __len__(self) -> int:
        return len(self._reader)

    def __call__(self, indices: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """See `FrameSource`."""
        try:
            pictures = np.asarray(self._reader.get_batch(indices).asnumpy(), np.uint8)
            times = np.asarray(self._reader.get_frame_timestamp(indices), np.float64)[:, 0]
        except self._failures as error:
            raise PickError(f"decord stops ({_first_line(error)})") from error
        return times, pictures


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:200]
