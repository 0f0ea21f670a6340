"""Packages of third parties in environments of their own, kept between runs: they pin other versions than kinodex.

Each skips the test where its package cannot be had.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.support.house.once import KEPT, made_for_all_runs

OPENAI_JS = "openai@6.49.0"


def python_with(package: str, *others: str, without: Sequence[str] = ()) -> Path:
    """The interpreter of an environment with a package, `name==version`, and others, but not those it brings."""

    def install(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "pip"), "--disable-pip-version-check", "-q"]
        had([*pip, "install", package, *others], package)
        if without:
            subprocess.run([*pip, "uninstall", "-y", *without], check=True, capture_output=True)

    name = package.replace("[proxy]", "").replace("==", "-")
    return made_for_all_runs(KEPT / name, install) / "bin" / "python"


def had(command: Sequence[str], package: str) -> None:
    """Run what installs a package."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{package} cannot be had: {done.stderr.strip().splitlines()[-1:]}")


def fastmcp_python() -> Path:
    """Python with FastMCP's client."""
    return python_with("fastmcp==4.1.2")


def lmms_eval_python() -> Path:
    """Python with lmms-eval, and the torch of these tests, some 2 GB.

    Its torchvision is a build for GPUs that does not load beside a torch for CPUs; the task of the tests needs none. It
    reads filelock._api, which 4.3 lacks.
    """
    return python_with("lmms-eval==0.7.3", "filelock<4.3", f"torch=={version('torch')}", without=["torchvision"])


def llm_program() -> Path:
    """The chat program `llm`."""
    return python_with("llm==0.36").with_name("llm")


def litellm_program() -> Path:
    """LiteLLM's proxy."""
    return python_with("litellm[proxy]==1.106.2").with_name("litellm")


def openai_js() -> Path:
    """A folder with OpenAI's client for JavaScript."""

    def install(folder: Path) -> None:
        if shutil.which("node") is None or shutil.which("npm") is None:
            pytest.skip("there is no node or no npm")
        had(["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder), OPENAI_JS], OPENAI_JS)

    return made_for_all_runs(KEPT / OPENAI_JS.replace("@", "-js-"), install)


def printed(python: Path, program: str, folder: Path, own: Mapping[str, str] | None = None) -> Any:
    """Run a program over a folder; returns what its last line of output is as JSON."""
    environment = {**os.environ, "HOME": str(folder.parent), **(own or {})}
    ran = subprocess.run([python, "-c", program, folder], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])
