"""An archive of tests/data, unpacked once for each file of tests, which names it as `ARCHIVE`; its library, copied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.archives.read import unpack


@pytest.fixture(scope="module")
def archive(request: pytest.FixtureRequest, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the unpacked archive; tests that write take a copy."""
    name: str = request.module.ARCHIVE
    return unpack(root / "tests" / "data" / name, tmp_path_factory.mktemp("archive"))


@pytest.fixture
def library(archive: Path, tmp_path: Path) -> Path:
    """A copy of the library."""
    return Path(shutil.copytree(archive / "library", tmp_path / "library"))
