"""Libraries that tests of several folders of `jobs` read; made once, and imported only when used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.house.once import made_once

if TYPE_CHECKING:
    from kinodex.index.library import Library


@pytest.fixture(scope="session")
def small_films(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three films of 6 s, two with sound and one without; tests that change one copy it."""
    from tests.support.models.stage_models import beeps, tiny_film

    def write(folder: Path) -> None:
        folder.mkdir()
        for number, sound in enumerate((beeps(6.0, (3.0,)), None, beeps(4.0))):
            tiny_film(folder / f"film-{number}.mp4", 6, number, sound)

    return sorted(made_once(tmp_path_factory, "small-films", write).iterdir())


@pytest.fixture(scope="session")
def small_library(small_films: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of `small_films`; tests that change it copy it."""
    from tests.support.models.stage_models import library_of

    return made_once(tmp_path_factory, "small-library", lambda place: library_of(place, small_films))


@pytest.fixture(scope="session")
def opened(library: Path) -> Library:
    """The library of drawn films, open; tests only read it."""
    from kinodex.index.library import Library

    return Library.open(str(library))


@pytest.fixture(scope="session")
def described(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of drawn films with captions, detections and a second space; tests only read it."""
    from tests.support.libraries.described_library import make_described

    return make_described(library, tmp_path_factory.mktemp("described"))


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of two films of four places, `aa` and `bb`, with captions and lines; tests that change it copy it."""
    from tests.support.scenes.chaptered_film import make_film

    return made_once(tmp_path_factory, "places", lambda folder: make_film(folder, "aa", "bb"))
