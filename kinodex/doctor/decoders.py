"""Checks of decoders for `kinodex doctor`: each reads a film of some seconds made for it, in a process of its own."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinodex.doctor.alone import Lost, run_alone_within
from kinodex.doctor.check_result import CheckResult
from kinodex.pipeline.decoding.open import DECODERS
from kinodex.pipeline.errors import PipelineError
from kinodex.pipeline.video_writer import encode_video

of_decoders = partial(CheckResult, "decoders")
PACKAGES = {"pyav": "av", "decord": "decord", "torchcodec": "torchcodec", "nvdec": "torchcodec"}
EXTRAS = PACKAGES | {"pyav": "ingest"}
DECODER_LIMIT_S = 60.0
"""decord may hang, and loading torch from a slow disk takes its time."""
WIDTH_PX, HEIGHT_PX, FPS, FILM_S = 256, 128, 8, 3


def moving_gradient() -> Iterator[NDArray[np.uint8]]:
    """Yield the pictures of a film: shades from dark to light that wander to the left."""
    row = np.arange(WIDTH_PX, dtype=np.uint8)
    for number in range(FILM_S * FPS):
        shades = np.broadcast_to(np.roll(row, -4 * number)[None, :, None], (HEIGHT_PX, WIDTH_PX, 3))
        yield np.ascontiguousarray(shades)


def check_decoders() -> list[CheckResult]:
    """Check all decoders. Without PyAV, which also makes the film, the others cannot be tried either."""
    found = {name: _find_missing(name) for name in DECODERS}
    installed = [name for name in DECODERS if found[name] is None]
    if installed:
        with (
            tempfile.TemporaryDirectory(prefix="kinodex-doctor-") as folder,
            ThreadPoolExecutor(len(installed)) as pool,
        ):
            film = Path(folder) / "film.mp4"
            encode_video(moving_gradient(), film, width_px=WIDTH_PX, height_px=HEIGHT_PX, fps=FPS)
            found |= zip(installed, pool.map(lambda name: _try_decoder(name, film), installed), strict=True)
    return [each for each in found.values() if each is not None]


def _find_missing(name: str) -> CheckResult | None:
    if importlib.util.find_spec("av") is None and name != "pyav":
        return of_decoders(name, "missing", "not tried without PyAV", "pip install 'kinodex[ingest]'")
    if importlib.util.find_spec(PACKAGES[name]) is None:
        return of_decoders(name, "missing", "not installed", f"pip install 'kinodex[{EXTRAS[name]}]'")
    if name == "nvdec" and shutil.which("nvidia-smi") is None:
        return of_decoders(name, "missing", "no NVIDIA GPU", "PyAV reads everything; --decoder auto takes it")
    return None


def _try_decoder(name: str, film: Path) -> CheckResult:
    todo = f"pip install -U 'kinodex[{EXTRAS[name]}]'; see docs/decoders.md"
    try:
        frames, reason = run_alone_within(DECODER_LIMIT_S, read_film, str(film), name)
    except Lost as error:
        return of_decoders(name, "broken", str(error), todo)
    except (PipelineError, ImportError, OSError) as error:
        return of_decoders(name, "broken", f"{type(error).__name__}: {error}", todo)
    if reason is not None:
        return of_decoders(name, "broken", f"PyAV had to take over ({reason})", todo)
    return of_decoders(name, "ok", f"read {frames} frames of a film that was made for it")


def read_film(film: str, decoder: str) -> tuple[int, str | None]:
    from kinodex.pipeline.decoding.open import open_video

    with open_video(Path(film), decoder=decoder) as video:
        frames = sum(1 for _ in video.samples(4.0))
        return frames, video.fell_back
