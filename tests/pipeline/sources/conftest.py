"""Fixtures of the tests of sources: a small folder of videos, and a web server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.files.film_server import film_server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small library: nested, hidden, oddly named and subtitled files."""
    names = ["a.mp4", "b/c.MKV", "b/notes.txt", "film.mp4", "film.srt", "film.en.vtt", "film.trailer.mp4"]
    names += ["film.trailer.en.ass", ".hidden.mp4", ".cache/x.mp4", "._a.mp4", "take[1].mov", "data.bin", "films.srt"]
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path


@pytest.fixture(scope="package")
def address() -> Iterator[str]:
    pytest.importorskip("aiohttp")
    with film_server() as address:
        yield address
