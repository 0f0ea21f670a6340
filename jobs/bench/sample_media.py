"""Films for `kinodex bench decoders`: one picture, every codec that the ffmpeg at hand can write, short and long."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from jobs.errors import UsageError

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
"""Encoder, container, options. All else is as ffmpeg likes it, the distance of key frames too."""


def make_films(path: Path, folder: Path, short_s: int = SHORT_S) -> list[Path]:
    """Films of `short_s` seconds and of ten times that, of `path`'s picture again and again; what is there is used.

    Raises UsageError if there is no ffmpeg, or it cannot read the file.
    """
    if shutil.which("ffmpeg") is None:
        raise UsageError("got --make, and there is no ffmpeg on the path; install it, or leave --make out")
    listed = subprocess.run(["ffmpeg", "-hide_banner", "-encoders"], capture_output=True, text=True, check=True).stdout
    written = {line.split()[1] for line in listed.splitlines() if len(line.split()) > 1}
    folder.mkdir(parents=True, exist_ok=True)
    films = []
    for codec, (encoder, suffix, options) in CODECS.items():
        if encoder not in written:
            continue
        short, long = folder / f"{codec}-short.{suffix}", folder / f"{codec}-long.{suffix}"
        _ffmpeg(path, 1000, short, ["-t", str(short_s), "-c:v", encoder, *options])
        _ffmpeg(short, LONG_TIMES - 1, long, ["-c", "copy"])
        films += [short, long]
    return films


def _ffmpeg(path: Path, loops: int, made: Path, options: list[str]) -> None:
    if made.exists():
        return
    part = made.with_name(f"part-{made.name}")
    command = ["ffmpeg", "-v", "error", "-y", "-stream_loop", str(loops), "-i", str(path), "-map", "0:v:0", *options]
    done = subprocess.run([*command, str(part)], capture_output=True, text=True, check=False)
    if done.returncode:
        part.unlink(missing_ok=True)
        raise UsageError(f"ffmpeg cannot make {made.name} of {path}: {done.stderr.strip().splitlines()[-1][:200]}")
    part.rename(made)
