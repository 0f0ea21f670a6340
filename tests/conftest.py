"""Fixtures that every test may use: the project's root and the real media beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def media() -> Path:
    """The folder of real videos that developers have beside the checkout; a user does not, and the test skips."""
    folder = ROOT.parent / "shared" / "media"
    if not folder.is_dir():
        pytest.skip("no ../shared/media beside this checkout")
    return folder


@pytest.fixture(scope="session")
def media_or_none() -> Path | None:
    """The same folder for tests that can also do without."""
    folder = ROOT.parent / "shared" / "media"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def benchmarks() -> Path:
    """The folder of real annotation files that developers have beside the checkout; without it the test skips."""
    folder = ROOT.parent / "shared" / "benchmarks"
    if not folder.is_dir():
        pytest.skip("no ../shared/benchmarks beside this checkout")
    return folder
