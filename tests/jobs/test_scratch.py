"""Temporary folders go with the process that made them, or when the next one begins."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jobs.scratch import scratch_folder

HOLD = """
from jobs.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "film.mp4").write_bytes(b"fetched")
    print(folder, flush=True)
    input()
"""


def test_what_a_killed_process_left_goes_and_what_a_living_one_holds_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    of_the_user = tmp_path / "kinodex-films"
    of_the_user.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        left = Path(run.stdout.readline().strip())
        with scratch_folder():
            assert (left / "film.mp4").read_bytes() == b"fetched"
        run.kill()
        run.wait()
        assert (left / "film.mp4").exists()
        with scratch_folder() as mine:
            assert set(tmp_path.iterdir()) == {of_the_user, mine}
    assert list(tmp_path.iterdir()) == [of_the_user]
