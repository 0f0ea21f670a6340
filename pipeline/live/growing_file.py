"""A file that is being written."""

from __future__ import annotations

import io
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from kinodex.pipeline.decoding.frame_times import time_base
from kinodex.pipeline.decoding.stream import choose_stream, demuxed
from kinodex.pipeline.errors import PlaylistRefused, SourceMissing
from kinodex.pipeline.playlists import kind_by_head

LOOK_S = 0.2
"""Seconds between two looks at a file that has not grown."""


class Growing(io.RawIOBase):
    """A file that ends only when it has not grown for `patience_s` seconds."""

    def __init__(self, file: io.RawIOBase, patience_s: float) -> None:
        self._file, self._patience_s = file, patience_s

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        until = time.monotonic() + self._patience_s
        while not (found := self._file.read(size)) and time.monotonic() < until:
            time.sleep(LOOK_S)
        return found or b""


def await_bytes(path: Path, name: str, patience_s: float) -> None:
    until = time.monotonic() + patience_s
    while not path.is_file() or not path.stat().st_size:
        if time.monotonic() > until:
            raise SourceMissing(f"{name}: no such file, or nothing in it, after {patience_s:g} s; check the path")
        time.sleep(LOOK_S)
    with path.open("rb") as file:
        if kind := kind_by_head(file.read(4096)):
            raise PlaylistRefused(f"{name}: a playlist ({kind}) on this disk; give its address on a web server")


def last_shown(path: Path, name: str) -> tuple[float, float]:
    """Return the time, in the run, of the last packet that is there, and when the file was written so far."""
    import av

    written_at = path.stat().st_mtime
    times: list[Fraction] = []
    with path.open("rb") as file, suppress(av.FFmpegError), demuxed(file, name) as container:
        stream = choose_stream(container, name)
        for packet in container.demux(stream):
            if packet.pts is not None:
                times = [min([*times[:1], packet.pts * time_base(stream)]), packet.pts * time_base(stream)]
    return (float(times[-1] - times[0]) if times else 0.0), written_at
