"""Decoders, each tried on a drawn film of a few seconds in a process of its own."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from jobs.bench.resource_usage import Lost, run_alone_within
from jobs.doctor import CheckResult
from pipeline.decoding.open import DECODERS
from pipeline.errors import PipelineError

SECTION = "decoders"
PACKAGES = {"pyav": "av", "decord": "decord", "torchcodec": "torchcodec", "nvdec": "torchcodec"}
EXTRAS = {"pyav": "ingest", "decord": "decord", "torchcodec": "torchcodec", "nvdec": "torchcodec"}
LIMIT_S = 60.0
"""decord may hang, and loading torch from a slow disk takes its time."""


def check_decoders() -> list[CheckResult]:
    """Check all decoders. Without PyAV, which also makes the film, the others cannot be tried either."""
    missing = {name: _find_missing(name) for name in DECODERS}
    installed = [name for name in DECODERS if missing[name] is None]
    with _film(is_needed=bool(installed)) as film, ThreadPoolExecutor(max(len(installed), 1)) as pool:
        tried = dict(zip(installed, pool.map(lambda name: _try_decoder(name, film), installed), strict=True))
    return [missing[name] or tried[name] for name in DECODERS]


def _find_missing(name: str) -> CheckResult | None:
    """The reason why a decoder cannot even be tried, None if it can."""
    if importlib.util.find_spec("av") is None and name != "pyav":
        return CheckResult(SECTION, name, "missing", "not tried without PyAV", "pip install 'kinodex[ingest]'")
    if importlib.util.find_spec(PACKAGES[name]) is None:
        return CheckResult(SECTION, name, "missing", "not installed", f"pip install 'kinodex[{EXTRAS[name]}]'")
    if name == "nvdec" and shutil.which("nvidia-smi") is None:
        return CheckResult(SECTION, name, "missing", "no NVIDIA GPU", "PyAV reads everything; --decoder auto takes it")
    return None


@contextmanager
def _film(is_needed: bool) -> Iterator[Path]:
    """Draw a film and delete it at the end; where none is needed, nothing is drawn."""
    with tempfile.TemporaryDirectory(prefix="kinodex-doctor-") as folder:
        path = Path(folder) / "film.mp4"
        if is_needed:
            from jobs.synthetic.world.render import render_film
            from jobs.synthetic.world.script import write_script

            script = write_script("doctor", 30.0, seed=0)
            render_film(replace(script, shots=script.shots[:1]), path)
        yield path


def _try_decoder(name: str, film: Path) -> CheckResult:
    """Decode the film in a process of its own."""
    todo = f"pip install -U 'kinodex[{EXTRAS[name]}]'; see docs/decoders.md"
    try:
        frames, reason = run_alone_within(LIMIT_S, read_film, str(film), name)
    except Lost as error:
        return CheckResult(SECTION, name, "broken", str(error), todo)
    except (PipelineError, ImportError, OSError) as error:
        return CheckResult(SECTION, name, "broken", f"{type(error).__name__}: {error}", todo)
    if reason is not None:
        return CheckResult(SECTION, name, "broken", f"PyAV had to take over ({reason})", todo)
    return CheckResult(SECTION, name, "ok", f"read {frames} frames of a film that was drawn for it")


def read_film(film: str, decoder: str) -> tuple[int, str | None]:
    """Count the frames that a decoder returns at 4 a second, with the reason if PyAV had to take over."""
    from pipeline.decoding.open import open_video

    with open_video(Path(film), decoder=decoder) as video:
        frames = sum(1 for _ in video.samples(4.0))
        return frames, video.fell_back
