"""Repeat a video several times in one file, without encoding it again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path


def repeat_video(path: Path, longer: Path, times: int) -> None:
    """Write the first video stream of `path` to `longer` (.mp4), `times` times in a row, its packets as they are.

    Frames follow each other at a constant rate across the seams. For videos of a constant rate that begin at 0, such as
    `encode_video` writes.
    """
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        if stream.average_rate is None or stream.time_base is None or not stream.frames:
            raise ValueError(f"{path} says neither its frames nor their rate; repeat a file of encode_video")
        length = round(Fraction(stream.frames) / stream.average_rate / stream.time_base)
        with av.open(str(longer), "w") as written:
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
