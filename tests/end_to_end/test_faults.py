"""The n-th call on a disk, or request to a store, fails: nothing is lost, and run again all is well.

A sample of what `python -m tests.support.faults` tries at every call (docs/reliability.md has the table). In processes
of their own: a layer of C stands between them and the disk.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="the layer of faults is made by a C compiler"
)


def run(root: Path, module: str, *arguments: str) -> None:
    command = [sys.executable, "-W", "ignore", "-m", f"tests.support.faults{module}", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=os.environ | {"LANCE_LOG": "error"})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]


@pytest.mark.slow
@needs_compiler
def test_a_disk_that_fails_at_some_steps(root: Path) -> None:
    """The step in the middle of two: a new column, and rows that go."""
    faults = [word for name in ("write fails", "disk full", "killed") for word in ("--fault", name)]
    run(root, "", "map videos", "remove", "--calls", "1", *faults)


@pytest.mark.slow
def test_a_store_that_fails_at_some_requests(root: Path) -> None:
    pytest.importorskip("moto.server")
    run(root, "", "add captions", "--layer", "s3", "--calls", "1", "--fault", "reply lost")


@pytest.mark.slow
@needs_compiler
def test_a_library_and_a_model_of_it_agree_in_any_order_with_faults(root: Path) -> None:
    run(root, ".machine")
