"""Stages alone: chunks are those of an ingest, rates are positive, and torch's threads stay as they were."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.bench import ingest
from kinodex.index.spaces.space import load_space
from kinodex.pipeline.images import ModelInput
from kinodex.pipeline.sample import SamplingSettings
from tests.kinodex.bench.conftest import FILM_S

SETTINGS = SamplingSettings(1.0, 512, 85, "auto", ModelInput(96, 96, "squash"), cut_s=12.0, batch=8)


def test_videos_are_whole_and_split_as_an_ingest_splits_them(film: Path) -> None:
    whole, parts = ingest.make_chunks([film], SETTINGS)
    assert [chunk.span for chunk in whole] == [None]
    assert len(parts) > 1
    assert [(chunk.index, chunk.of) for chunk in parts] == [(index, len(parts)) for index in range(len(parts))]
    assert ingest.make_chunks([film], replace(SETTINGS, cut_s=0.0))[1] == whole


def test_material_is_the_first_frames_in_batches_of_one_size(film: Path) -> None:
    frames, batches = ingest.load_material(ingest.make_chunks([film], SETTINGS)[0], SETTINGS)
    assert len(frames) == FILM_S
    assert [batch.shape for batch in batches] == [(8, 3, 96, 96)] * (FILM_S // 8)


def test_rates_are_positive_and_leave_torch_as_it_was(film: Path) -> None:
    torch = pytest.importorskip("torch")
    chunks, _ = ingest.make_chunks([film], SETTINGS)
    space = load_space("builtin", towers="image")
    settings = replace(SETTINGS, input=ModelInput.from_json(space.fingerprint.preprocess))
    frames, batches = ingest.load_material(chunks, settings)
    before = torch.get_num_threads()
    assert ingest.embed_rate(space, batches[:1], 1) > 0
    assert torch.get_num_threads() == before
    assert ingest.jpeg_rate(frames[:4], settings) > 0
    assert ingest.prepare_rate(frames[:4], settings) > 0
    with ThreadPoolExecutor(1) as pool:
        assert ingest.decode_rate(pool, chunks, settings, at_once=False) > 0
        assert ingest.decode_rate(pool, chunks, settings, at_once=True) > 0
