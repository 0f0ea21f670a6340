"""Servers of third parties, each in a process of its own on loopback: `transformers serve`, and LiteLLM's proxy."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.loopback import free_port
from tests.support.servers.third_parties.environments import litellm_program

PROGRAM = "tests.support.servers.third_parties.transformers_program"
START_S = 240.0


@contextmanager
def transformers_serve(model: Path) -> Iterator[str]:
    """The base URL of `transformers serve` with the model in a folder, whose name is the folder's path."""
    port = free_port()
    command = [sys.executable, "-m", PROGRAM, "serve", str(model), "--host", "127.0.0.1", "--port", str(port)]
    with _running([*command, "--device", "cpu", "--dtype", "float32"], f"http://127.0.0.1:{port}/health", {}):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def litellm_proxy(behind: str, folder: Path, key: str, model: str = "rules") -> Iterator[str]:
    """The base URL of LiteLLM's proxy before the server at `behind`, whose model has the same name on both sides.

    Requests need `key`: without one the proxy does not start.
    """
    config = folder / "litellm.yaml"
    config.write_text(
        f"model_list:\n- model_name: {model}\n  litellm_params:\n"
        f"    model: openai/{model}\n    api_base: {behind}\n    api_key: none\n    num_retries: 0\n"
    )
    port = free_port()
    command = [str(litellm_program()), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    own = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(folder), "LITELLM_MASTER_KEY": key}
    with _running(command, f"http://127.0.0.1:{port}/health/liveliness", own):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def _running(command: Sequence[str], health: str, own: Mapping[str, str]) -> Iterator[None]:
    """Run a server until the block ends, from when it says that it is well; its log goes to a failing test's output."""
    with tempfile.TemporaryFile("w+") as log:  # not a pipe: one that nobody reads stops a server that writes much
        process = subprocess.Popen(command, env={**os.environ, **own}, stdout=log, stderr=subprocess.STDOUT)
        try:
            _await_health(process, health)
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            log.seek(0)
            print(log.read()[-6000:])


def _await_health(process: subprocess.Popen[bytes], health: str) -> None:
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(health, timeout=5):
                return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"{process.args!r} does not start")
