"""An ingest on Ray leaves the rows of one in this process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kinodex.index.library import Library
from tests.support.libraries.corpus import assert_same
from tests.support.servers.ray_node import environment

pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, pytest.mark.slow]


def test_on_ray_the_rows_are_the_same(corpus: Path, whole: Library, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from kinodex.cli.main import main; main()", "ingest", str(corpus)]
    command += ["--library", str(tmp_path / "library"), "--space", "builtin", "--ray", "--workers", "2"]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = environment() | {"TMPDIR": str(temporary), "RAY_TMPDIR": tempfile.gettempdir()}  # Ray's sockets: a short path
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 3, run.stderr
    assert list(temporary.glob("kinodex-*")) == []
    assert "Traceback" not in run.stderr
    assert_same(Library.open(str(tmp_path / "library")), whole)
    report = Library.open(str(tmp_path / "library")).ingest_log.runs()[0].report
    assert report["settings"]["ray"] is True and report["workers"] == 2
    assert "RAY_ADDRESS" not in os.environ
