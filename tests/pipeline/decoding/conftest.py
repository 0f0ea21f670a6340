"""Fixtures of the decoders' tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.ffmpeg import make, needs_decoder


@pytest.fixture(scope="session")
def made(media: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Files of `MADE` by name, each made when first asked for."""
    return partial(make, media=media, folder=tmp_path_factory.mktemp("made"))


@pytest.fixture(params=["decord", "torchcodec"])
def decoder(request: pytest.FixtureRequest) -> str:
    needs_decoder(request.param)
    return str(request.param)
