"""decord: as a list of frames for sampling, and as the plain scripts use it, for `kinodex bench ingest`.

It hangs or takes gigabytes on damaged or HEVC transport streams: run it in a process with limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.base import PickError


class DecordFrames:
    """A `FrameSource`. decord chooses the stream itself and counts time from the first frame."""

    def __init__(self, path: Path) -> None:
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
            images = np.asarray(self._reader.get_batch(indices).asnumpy(), np.uint8)
            times = np.asarray(self._reader.get_frame_timestamp(indices), np.float64)[:, 0]
        except self._failures as error:
            raise PickError(f"decord stops ({_first_line(error)})") from error
        return times, images


def plain_frames(path: Path, fps: float, batch: int) -> Iterator[NDArray[np.uint8]]:
    """Read a video as the scripts that people write do: RGB `[n, height, width, 3]`, `fps` by the average frame rate.

    With `batch` 1, frames are read one by one, by number, else a batch at once, in as many threads as decord chooses.
    Only `kinodex bench ingest` uses this, to compare with. Raises ImportError or OSError where decord does not load,
    decord.DECORDError where it cannot read the video.
    """
    from decord import VideoReader

    video = VideoReader(str(path))
    step = video.get_avg_fps() / fps
    numbers = [round(index * step) for index in range(int((len(video) - 1) / step) + 1)]
    for first in range(0, len(numbers), batch):
        if batch == 1:
            yield video[numbers[first]].asnumpy()[None]
        else:
            yield video.get_batch(numbers[first : first + batch]).asnumpy()


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:200]
