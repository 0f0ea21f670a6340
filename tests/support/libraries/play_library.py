"""Films of every kind that the page plays in a way of its own; each second of them has a picture of its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.index.rows import SourceRow
from kinodex.index.spaces.load import load_text_tower
from tests.support.libraries.random_library import plain_row
from tests.world.drawn_space import DRAWN

FILM_S, FPS = 12, 10
WIDTH_PX, HEIGHT_PX = 192, 108
SOUND_HZ = 48_000
LATE_S = 1.5
"""Time of the first frame of `late.mp4`."""
KINDS = {
    "plain.mp4": ("libx264", "aac"),
    "late.mp4": ("libx264", None),
    "packed.mkv": ("libx264", "pcm_s16le"),
    "old.avi": ("mpeg4", "libmp3lame"),
    "broadcast.ts": ("mpeg2video", "mp2"),
}
WAYS = {"plain": "file", "late": "file", "packed": "remuxed", "old": "transcoded", "broadcast": "transcoded"}
SAID = "1\n00:00:02,000 --> 00:00:05,000\n{}\n"
EVIL = "<b>a --> b</b> & </script>"


def write_films(folder: Path) -> None:
    """Write all kinds, `plain.mp4` with subtitles, and `broken.mp4`, of which only the beginning is an MP4."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (picture, sound) in KINDS.items():
        write_film(folder / name, picture, sound, LATE_S if name == "late.mp4" else 0.0)
    (folder / "plain.srt").write_text(SAID.format(EVIL))


def write_film(path: Path, picture: str, sound: str | None, start_s: float = 0.0, length_s: int = FILM_S) -> None:
    """Write a film with these codecs; a key frame every two seconds, with pictures between that are reordered."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(picture, rate=FPS)
        stream.width, stream.height, stream.pix_fmt = WIDTH_PX, HEIGHT_PX, "yuv420p"
        stream.bit_rate = 2_000_000
        stream.codec_context.gop_size = 2 * FPS
        if picture == "libx264":
            stream.options = {"preset": "veryfast", "crf": "18", "threads": "1", "bf": "2"}
        audio: Any = container.add_stream(sound, rate=SOUND_HZ, layout="stereo") if sound else None
        frames = film_frames(length_s)
        for number, rgb in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = number + round(start_s * FPS), Fraction(1, FPS)
            container.mux(stream.encode(frame))
            if audio is not None:
                container.mux([packet for each in _sound(number, audio) for packet in audio.encode(each)])
        container.mux(stream.encode())
        if audio is not None:
            container.mux(audio.encode())


def film_frames(length_s: int = FILM_S) -> Iterator[NDArray[np.uint8]]:
    """A bright bar that moves to the right over a ground whose grey grows: no two pictures are alike."""
    count = length_s * FPS
    for number in range(count):
        frame = np.full((HEIGHT_PX, WIDTH_PX, 3), 30 + 120 * number // count, np.uint8)
        left = number * (WIDTH_PX - 24) // count
        frame[:, left : left + 24] = (250, 200, 30)
        yield frame


def _sound(number: int, audio: Any) -> Iterator[av.AudioFrame]:
    """A tenth of a second of a tone, in frames as the encoder takes them."""
    count = SOUND_HZ // FPS
    at = np.arange(number * count, (number + 1) * count)
    wave = (0.2 * np.sin(2 * np.pi * 440 * at / SOUND_HZ) * 32767).astype(np.int16)
    frame = av.AudioFrame.from_ndarray(np.repeat(wave, 2)[None], format="s16", layout="stereo")
    frame.sample_rate, frame.pts, frame.time_base = SOUND_HZ, number * count, Fraction(1, SOUND_HZ)
    yield frame


def library_of_file(folder: Path, film: Path, codec: str = "h264") -> tuple[Library, str]:
    """A library whose only video is this file, as an ingest would have noted it, without frames; and the video's id."""
    space = load_text_tower(DRAWN)
    library = Library.create(str(folder), {"fps": 1.0}, space.fingerprint)
    row = plain_row(
        "f" * 32,
        film.stem,
        uri=str(film),
        duration_s=float(FILM_S),
        fps=float(FPS),
        width_px=WIDTH_PX,
        height_px=HEIGHT_PX,
        codec=codec,
        space=library.space_name,
    )
    assert library.writer.complete([row]) == ()
    state = film.stat()
    library.ingest_log.add_sources(
        [SourceRow(str(film), row.video_id, state.st_size, str(state.st_mtime_ns), datetime.now(UTC))]
    )
    return library, row.video_id
