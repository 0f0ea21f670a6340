"""Fixtures of the pipeline's tests: a film, a folder of video files, and a web server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.pipeline import filesystems
from kinodex.pipeline.video_writer import encode_video
from tests.support.servers.files import film_server

FILM_S, FILM_FPS = 12, 10


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film of 12 s, 10 frames a second, 128x64 px, a key frame every 2 s: a bright bar that moves to the right."""
    path = tmp_path_factory.mktemp("film") / "bar.mp4"
    encode_video(film_frames(), path, width_px=128, height_px=64, fps=FILM_FPS, key_frame_s=2)
    return path


def film_frames() -> Iterator[NDArray[np.uint8]]:
    for number in range(FILM_S * FILM_FPS):
        frame = np.full((64, 128, 3), 40, np.uint8)
        frame[:, number * 112 // 120 : number * 112 // 120 + 16] = (250, 200, 30)
        yield frame


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


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pytest.importorskip("aiohttp")
    with film_server() as address:
        yield address


@pytest.fixture
def quick_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a source be tried again at once, where how often it is tried counts, and not how long it takes."""
    monkeypatch.setattr(filesystems, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(filesystems, "JITTER_S", 0.01)
