"""Videos indexed from Python: what is new, what is already there, and arguments that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

import kinodex


def test_films_are_indexed_once(films: Path, tmp_path: Path) -> None:
    film, place = films / "film-01.mp4", tmp_path / "library"
    seen: list[object] = []
    first = kinodex.ingest([film], library=place, space="builtin", workers=1, on_progress=seen.append)
    again = kinodex.ingest(film, library=place)
    assert (first.count("indexed"), again.count("indexed"), again.left_out) == (1, 0, 1)
    assert seen
    assert [video.title for video in kinodex.open(place).videos()] == ["film-01"]


def test_bad_arguments_are_refused(films: Path, tmp_path: Path) -> None:
    with pytest.raises(kinodex.UsageError, match="ingest: got fsp, which is no setting; did you mean fps"):
        kinodex.ingest(films, library=tmp_path / "library", fsp=2)
    with pytest.raises(kinodex.UsageError, match="got nothing to index"):
        kinodex.ingest(library=tmp_path / "library")
    with pytest.raises(kinodex.PipelineError, match=r"none\.mp4"):
        kinodex.ingest(tmp_path / "none.mp4", library=tmp_path / "library", space="builtin")
    assert not (tmp_path / "library").exists()
