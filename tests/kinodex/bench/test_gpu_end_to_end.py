"""Whole ingests into libraries that stay, and the comparison of their rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.bench.gpu import MIN_COSINE, Equality, compare
from kinodex.bench.ingest import ingest_films
from kinodex.jobs.ingest.config import IngestConfig
from tests.kinodex.bench.conftest import FILM_S

CONFIG = IngestConfig(space="builtin", workers=1)


@pytest.fixture(scope="module")
def library(film: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ways") / "library"
    done = ingest_films([film], CONFIG, place)
    assert (done.films, done.frames) == (1, FILM_S)
    assert done.busy["decode"] > 0
    assert done.parent_mb > 0
    return place


def test_two_runs_of_one_way_are_equal(film: Path, library: Path, tmp_path: Path) -> None:
    ingest_films([film], CONFIG, tmp_path / "again")
    found = compare(library, tmp_path / "again")
    assert found.holds
    assert (found.frames, found.min_psnr_db) == (FILM_S, None)
    assert found.min_cosine == pytest.approx(1.0, abs=1e-3)


def test_other_pictures_and_other_times_show(film: Path, library: Path, tmp_path: Path) -> None:
    worse = CONFIG.model_copy(update={"jpeg_quality": 20})
    ingest_films([film], worse, tmp_path / "worse")
    found = compare(library, tmp_path / "worse")
    assert found.same_times
    assert found.min_psnr_db is not None
    assert 20 < found.min_psnr_db < 45
    ingest_films([film], CONFIG.model_copy(update={"fps": 0.5}), tmp_path / "fewer")
    assert not compare(library, tmp_path / "fewer").holds


def test_a_cosine_below_the_limit_is_not_equal() -> None:
    assert Equality(3, True, MIN_COSINE, 1.0, None).holds
    assert not Equality(3, True, MIN_COSINE - 1e-6, 1.0, None).holds


def test_libraries_without_a_common_video_and_films_that_fail_are_refused(library: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no film")
    with pytest.raises(RuntimeError, match=r"bad\.mp4"):
        ingest_films([bad], CONFIG, tmp_path / "empty")
    with pytest.raises(ValueError, match="no video in common"):
        compare(library, tmp_path / "empty")
