"""Fixtures that tests of the ways in share with those of jobs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.jobs.metadata import read_metadata, set_metadata
from tests.jobs.conftest import ctrl_c as ctrl_c
from tests.jobs.conftest import described as described
from tests.jobs.conftest import mcp_library as mcp_library
from tests.jobs.conftest import shown as shown
from tests.jobs.conftest import small_films as small_films
from tests.jobs.conftest import small_library as small_library


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
