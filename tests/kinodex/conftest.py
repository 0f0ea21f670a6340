"""What the tests of the ways in share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def described(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of drawn films with captions, detections and a second space; tests only read it."""
    from tests.support.libraries.described_library import make_described

    return make_described(library, tmp_path_factory.mktemp("described"))
