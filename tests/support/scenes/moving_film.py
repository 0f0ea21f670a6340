"""Films of a bright square that crosses the picture: to the right and to the left through the same frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

COLOURS = {"red": (230, 30, 30), "green": (30, 200, 30), "blue": (40, 60, 240)}
RATE = 10
WIDTH, HEIGHT, SIDE = 96, 54, 14


def moving_film(path: Path, parts: Sequence[tuple[str, str]], part_s: float = 4.0) -> Path:
    """Write parts of this many seconds, each a colour and `right`, `left` or `still`."""
    import av

    with av.open(str(path), "w") as file:
        video = file.add_stream("libx264", rate=RATE)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv444p"
        video.options = {"preset": "ultrafast", "threads": "1", "crf": "12"}
        number = 0
        for colour, way in parts:
            count = round(part_s * RATE)
            for at in range(count):
                share = {"right": at / (count - 1), "left": 1 - at / (count - 1), "still": 0.5}[way]
                pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
                left = round(share * (WIDTH - SIDE))
                pixels[20 : 20 + SIDE, left : left + SIDE] = COLOURS[colour]
                frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                frame.pts = number
                file.mux(video.encode(frame))
                number += 1
        file.mux(video.encode())
    return path
