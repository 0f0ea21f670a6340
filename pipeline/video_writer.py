"""Write videos: of pictures, and of a video several times in a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray


def encode_video(
    frames: Iterable[NDArray[np.uint8]],
    path: Path,
    *,
    width_px: int,
    height_px: int,
    fps: int,
    key_frame_s: int = 10,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Encode frames `[height_px, width_px, 3]` to `path` (.mp4), a key frame at least every `key_frame_s` seconds.

    A frame that is the same object as the one before it shows the same. `tags` are those of the container.

    One encoder thread, so that the same frames give the same bytes: measured at 128x64 and 640x360, 20 runs each. At
    96x64 and 160x96, x264 itself varies by a few bytes now and then.
    """
    import av

    with av.open(str(path), "w") as container:
        container.metadata.update(tags)
        stream = container.add_stream("libx264", rate=fps)
        stream.width, stream.height, stream.pix_fmt = width_px, height_px, "yuv420p"
        stream.options = {"preset": "veryfast", "crf": "26", "threads": "1", "g": str(key_frame_s * fps)}
        before: NDArray[np.uint8] | None = None
        for number, rgb in enumerate(frames):
            if rgb is not before:
                frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")
                before = rgb
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def repeat_video(path: Path, longer: Path, times: int) -> None:
    """Write the first video stream of `path` to `longer`, `times` times in a row; of a constant rate, from 0 on."""
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        if stream.average_rate is None or stream.time_base is None or not stream.frames:
            raise ValueError(f"{path} says neither its frames nor their rate; repeat a file of encode_video")
        length = round(Fraction(stream.frames) / stream.average_rate / stream.time_base)
        with av.open(str(longer), "w") as written:
            written.metadata.update(container.metadata)
            copy = written.add_stream_from_template(stream)
            for turn in range(times):
                container.seek(0)
                for packet in container.demux(stream):
                    if packet.pts is None or packet.dts is None:
                        continue  # the empty packet at the end
                    packet.pts += turn * length
                    packet.dts += turn * length
                    packet.stream = copy
                    written.mux(packet)
