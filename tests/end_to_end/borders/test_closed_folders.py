"""Folders that may not be listed: each is a failure with its reason, beside what can be read, until it is opened."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Ran
from tests.support.models.stage_models import tiny_film
from tests.support.processes import ending_process

DROPPED = "-dac_override,-dac_read_search"
"""Rights by which root lists every folder."""


COMMANDS = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

if __name__ == "__main__":
    from kinodex.cli.main import main

    for line in sys.stdin:
        sys.argv[1:], code = json.loads(line), 0
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            try:
                main()
            except SystemExit as done:
                code = done.code or 0
        print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


class Somebody:
    """A process that runs commands as somebody who may not list what is closed to them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *arguments: str | Path) -> Ran:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([*map(str, arguments)]) + "\n")
        self._process.stdin.flush()
        return Ran(*json.loads(self._process.stdout.readline()))

    def ingest(self, library: Path, *arguments: str | Path) -> tuple[int, dict[str, str]]:
        """Exit code, and the states of all sources by their title."""
        ran = self.run("ingest", *arguments, "--library", library, "--space", "builtin", "--anyway", "--json")
        report: dict[str, Any] = json.loads(ran.out) if ran.out else {"sources": []}
        return ran.code, {each["title"]: each["state"] for each in report["sources"]}


@pytest.fixture(scope="module")
def somebody() -> Iterator[Somebody]:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may list every folder, and setpriv is missing")
    drop = ["setpriv", f"--bounding-set={DROPPED}", f"--inh-caps={DROPPED}"] if os.geteuid() == 0 else []
    command = [*drop, sys.executable, "-c", COMMANDS]
    with ending_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Somebody(process)
        process.communicate()


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A folder with a film, a line of text and a folder with another of each, which is closed."""
    films = tmp_path / "films"
    inner = films / "closed"
    inner.mkdir(parents=True)
    for number, folder in enumerate((films, inner), 3):
        tiny_film(folder / f"film-{number}.mp4", number, 0)
    inner.chmod(0)
    yield inner
    inner.chmod(0o755)


@pytest.mark.slow
def test_a_closed_folder_fails_until_it_is_opened(somebody: Somebody, closed: Path, tmp_path: Path) -> None:
    library, films = tmp_path / "library", closed.parent
    assert somebody.ingest(library, films) == (3, {"film-3": "indexed", "closed": "failed"})
    assert somebody.ingest(library, films) == (3, {"closed": "failed"}), "known films are left out"
    (failure,) = json.loads(somebody.run("info", library, "--json").out)["failures"]
    assert (failure["uri"], failure["error_class"]) == (str(closed), "SourceForbidden")
    closed.chmod(0o755)
    assert somebody.run("ingest", "--retry-failed", "--library", library, "--space", "builtin", "--anyway").code == 0
    info = json.loads(somebody.run("info", library, "--json").out)
    assert sorted(row["title"] for row in info["videos"]) == ["film-3", "film-4"] and info["failures"] == []


@pytest.mark.slow
def test_globs_and_a_closed_folder_alone(somebody: Somebody, closed: Path, tmp_path: Path) -> None:
    films = closed.parent
    assert somebody.ingest(tmp_path / "deep", f"{films}/**/*.mp4") == (3, {"film-3": "indexed", "closed": "failed"})
    assert somebody.ingest(tmp_path / "below", f"{films}/*/*.mp4") == (3, {"closed": "failed"})
    assert somebody.ingest(tmp_path / "beside", f"{films}/*.mp4") == (0, {"film-3": "indexed"})
    alone = somebody.run("ingest", closed, "--library", tmp_path / "alone", "--space", "builtin", "--anyway")
    assert alone.code == 2 and "listing it is not permitted" in alone.err


@pytest.mark.slow
def test_texts_in_a_closed_folder_are_a_failure_of_an_import(somebody: Somebody, closed: Path, tmp_path: Path) -> None:
    library, films = tmp_path / "library", closed.parent
    closed.chmod(0o755)
    for folder in (films, closed):
        (folder / "film-3.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nhello\n")
    closed.chmod(0)
    assert somebody.ingest(library, films / "film-3.mp4") == (0, {"film-3": "indexed"})
    ran = somebody.run("import", "speech", films, library)
    assert ran.code == 3 and "closed: cannot be read" in ran.out + ran.err
    assert "added 1 line of speech" in ran.out + ran.err
