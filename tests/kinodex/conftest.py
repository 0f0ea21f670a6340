"""Fixtures that tests of the ways in share with those of jobs."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kinodex.index.library import Library
from kinodex.jobs.metadata.input import read_metadata
from kinodex.jobs.metadata.update import set_metadata
from tests.jobs.conftest import described as described
from tests.jobs.conftest import small_films as small_films
from tests.jobs.conftest import small_library as small_library

if TYPE_CHECKING:
    from tests.support.libraries.viewer_library import Shown


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Interrupts reach this process, also where a shell started it in the background, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def mcp_library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A film of 30 s, `harbour`, with a transcript and detections; tests only read it."""
    from tests.support.servers.mcp_client import make_library

    return make_library(tmp_path_factory.mktemp("mcp"))


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """A library of one video, and two traces over it; tests only read them."""
    from tests.support.libraries.viewer_library import make_shown

    return make_shown(tmp_path_factory.mktemp("viewer"))


@pytest.fixture(scope="session")
def filmed(described: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The films of a front camera and of a back one, with columns of names that hurt."""
    place = shutil.copytree(described, tmp_path_factory.mktemp("filmed") / "library")
    table = place.parent / "cameras.csv"
    table.write_text(
        "name,camera,recorded at,order,größe\nfilm-01,front,2026-03-01T09:00+02:00,1,\nfilm-02,back's,,2,x\n"
    )
    set_metadata(Library.open(str(place)), read_metadata([table]))
    return place
