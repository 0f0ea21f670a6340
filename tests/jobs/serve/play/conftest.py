"""A library of films of every kind, and the server that plays them, for all tests of playing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinodex.index.library import Library
from tests.support.house.once import made_once
from tests.support.libraries.play_library import KINDS, write_films
from tests.support.servers.serve_server import Client, serving


@pytest.fixture(scope="session")
def play_films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "play_films", write_films)


@pytest.fixture(scope="session")
def play_library(play_films: Path, tmp_path_factory: pytest.TempPathFactory) -> Library:
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources

    def ingest(place: Path) -> None:
        report = run_ingest(IngestConfig(space="builtin"), list_sources([str(play_films)]), str(place))
        assert report.count("indexed") == len(KINDS)

    made = made_once(tmp_path_factory, "play_library", ingest)
    return Library.open(str(shutil.copytree(made, tmp_path_factory.mktemp("playing") / "library")))


@pytest.fixture(scope="session")
def playing(play_library: Library, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving([play_library.uri], tmp_path_factory.mktemp("traces")) as client:
        yield client


@pytest.fixture(scope="session")
def ids(play_library: Library) -> dict[str, str]:
    """Ids of the films by their names without suffix."""
    return {row.title: row.video_id for row in play_library.videos()}
