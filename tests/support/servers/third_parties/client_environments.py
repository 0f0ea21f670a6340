"""Environments of programs that call `kinodex serve`, each kept between runs: they pin other versions than kinodex."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.house.once import KEPT, made_for_all_runs

FASTMCP = "fastmcp==4.1.2"
LMMS_EVAL = "lmms-eval==0.7.3"
LLM = "llm==0.36"
OPENAI_JS = "openai@6.49.0"


def fastmcp_python() -> Path:
    """Python with FastMCP's client; skips where the package cannot be had."""
    return _python("fastmcp-4.1.2", [FASTMCP])


def lmms_eval_python() -> Path:
    """Python with lmms-eval, and the torch of these tests, some 2 GB; skips where the packages cannot be had.

    Its torchvision is a build for GPUs that does not load beside a torch for CPUs; the task of the tests needs none.
    """
    packages = [LMMS_EVAL, "filelock<4.3", f"torch=={version('torch')}"]  # it reads filelock._api, which 4.3 lacks
    return _python("lmms-eval-0.7.3", packages, without=["torchvision"])


def llm_program() -> Path:
    """The chat program `llm`; skips where the package cannot be had."""
    return _python("llm-0.36", [LLM]).with_name("llm")


def openai_js() -> Path:
    """A folder with OpenAI's client for JavaScript; skips where node, npm or the package cannot be had."""

    def install(folder: Path) -> None:
        if shutil.which("node") is None or shutil.which("npm") is None:
            pytest.skip("there is no node or no npm")
        npm = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder), OPENAI_JS]
        installed = subprocess.run(npm, capture_output=True, text=True)
        if installed.returncode:
            pytest.skip(f"{OPENAI_JS} cannot be had: {installed.stderr.strip().splitlines()[-1:]}")

    return made_for_all_runs(KEPT / OPENAI_JS.replace("@", "-js-"), install)


def _python(name: str, packages: Sequence[str], without: Sequence[str] = ()) -> Path:
    def install(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "pip"), "--disable-pip-version-check", "-q"]
        installed = subprocess.run([*pip, "install", *packages], capture_output=True, text=True)
        if installed.returncode:
            pytest.skip(f"{packages[0]} cannot be had: {installed.stderr.strip().splitlines()[-1:]}")
        if without:
            subprocess.run([*pip, "uninstall", "-y", *without], check=True, capture_output=True)

    return made_for_all_runs(KEPT / name, install) / "bin" / "python"
