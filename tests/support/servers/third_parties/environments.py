"""Python packages of third parties in environments of their own, kept between runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.house.once import KEPT, made_for_all_runs


def python_with(package: str) -> Path:
    """The interpreter of an environment with one package, `name==version`; skips where that cannot be had."""

    def install(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        command = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", package]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"{package} cannot be installed here: {done.stderr[-300:]}")

    return made_for_all_runs(KEPT / package.replace("==", "-"), install) / "bin" / "python"


def printed(python: Path, program: str, folder: Path, own: Mapping[str, str] | None = None) -> Any:
    """Run a program over a folder; returns what its last line of output is as JSON."""
    environment = {**os.environ, "HOME": str(folder.parent), **(own or {})}
    ran = subprocess.run([python, "-c", program, folder], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])
