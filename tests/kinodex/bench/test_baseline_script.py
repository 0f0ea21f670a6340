"""The plain script embeds every sampled frame, where decord is installed; else the reason names the package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from kinodex.bench.ingest import reason_missing, run_plain_script
from tests.kinodex.bench.conftest import FILM_S
from tests.support.ffmpeg import needs_decoder


@pytest.mark.skipif(find_spec("decord") is not None, reason="decord is installed")
def test_without_decord_it_says_what_to_install() -> None:
    assert reason_missing() == "decord is not installed; pip install decord"


@pytest.mark.parametrize("batch", [1, 8])
def test_every_sampled_frame_is_embedded(film: Path, batch: int) -> None:
    needs_decoder("decord")
    assert reason_missing() is None
    frames, seconds = run_plain_script([film], "builtin", "cpu", 1.0, batch)
    assert frames == FILM_S
    assert seconds > 0
