"""Material for the benchmarks: films in every codec, a model with random weights, and files out of the page cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from jobs.bench.random_tokenizer import write_random_tokenizer
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
"""Encoder, container, options. All else is ffmpeg's default, the distance of key frames too."""


def make_films(path: Path, folder: Path, short_s: int = SHORT_S) -> list[Path]:
    """Make films of `short_s` seconds and of ten times that, by every codec that the ffmpeg here can write.

    They repeat the frames of `path`; films that exist are used. Raises UsageError if there is no ffmpeg, or it cannot
    read the file.
    """
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


def make_random_space(directory: Path, model: str) -> str:
    """Write an open_clip model with random weights to a folder; returns the name of the space.

    It is as fast as a trained one, and useless for a search. Where the architecture takes a tokenizer from a hub, it
    comes with one of made-up words. Raises UsageError if open_clip has no architecture of that name.
    """
    import torch

    from index.embedding.model_source import silent_root_logger
    from index.embedding.space import import_open_clip

    open_clip = import_open_clip()
    config = open_clip.get_model_config(model)
    if config is None:
        raise UsageError(f"got --model {model}; open_clip has {', '.join(open_clip.list_models())}")
    from safetensors.torch import save_model

    with torch.random.fork_rng(devices=[]), silent_root_logger():  # which warns that the weights are random
        torch.manual_seed(0)
        created = open_clip.create_model(model)
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"model_cfg": config, "preprocess_cfg": created.visual.preprocess_cfg}, indent=2)
    (directory / "open_clip_config.json").write_text(text, encoding="utf-8")
    save_model(created, str(directory / "open_clip_model.safetensors"))
    if config["text_cfg"].get("hf_tokenizer_name"):
        write_random_tokenizer(directory, int(config["text_cfg"]["vocab_size"]))
    return f"local-dir:{directory}"


def drop_page_cache(folder: Path) -> None:
    """Drop the cached pages of all files in a folder, by `posix_fadvise(DONTNEED)`, so that the disk is read next.

    Advice to the system, which keeps what is not written to the disk yet (so this writes it first) or what another
    process has mapped; the disk's own cache, and that of a host around a virtual machine, stay as they are.
    """
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


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
