"""A corpus of small films and its library, made once for tests of ingest, which read them; and an empty library."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.jobs.ingest.worker import SPLIT_FROM_BYTES
from tests.support.house.once import made_once
from tests.support.libraries.corpus import ingest, make_corpus
from tests.support.libraries.random_library import SETTINGS, fingerprint
from tests.world.sketch.render import render_film
from tests.world.sketch.script import write_script


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sketch films, one of them twice, and one film that breaks off."""
    return made_once(tmp_path_factory, "corpus", lambda folder: make_corpus(folder, 6, None, doubles=1, poison=1))


@pytest.fixture(scope="session")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The corpus in a library: one worker, one video after the other, nothing split."""
    place = made_once(tmp_path_factory, "whole", lambda folder: ingest(corpus, folder, workers=1, bundle=1, cut_s=0.0))
    return Library.open(str(place))


@pytest.fixture(scope="session")
def long_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one film of a minute; bytes that players skip make it large enough to be cut into parts."""

    def draw(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        render_film(write_script("film", 60.0, 3), folder / "film.mp4")
        with (folder / "film.mp4").open("ab") as film:
            film.write(struct.pack(">I4s", 8 + SPLIT_FROM_BYTES, b"free") + bytes(SPLIT_FROM_BYTES))

    return made_once(tmp_path_factory, "long", draw)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
