"""Real small weights from packages of the registry, made by the developers' tool beside the checkout; else a skip."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[4] / "shared" / "tools" / "real_models.py"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "kinodex-tests"


def real_model(name: str) -> Path:
    """The folder of a real model ("language": SmolLM2-135M-Instruct), kept between runs; skips where it cannot be had.

    `python -m tests.support.models.real_models NAME TARGET` makes it in a process of its own.
    """
    import subprocess

    folder = CACHE / name
    if (folder / "config.json").is_file():
        return folder
    if not TOOL.is_file() or importlib.util.find_spec("gguf") is None:
        pytest.skip("no ../shared/tools/real_models.py beside this checkout, or no package gguf")
    made = subprocess.run(
        [sys.executable, "-m", "tests.support.models.real_models", name, str(CACHE)], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"the package with {name} cannot be had: {made.stderr.strip().splitlines()[-1:]}")
    return folder


def main(name: str, target: str) -> None:
    import index.embedding.space

    sys.modules["index.spaces"] = index.embedding.space  # where the tool looks for it
    sys.argv = [str(TOOL), target, name]
    runpy.run_path(str(TOOL), run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
