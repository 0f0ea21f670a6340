"""The index of frames is that of the samples, in batches that fit in memory, and other frames are found out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.pipeline.decoding.open import open_video, probe, split_video
from kinodex.pipeline.decoding.others import BATCH_BYTES, BATCH_FRAMES, FrameIndex, index_frames, reason_unfit
from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.decoding.stream import PickError


@pytest.fixture
def index(film: Path) -> FrameIndex:
    return index_frames(PyavReader(film, film.name), 2.0, None)


def test_the_index_holds_the_samples_of_a_whole_pass(film: Path, index: FrameIndex) -> None:
    with open_video(film) as video:
        samples = [(sample.number, sample.time_s) for sample in video.samples(2.0)]
        assert (index.start_s, index.end_s) == (video.start_s, video.end_s)
    assert list(zip(index.numbers, index.times_s, strict=True)) == samples
    assert index.indices == [5 * number for number in range(24)]
    assert (index.count, index.size_px) == (120, (128, 64))
    assert index.min_distance_s == pytest.approx(0.1)


def test_a_span_has_its_own_samples_with_the_numbers_of_the_whole(film: Path, index: FrameIndex) -> None:
    exact = PyavReader(film, film.name)
    parts = [index_frames(exact, 2.0, span) for span in split_video(film, film.name, 2.0, 4.0)]
    assert len(parts) > 1
    assert [number for part in parts for number in part.numbers] == index.numbers
    assert [place for part in parts for place in part.indices] == index.indices


def test_batches_are_bounded_by_frames_and_by_bytes(index: FrameIndex) -> None:
    assert [len(batch.numbers) for batch in index.batches()] == [BATCH_FRAMES, 24 - BATCH_FRAMES]
    huge = replace(index, size_px=(BATCH_BYTES // 3 // 1000, 1000))
    assert [len(batch.numbers) for batch in huge.batches()] == [1] * 24
    assert [number for batch in huge.batches() for number in batch.numbers] == index.numbers


def test_a_decoder_with_other_frames_is_found_out(index: FrameIndex) -> None:
    times = np.array(index.times_s)
    index.check_count(120)
    index.check_frames(times + 0.04, 128, 64)
    with pytest.raises(PickError, match="119 frames where the packets hold 120"):
        index.check_count(119)
    with pytest.raises(PickError, match=r"frames at other times, by up to 0\.060 s"):
        index.check_frames(times + 0.06, 128, 64)
    with pytest.raises(PickError, match="pictures of 64x128 px, not 128x64"):
        index.check_frames(times, 64, 128)


@pytest.mark.parametrize(
    ("decoder", "changes", "reason"),
    [
        ("decord", {}, None),
        ("torchcodec", {"container": "mpegts"}, None),
        ("decord", {"container": "mpegts"}, "transport stream"),
        ("torchcodec", {"interlaced": True}, "interlaced"),
        ("torchcodec", {"rotation_deg": 90}, None),
        ("torchcodec", {"rotation_deg": 90, "sample_aspect_ratio": 2.0}, "not square"),
        ("torchcodec", {"pix_fmt": "yuva420p"}, "transparent"),
        ("torchcodec", {"pix_fmt": "rgba64le"}, "transparent"),
        ("torchcodec", {"pix_fmt": "rgb24"}, None),
    ],
)
def test_streams_that_other_decoders_would_show_otherwise(
    film: Path, decoder: str, changes: dict[str, Any], reason: str | None
) -> None:
    found = reason_unfit(decoder, replace(probe(film), **changes))
    assert found is None if reason is None else found is not None and reason in found
