"""A small real image tower, a whole video read in one go, and the frames and facts that ffmpeg and ffprobe give."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.pipeline.fetch import FetchedVideo, content_id
from kinodex.pipeline.images import ModelInput
from kinodex.pipeline.sample import Chunk, ChunkSummary, SampledFrame, SamplingSettings, sample_frames, with_subtitles
from kinodex.pipeline.source import Source

needs_ffmpeg = pytest.mark.skipif(
    not (shutil.which("ffmpeg") and shutil.which("ffprobe")), reason="needs ffmpeg and ffprobe"
)


def needs_decoder(name: str) -> None:
    """Skip the test where a decoder cannot be imported."""
    path = os.environ["PATH"]
    try:
        importlib.import_module(name)
    except (ImportError, OSError, RuntimeError):
        pytest.skip(f"{name} cannot be imported")
    finally:
        os.environ["PATH"] = path  # decord adds its own folder, for Windows


COLOURS = ModelInput(8, 8, "squash")
"""What the ColourTower sees of a picture."""


@dataclass(frozen=True)
class ColourTower:
    """A picture is its colours on an 8 x 8 grid, less their mean, under a fixed random projection."""

    dim: int = 32

    def embed(self, batch: NDArray[np.uint8]) -> NDArray[np.float16]:
        flat = batch.reshape(len(batch), -1).astype(np.float32) / 255
        flat = np.hstack([flat - flat.mean(axis=1, keepdims=True), np.full((len(batch), 1), 0.5, np.float32)])
        projection = np.random.default_rng(0).standard_normal((flat.shape[1], self.dim)).astype(np.float32)
        vectors = flat @ projection
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit.astype(np.float16)


READING = SamplingSettings(fps=1.0, jpeg_side_px=512, jpeg_quality=85, decoder="pyav", input=COLOURS)


def whole(path: Path, *sidecars: Path) -> Chunk:
    """A local video, to be read in one go."""
    source = Source(str(path), path.stem, tuple(map(str, sidecars)))
    return Chunk(FetchedVideo(source, str(path), content_id(path), path.stat().st_size))


def sample_chunk(chunk: Chunk, settings: SamplingSettings) -> Iterator[SampledFrame | ChunkSummary]:
    """The frames of a chunk, then its summary with its subtitles, in this process."""
    for part in sample_frames(chunk, settings):
        yield with_subtitles(part, chunk) if isinstance(part, ChunkSummary) else part


def read_whole(path: Path, *sidecars: Path, **changes: Any) -> tuple[ChunkSummary, list[SampledFrame]]:
    """Read a local video in one go: its summary and its frames; `changes` are made to `READING`."""
    *pictures, summary = sample_chunk(whole(path, *sidecars), replace(READING, **changes))
    assert isinstance(summary, ChunkSummary)
    return summary, [picture for picture in pictures if isinstance(picture, SampledFrame)]


def ffmpeg(*arguments: str | Path) -> bytes:
    """Run ffmpeg quietly; its standard output."""
    command = ["ffmpeg", "-nostdin", "-v", "error", "-threads", "1", "-y", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True).stdout


LEVELS = 12
"""Greys of `grey_film`, one a picture, in a cycle."""


def grey_film(path: Path, *codec: str, options: tuple[str, ...] = (), sound: bool = True, length_s: int = 12) -> Path:
    """Write 25 pictures a second, each of one grey of `LEVELS`, in these codecs."""
    grey = f"color=black:s=96x64:r=25:d={length_s},geq=lum='20+16*mod(N,{LEVELS})':cb=128:cr=128,format=yuv420p"
    tone = ("-f", "lavfi", "-i", f"sine=440:d={length_s}") if sound else ()
    ffmpeg("-f", "lavfi", "-i", grey, *tone, *options, *codec, path)
    return path


def ffmpeg_shows(
    path: Path, stream: int, fps: float, width: int, height: int, most: int = 10_000
) -> tuple[list[NDArray[np.uint8]], list[float]]:
    """Decode with ffmpeg itself: the picture `[height, width, 3]` at each `k / fps` after the first frame, `most`.

    Its fps filter, rounding times up to the grid, repeats at `k` the last frame that is not after `k / fps`. Second is
    the presentation time in seconds of every frame of the stream.
    """
    scale = f"scale={width}:{height}:flags=bicubic+accurate_rnd+full_chroma_int"
    filters = f"setpts=PTS-STARTPTS,fps={fps}:round=up,{scale}"
    pictures = ["-frames:v", str(most), "-vf", filters, "-pix_fmt", "rgb24", "-f", "rawvideo", "pipe:1"]
    passed_on = ["-fps_mode", "passthrough", "-enc_time_base", "1:1000000", "-c:v", "wrapped_avframe"]
    only = ("-map", f"0:{stream}")
    with TemporaryDirectory() as folder:
        listed = Path(folder) / "times"
        raw = ffmpeg("-copyts", "-i", path, *only, *pictures, *only, *passed_on, "-f", "framecrc", listed)
        lines = [line for line in listed.read_text().splitlines() if not line.startswith("#")]
    shown = list(np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3))
    return shown, [int(line.split(",")[2]) / 1e6 for line in lines]


def psnr_db(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """Peak signal-to-noise ratio of two pictures of one size; 99 for equal ones."""
    error = float(np.mean((one.astype(np.float32) - other.astype(np.float32)) ** 2))
    return 99.0 if error == 0 else 10 * float(np.log10(255**2 / error))


MADE: dict[str, list[str]] = {
    "h264.mp4": ["libx264", "-x264-params", "keyint=48:bframes=3:b-pyramid=normal"],
    "h264_open.mkv": ["libx264", "-x264-params", "keyint=40:open-gop=1:bframes=5:b-pyramid=normal:ref=5:scenecut=0"],
    "h264_open.ts": ["libx264", "-x264-params", "keyint=40:open-gop=1:bframes=3:b-pyramid=none:scenecut=0"],
    "h264_fields.mkv": ["libx264", "-flags", "+ilme+ildct", "-x264-params", "keyint=40:open-gop=1:bframes=3"],
    "hevc.mp4": ["libx265", "-x265-params", "log-level=none:keyint=40:open-gop=0:bframes=4:b-pyramid=1"],
    "hevc_open.mkv": ["libx265", "-x265-params", "log-level=none:keyint=40:open-gop=1:bframes=4:b-pyramid=1"],
    "ten_bits.mkv": ["libx265", "-x265-params", "log-level=none:keyint=40:bframes=4", "-pix_fmt", "yuv420p10le"],
    "vp9.webm": ["libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "40"],
    "av1.mkv": ["libsvtav1", "-preset", "12", "-g", "40"],
    "mpeg2.ts": ["mpeg2video", "-g", "15", "-bf", "2"],
    "mpeg2.mpg": ["mpeg2video", "-g", "15", "-bf", "2"],
    "mpeg4.mp4": ["mpeg4", "-g", "30", "-bf", "2"],
}
"""Small videos of 10 s in many codecs, with closed and open groups of pictures, and how ffmpeg makes them."""

MADE_TO_DAMAGE = {
    "mpeg4.avi": ["mpeg4", "-g", "30"],
    "vp8.webm": ["libvpx", "-deadline", "realtime", "-cpu-used", "8", "-g", "25"],
    "refresh.mkv": ["libx264", "-x264-params", "keyint=30:intra-refresh=1"],
}


def small_pictures(media: Path, folder: Path) -> Path:
    """The pictures that `make` encodes, as they are: decoding them from their clip takes longer than encoding."""
    folder.mkdir(exist_ok=True)
    clip, small = media / "clips" / "torchcodec__dog_eating_854132.mp4", folder / "small.nut"
    ffmpeg("-i", clip, "-an", "-vf", "scale=160:96", "-pix_fmt", "yuv420p", "-c:v", "rawvideo", small)
    return small


def make(kind: str, small: Path, folder: Path) -> Path:
    """Write the file of `MADE` or `MADE_TO_DAMAGE`; skips the test where ffmpeg has no such encoder."""
    folder.mkdir(exist_ok=True)
    path = folder / kind
    codec = (MADE | MADE_TO_DAMAGE)[kind]
    try:
        ffmpeg("-i", small, "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-c:v", *codec, path)
    except subprocess.CalledProcessError as error:
        path.unlink(missing_ok=True)
        if b"Unknown encoder" not in error.stderr:
            raise
        pytest.skip(f"ffmpeg has no {codec[0]}")
    return path
