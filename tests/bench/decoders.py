"""Measure the cost of each decoder, file by file: `python -m tests.bench.decoders FILES`.

The reference is decoding everything with PyAV and scaling the sampled frames, on one core. Each decoder is measured
beside it, in turn, in one process that is ended if it hangs; CPU seconds count all threads of that process.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kinodex.doctor.alone import Lost, run_alone_within
from kinodex.index.times import clock
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.decoding.open import DECODERS, open_video, probe
from kinodex.pipeline.decoding.readers import VideoReader
from kinodex.pipeline.decoding.stream import VideoMetadata
from kinodex.pipeline.errors import PipelineError
from kinodex.pipeline.images import rgb_scaler
from kinodex.pipeline.sources import list_sources
from tests.bench.figures import JsonOption, RoundsOption, show

EVERY_FRAME = 1000.0
"""A sampling rate above every frame rate: all frames are decoded."""
JPEG_SIDE_PX, INPUT_SIDE_PX = 512, 224
BASE_LIMIT_S, LIMIT_PER_VIDEO_S = 120.0, 3.0

Times = list[tuple[int, float]]
"""Number and time of each sample."""


@dataclass(frozen=True, slots=True)
class DecoderFigures:
    """One decoder on one file at one rate: medians over the rounds.

    `cpu_part` and `wall_part` are medians of its time relative to decoding everything in the same round.
    `same_times`: number and time of each sample equal those of PyAV. `remark`: why PyAV replaced the decoder, or how
    its process was lost; then the figures say nothing of the decoder, or are zero.
    """

    file: str
    codec: str
    picture: str
    length_s: float
    fps: float
    decoder: str
    frames: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    cpu_part: float = 0.0
    wall_part: float = 0.0
    same_times: bool = False
    remark: str = ""


def bench_decoders(
    files: Iterable[Path], rates: Sequence[float], only: Sequence[str] | None, rounds: int, make: Path | None
) -> list[DecoderFigures]:
    """Measure decoders, by default all installed, on files, and on films made of the first in the folder `make`."""
    paths = [Path(source.uri) for source in list_sources([str(file) for file in files])]
    if make is not None:
        paths += make_films(paths[0], make)
    rows: list[DecoderFigures] = []
    for path in paths:
        try:
            metadata = probe(path)
        except PipelineError:
            continue
        for decoder in only or installed():
            rows += _measure_apart(path, metadata, decoder, rates, rounds)
    return rows


def installed() -> list[str]:
    here = {"pyav"} | {name for name in ("decord", "torchcodec") if importlib.util.find_spec(name)}
    if "torchcodec" in here and shutil.which("nvidia-smi"):
        here.add("nvdec")
    return [decoder for decoder in DECODERS if decoder in here]


def table(rows: Sequence[DecoderFigures]) -> str:
    head = "| file | codec | picture | length | fps | decoder | CPU s | CPU, part | wall, part | same times | remark |"
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        figures = f"{row.cpu_s:.2f} | {row.cpu_part:.2f} | {row.wall_part:.2f} | {'yes' if row.same_times else 'no'}"
        lines.append(
            f"| {row.file} | {row.codec} | {row.picture} | {clock(row.length_s)} | {row.fps:g} | {row.decoder} "
            f"| {figures if row.frames else '- | - | - | -'} | {row.remark} |"
        )
    lines.append("\npart: of the time of decoding everything with PyAV, in the same round")
    return "\n".join(lines)


def _measure_apart(
    path: Path, metadata: VideoMetadata, decoder: str, rates: Sequence[float], rounds: int
) -> list[DecoderFigures]:
    row = DecoderFigures(
        file=path.name,
        codec=metadata.codec,
        picture=f"{metadata.width_px}x{metadata.height_px}",
        length_s=metadata.claimed_duration_s or 0.0,
        fps=0.0,
        decoder=decoder,
    )
    limit_s = BASE_LIMIT_S + LIMIT_PER_VIDEO_S * rounds * len(rates) * row.length_s
    try:
        return run_alone_within(limit_s, _measure, path, row, rates, rounds)
    except Lost as lost:
        return [replace(row, fps=fps, remark=f"lost: {lost}") for fps in rates]


def _measure(path: Path, row: DecoderFigures, rates: Sequence[float], rounds: int) -> list[DecoderFigures]:
    figures = []
    _sample(path, row.decoder, rates[0])  # loads what has to be loaded
    for fps in rates:
        exact, _ = _sample(path, "pyav", fps)
        times, fell_back = _sample(path, row.decoder, fps)
        whole_s, own_s = [], []
        for _ in range(rounds):
            whole_s.append(_seconds(partial(_decode_all, path, fps)))
            own_s.append(_seconds(partial(_sample, path, row.decoder, fps)))
        figures.append(
            replace(
                row,
                fps=fps,
                frames=len(times),
                cpu_s=statistics.median(cpu for cpu, _ in own_s),
                wall_s=statistics.median(wall for _, wall in own_s),
                cpu_part=statistics.median(own[0] / whole[0] for own, whole in zip(own_s, whole_s, strict=True)),
                wall_part=statistics.median(own[1] / whole[1] for own, whole in zip(own_s, whole_s, strict=True)),
                same_times=times == exact,
                remark=fell_back or "",
            )
        )
    return figures


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def _sample(path: Path, decoder: str, fps: float) -> tuple[Times, str | None]:
    """Sample and scale; returns the times of the samples, and why PyAV replaced the decoder, if it did."""
    with open_video(path, decoder=decoder) as video:
        to_rgb = _scaler(video)
        times = []
        for sample in video.samples(fps):
            to_rgb(sample.frame)
            times.append((sample.number, sample.time_s))
        return times, video.fell_back


def _decode_all(path: Path, fps: float) -> None:
    with open_video(path) as video:
        to_rgb, due_s = _scaler(video), video.start_s
        for sample in video.samples(EVERY_FRAME):
            if sample.time_s >= due_s:
                to_rgb(sample.frame)
                due_s += 1 / fps


def _scaler(video: VideoReader) -> Callable[..., object]:
    aspect = Fraction(video.metadata.sample_aspect_ratio).limit_denominator(100_000)
    return rgb_scaler(aspect, JPEG_SIDE_PX, INPUT_SIDE_PX)


# Material for the benchmarks: films in every codec, a model with random weights, and files out of the page cache.

SHORT_S, LONG_TIMES = 60, 10
CODECS = {
    "h264": ("libx264", "mp4", ["-preset", "fast"]),
    "hevc": ("libx265", "mp4", ["-preset", "fast", "-x265-params", "log-level=error"]),
    "vp9": ("libvpx-vp9", "webm", ["-deadline", "realtime", "-cpu-used", "8", "-b:v", "2M"]),
    "av1": ("libsvtav1", "mp4", ["-preset", "10"]),
    "mpeg4": ("mpeg4", "mp4", ["-q:v", "5"]),
    "mpeg2": ("mpeg2video", "ts", ["-q:v", "5"]),
    "prores": ("prores", "mov", []),
}
"""Encoder, container, options. All else is ffmpeg's default, the distance of key frames too."""


def make_films(path: Path, folder: Path, short_s: int = SHORT_S) -> list[Path]:
    """Make films of `short_s` and ten times that by every codec of the ffmpeg here; raises UsageError."""
    if shutil.which("ffmpeg") is None:
        raise UsageError("got --make, and there is no ffmpeg on the path; install it, or leave --make out")
    listed = subprocess.run(["ffmpeg", "-hide_banner", "-encoders"], capture_output=True, text=True, check=True).stdout
    available = {line.split()[1] for line in listed.splitlines() if len(line.split()) > 1}
    folder.mkdir(parents=True, exist_ok=True)
    films = []
    for codec, (encoder, suffix, options) in CODECS.items():
        if encoder not in available:
            continue
        short, long = folder / f"{codec}-short.{suffix}", folder / f"{codec}-long.{suffix}"
        _ffmpeg(path, 1000, short, ["-t", str(short_s), "-c:v", encoder, *options])
        _ffmpeg(short, LONG_TIMES - 1, long, ["-c", "copy"])
        films += [short, long]
    return films


def _ffmpeg(path: Path, loops: int, film: Path, options: list[str]) -> None:
    if film.exists():
        return
    part = film.with_name(f"part-{film.name}")
    command = ["ffmpeg", "-v", "error", "-y", "-stream_loop", str(loops), "-i", str(path), "-map", "0:v:0", *options]
    done = subprocess.run([*command, str(part)], capture_output=True, text=True, check=False)
    if done.returncode:
        part.unlink(missing_ok=True)
        raise UsageError(f"ffmpeg cannot make {film.name} of {path}: {done.stderr.strip().splitlines()[-1][:200]}")
    part.rename(film)


def main(
    files: Annotated[list[Path], typer.Argument(exists=True, help="Videos, or folders of them.")],
    fps: Annotated[list[float] | None, typer.Option(help="Frames sampled a second; may be repeated.")] = None,
    decoder: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    rounds: RoundsOption = 3,
    make: Annotated[Path | None, typer.Option(help="Folder for the first file re-encoded with each codec.")] = None,
    json: JsonOption = False,
) -> None:
    """Measure the cost of each decoder by file, relative to decoding all with PyAV, and check that its times agree."""
    rows = bench_decoders(files, fps or [1.0, 0.2], decoder, rounds, make)
    show(rows, table(rows), json)


if __name__ == "__main__":
    typer.run(main)
