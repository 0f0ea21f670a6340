"""Fixtures of the decoders' tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.ffmpeg import make, needs_decoder, small_pictures
from tests.support.house.once import made_once


@pytest.fixture(scope="session")
def made(media: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Files of `MADE` by name, each made when first asked for, once for all processes."""

    def encoded(kind: str) -> Path:
        small = made_once(tmp_path_factory, "small", lambda folder: small_pictures(media, folder)) / "small.nut"
        return made_once(tmp_path_factory, f"made-{kind}", lambda folder: make(kind, small, folder)) / kind

    return encoded


@pytest.fixture(params=["decord", "torchcodec"])
def decoder(request: pytest.FixtureRequest) -> str:
    needs_decoder(request.param)
    return str(request.param)
