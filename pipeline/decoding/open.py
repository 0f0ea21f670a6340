"""Open one video for reading: the frame that is shown at each sample instant, with its exact time.

`frame_times` beside this file defines a frame's time. PyAV is the reference: it reads everything, exactly, whole or in
spans. The other decoders take frames by number and are checked against the packets, which say which frames are needed
and when they are shown: times are exact and the same with every decoder. If one counts frames otherwise, returns one of
another time or size, or fails, PyAV reads the rest, from the first sample that is still missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kinodex.pipeline.decoding.indexed_reader import IndexedReader
from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.decoding.readers import VideoReader
from kinodex.pipeline.decoding.stream import VideoMetadata

DECODERS = ("pyav", "decord", "torchcodec", "nvdec")


@contextmanager
def open_video(
    path: Path, name: str | None = None, *, decoder: str = "pyav", playlist: bool = False
) -> Iterator[VideoReader]:
    """Open `path` by one of `DECODERS`, or "auto", for one pass over its frames; messages call it `name`.

    A `playlist` is allowed only if asked for; its members are to be checked before (`playlist_members`). Raises
    ValueError for an unknown decoder, VideoError, SourceMissing, SourceForbidden or PlaylistRefused.
    """
    chosen = choose_decoder(decoder)
    exact = PyavReader(path, name or path.name, playlist)
    video: VideoReader = exact if chosen == "pyav" else IndexedReader(exact, chosen)
    try:
        yield video
    finally:
        video.close()


def probe(path: Path, name: str | None = None) -> VideoMetadata:
    with open_video(path, name) as video:
        return video.metadata


def choose_decoder(decoder: str) -> str:
    """Return the decoder itself, or for "auto" the cheapest one. Raises ValueError if there is no such decoder.

    The cheapest is PyAV with its packet plan wherever it was measured (docs/decoders.md); codec and rate do not decide.
    NVDEC has not been measured: it is used where it is requested by name.
    """
    if decoder not in (*DECODERS, "auto"):
        raise ValueError(f"decoder {decoder!r} is unknown; choose one of auto, {', '.join(DECODERS)}")
    return "pyav" if decoder == "auto" else decoder
