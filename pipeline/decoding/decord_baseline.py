"""How the scripts that people write use decord: what `kinodex bench ingest` compares with, and nothing else uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def plain_frames(path: Path, fps: float, batch: int) -> Iterator[NDArray[np.uint8]]:
    """RGB pictures `[n, height, width, 3]`, `fps` a second by the average frame rate, `batch` at a time.

    With `batch` 1 each is asked for by its number, else a batch at once, in all the threads that decord likes.
    Raises ImportError or OSError where decord does not load, decord.DECORDError where it cannot read the video.
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
