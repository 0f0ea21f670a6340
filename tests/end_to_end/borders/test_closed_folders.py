"""Folders that may not be listed: each is a failure with its reason, beside what can be read, until it is opened."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_process import CommandProcess, command_process
from tests.support.models.stage_models import tiny_film
from tests.world.drawn_space import DRAWN

DROPPED = "-dac_override,-dac_read_search"
"""Rights by which root lists every folder."""


@pytest.fixture(scope="module")
def somebody() -> Iterator[CommandProcess]:
    """A process that runs commands as somebody who may not list closed folders."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may list every folder, and setpriv is missing")
    drop = ["setpriv", f"--bounding-set={DROPPED}", f"--inh-caps={DROPPED}"] if os.geteuid() == 0 else []
    with command_process(drop) as process:
        yield process


def ingest(somebody: CommandProcess, library: Path, *arguments: str | Path) -> tuple[int, dict[str, str]]:
    """Exit code, and the states of all sources by their title."""
    ran = somebody.run("ingest", *arguments, "--library", library, "--space", DRAWN, "--json")
    report: dict[str, Any] = json.loads(ran.out) if ran.out else {"sources": []}
    return ran.code, {each["title"]: each["state"] for each in report["sources"]}


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
def test_a_closed_folder_fails_until_it_is_opened(somebody: CommandProcess, closed: Path, tmp_path: Path) -> None:
    library, films = tmp_path / "library", closed.parent
    assert ingest(somebody, library, films) == (3, {"film-3": "indexed", "closed": "failed"})
    assert ingest(somebody, library, films) == (3, {"closed": "failed"}), "known films are left out"
    (failure,) = json.loads(somebody.run("info", library, "--json").out)["failures"]
    assert (failure["uri"], failure["error_class"]) == (str(closed), "SourceForbidden")
    closed.chmod(0o755)
    assert somebody.run("ingest", "--retry-failed", "--library", library, "--space", DRAWN).code == 0
    info = json.loads(somebody.run("info", library, "--json").out)
    assert sorted(row["title"] for row in info["videos"]) == ["film-3", "film-4"] and info["failures"] == []


@pytest.mark.slow
def test_globs_and_a_closed_folder_alone(somebody: CommandProcess, closed: Path, tmp_path: Path) -> None:
    films = closed.parent
    assert ingest(somebody, tmp_path / "deep", f"{films}/**/*.mp4") == (3, {"film-3": "indexed", "closed": "failed"})
    assert ingest(somebody, tmp_path / "below", f"{films}/*/*.mp4") == (3, {"closed": "failed"})
    assert ingest(somebody, tmp_path / "beside", f"{films}/*.mp4") == (0, {"film-3": "indexed"})
    alone = somebody.run("ingest", closed, "--library", tmp_path / "alone", "--space", DRAWN)
    assert alone.code == 2 and "listing it is not permitted" in alone.err


@pytest.mark.slow
def test_texts_in_a_closed_folder_are_a_failure_of_an_import(
    somebody: CommandProcess, closed: Path, tmp_path: Path
) -> None:
    library, films = tmp_path / "library", closed.parent
    closed.chmod(0o755)
    for folder in (films, closed):
        (folder / "film-3.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nhello\n")
    closed.chmod(0)
    assert ingest(somebody, library, films / "film-3.mp4") == (0, {"film-3": "indexed"})
    ran = somebody.run("import", "speech", films, library)
    assert ran.code == 3 and "closed: cannot be read" in ran.out + ran.err
    assert "added 1 line of speech" in ran.out + ran.err
