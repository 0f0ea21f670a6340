"""The library of these tests: three drawn films, one with subtitles, with a caption and a column of their cameras."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import CAMERAS, CAPTION
from tests.support.command import main
from tests.support.processes import ending_process

COMMAND = [sys.executable, "-c", "from kinodex.cli.main import main; main()"]


def carry_out(*arguments: object) -> None:
    """Run a command in this process, which must succeed."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(sys, "argv", ["kinodex", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code, arguments


@pytest.fixture(scope="session")
def shown(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that these tests read; one that changes it makes a copy (`own`)."""
    folder = tmp_path_factory.mktemp("acceptance")
    place = Path(shutil.copytree(library, folder / "library"))
    text, video, start_s, end_s = CAPTION
    rows = [{"video": video, "start_s": start_s, "end_s": end_s, "text": text}]
    rows.append({"video": "film-03", "start_s": 0, "end_s": 4, "text": "the sea is calm"})
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    carry_out("import", "captions", folder / "captions.jsonl", place, "--model", "hand")
    with (folder / "cameras.csv").open("w") as file:
        csv.writer(file).writerows([("video", "camera"), *CAMERAS.items()])
    carry_out("set", "metadata", place, folder / "cameras.csv")
    return place


@pytest.fixture
def own(shown: Path, tmp_path: Path) -> Path:
    """A copy of the library to change."""
    return Path(shutil.copytree(shown, tmp_path / "own"))


@contextlib.contextmanager
def running(*arguments: object, state: Path) -> Iterator[str]:
    """Run a command that serves, as a process; yield the address that it prints, and end it by Ctrl-C, in order."""
    environment = os.environ | {"KINODEX_STATE": str(state), "PYTHONUNBUFFERED": "1"}
    command = [*COMMAND, *map(str, arguments)]
    with ending_process(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        try:
            said = ""
            while not (address := re.findall(r"http://127\.0\.0\.1:\d+\S*", said)):
                said = server.stderr.readline()
                assert said, "the server ended"
            yield address[0]
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate()
        assert server.returncode == 0
