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

from tests.support.models.stage_models import tiny_film

DROPPED = "-dac_override,-dac_read_search"
"""Rights by which root lists every folder."""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command as somebody who may not list what is closed to them."""
    drop = ["setpriv", f"--bounding-set={DROPPED}", f"--inh-caps={DROPPED}"] if os.geteuid() == 0 else []
    command = [*drop, sys.executable, "-c", "from kinodex.cli.main import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A folder with a film, a line of text and a folder with another of each, which is closed."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may list every folder, and setpriv is missing")
    films = tmp_path / "films"
    inner = films / "closed"
    inner.mkdir(parents=True)
    for number, folder in enumerate((films, inner), 3):
        tiny_film(folder / f"film-{number}.mp4", number, 0)
    inner.chmod(0)
    yield inner
    inner.chmod(0o755)


def ingest(library: Path, *arguments: str | Path) -> tuple[int, dict[str, str]]:
    """Exit code, and the states of all sources by their title."""
    ran = run("ingest", *arguments, "--library", library, "--space", "builtin", "--anyway", "--json")
    report: dict[str, Any] = json.loads(ran.stdout) if ran.stdout else {"sources": []}
    return ran.returncode, {each["title"]: each["state"] for each in report["sources"]}


@pytest.mark.slow
def test_a_closed_folder_fails_until_it_is_opened(closed: Path, tmp_path: Path) -> None:
    library, films = tmp_path / "library", closed.parent
    assert ingest(library, films) == (3, {"film-3": "indexed", "closed": "failed"})
    assert ingest(library, films) == (3, {"closed": "failed"}), "known films are left out"
    (failure,) = json.loads(run("info", library, "--json").stdout)["failures"]
    assert (failure["uri"], failure["error_class"]) == (str(closed), "SourceForbidden")
    closed.chmod(0o755)
    assert run("ingest", "--retry-failed", "--library", library, "--space", "builtin", "--anyway").returncode == 0
    info = json.loads(run("info", library, "--json").stdout)
    assert sorted(row["title"] for row in info["videos"]) == ["film-3", "film-4"] and info["failures"] == []


@pytest.mark.slow
def test_globs_and_a_closed_folder_alone(closed: Path, tmp_path: Path) -> None:
    films = closed.parent
    assert ingest(tmp_path / "deep", f"{films}/**/*.mp4") == (3, {"film-3": "indexed", "closed": "failed"})
    assert ingest(tmp_path / "below", f"{films}/*/*.mp4") == (3, {"closed": "failed"})
    assert ingest(tmp_path / "beside", f"{films}/*.mp4") == (0, {"film-3": "indexed"})
    alone = run("ingest", closed, "--library", tmp_path / "alone", "--space", "builtin", "--anyway")
    assert alone.returncode == 2 and "listing it is not permitted" in alone.stderr


@pytest.mark.slow
def test_texts_in_a_closed_folder_are_a_failure_of_an_import(closed: Path, tmp_path: Path) -> None:
    library, films = tmp_path / "library", closed.parent
    closed.chmod(0o755)
    for folder in (films, closed):
        (folder / "film-3.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nhello\n")
    closed.chmod(0)
    assert run("ingest", films / "film-3.mp4", "--library", library, "--space", "builtin", "--anyway").returncode == 0
    ran = run("import", "speech", films, library)
    assert ran.returncode == 3 and "closed: cannot be read" in ran.stdout + ran.stderr
    assert "added 1 line of speech" in ran.stdout + ran.stderr
