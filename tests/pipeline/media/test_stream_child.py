"""The child that opens media files, as a process: its replies, and its end with its parent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kinodex.pipeline.media.stream_child import BROKEN_FILE
from tests.support.libraries.play_library import write_film

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("film") / "film.mkv"
    write_film(path, "libx264", "aac", length_s=120)
    return path


def child(**task: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kinodex.pipeline.media.stream_child", "1500000000", json.dumps(task)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


def test_a_task_and_its_fault(film, tmp_path):
    with child(task="facts", uri=str(film)) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.read())["codec"] == "h264" and process.wait() == 0
    with child(task="facts", uri=str(tmp_path / "none.mp4")) as process:
        assert process.stderr is not None
        assert json.loads(process.stderr.read())["error"] == "SourceMissing" and process.wait() == BROKEN_FILE


def test_a_stream_ends_with_its_reader_and_with_its_parent(film):
    with child(task="stream", uri=str(film), way="transcoded", from_s=0.0) as process:
        assert process.stdout is not None
        assert process.stdout.read(8)[4:] == b"ftyp"
        process.stdout.close()
        assert process.wait() == 0
    with child(task="stream", uri=str(film), way="transcoded", from_s=0.0) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.read(8)[4:] == b"ftyp"
        process.stdin.close()  # as when its parent ends
        assert process.wait() < 0
