"""Servers of third parties, each in a process of its own on loopback: `transformers serve`, and LiteLLM's proxy."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.models.real_models import CACHE

LITELLM = "litellm[proxy]==1.106.2"
"""It pins an older client than kinodex's own, so that it has an environment of its own."""
PROGRAM = "tests.support.servers.transformers_program"
START_S = 240.0


@contextmanager
def transformers_serve(model: Path) -> Iterator[str]:
    """The base URL of `transformers serve` with the model in a folder, whose name is the folder's path."""
    port = free_port()
    command = [sys.executable, "-m", PROGRAM, "serve", str(model), "--host", "127.0.0.1", "--port", str(port)]
    with _running([*command, "--device", "cpu", "--dtype", "float32"], f"http://127.0.0.1:{port}/health", {}):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def litellm_proxy(behind: str, folder: Path, key: str) -> Iterator[str]:
    """The base URL of LiteLLM's proxy before the server at `behind`, whose model is called "rules" on both sides.

    Requests need `key`: without one the proxy does not start.
    """
    config = folder / "litellm.yaml"
    config.write_text(
        "model_list:\n- model_name: rules\n  litellm_params:\n"
        f"    model: openai/rules\n    api_base: {behind}\n    api_key: none\n    num_retries: 0\n"
    )
    port = free_port()
    command = [str(litellm_program()), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    own = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(folder), "LITELLM_MASTER_KEY": key}
    with _running(command, f"http://127.0.0.1:{port}/health/liveliness", own):
        yield f"http://127.0.0.1:{port}/v1"


def litellm_program() -> Path:
    """LiteLLM's program in an environment that is kept between runs; skips where the package cannot be had."""
    place = CACHE / LITELLM.replace("[proxy]==", "-")
    program = place / "bin" / "litellm"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        install = [str(place / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", LITELLM]
        installed = subprocess.run(install, capture_output=True, text=True)
        if installed.returncode:
            pytest.skip(f"{LITELLM} cannot be had: {installed.stderr.strip().splitlines()[-1:]}")
    return program


def free_port() -> int:
    """A port that nobody listened at a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def _running(command: Sequence[str], health: str, own: Mapping[str, str]) -> Iterator[None]:
    """Run a server until the block ends, from when it says that it is well."""
    process = subprocess.Popen(
        command, env={**os.environ, **own}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        _await_health(process, health)
        yield
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _await_health(process: subprocess.Popen[str], health: str) -> None:
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(health, timeout=5):
                return
        except OSError:
            time.sleep(0.3)
    process.kill()
    raise AssertionError(f"{process.args} does not start:\n{process.communicate()[0][-3000:]}")
