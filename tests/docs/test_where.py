"""The commands of docs/where.md run in their order as they stand there; then its Python, which prints what it says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.test_python import run
from tests.docs.test_tutorial import typed
from tests.support.command import Kinodex


@pytest.mark.slow
def test_columns_and_conditions(
    root: Path, films: Path, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinodex: Kinodex
) -> None:
    """Of a library that is there, so that the ingest reads no film again."""
    (tmp_path / "films").symlink_to(films)
    (tmp_path / "tests").symlink_to(root / "tests")
    shutil.copytree(library, tmp_path / "library")
    (tmp_path / "cameras.csv").write_text(
        "path,camera,recorded at\nfilms/film-01.mp4,front,2026-03-01 08:00\nfilms/film-02.mp4,back,2026-02-01 08:00\n"
    )
    (tmp_path / "takes.csv").write_text("name,takes\nfilm-01,2\n")
    monkeypatch.chdir(tmp_path)
    page = root / "docs" / "where.md"
    for words in typed(page):
        ran = kinodex(*words)
        assert ran.code == 0, (words, ran)
    assert "film-01" in ran.out and "film-02" not in ran.out
    run(page)
