"""Films that show text at known times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

RATE = 4
"""Pictures a second."""


def text_film(
    path: Path, scenes: Sequence[tuple[float, str]], size: tuple[int, int] = (480, 270), letters_px: int = 36
) -> Path:
    """Write a film of scenes, each of this many seconds with a text on blue; an empty text is a scene without one.

    A grey square moves below the text, so that no picture equals the one before.
    """
    import av
    from PIL import Image, ImageDraw, ImageFont

    font, number = ImageFont.load_default(letters_px), 0
    with av.open(str(path), "w") as file:
        video = file.add_stream("libx264", rate=RATE)
        video.width, video.height, video.pix_fmt = *size, "yuv420p"
        video.options = {"preset": "ultrafast", "crf": "18", "threads": "1"}
        for seconds, text in scenes:
            for _ in range(round(RATE * seconds)):
                picture = Image.new("RGB", size, (20, 30, 90))
                ImageDraw.Draw(picture).text((size[0] // 12, size[1] // 6), text, "white", font)
                x = 8 * number % size[0]
                ImageDraw.Draw(picture).rectangle((x, size[1] - 40, x + 20, size[1] - 20), (90, 90, 90))
                frame = av.VideoFrame.from_ndarray(np.asarray(picture), format="rgb24")
                frame.pts, number = number, number + 1
                file.mux(video.encode(frame))
        file.mux(video.encode())
    return path
