"""decord and torchcodec give the samples of PyAV, or give way to it, on every file; wrong frames never come out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.pipeline.decoding.decord_reader import decord_frames
from kinodex.pipeline.decoding.frame_index import FrameIndex, index_frames, reason_unfit
from kinodex.pipeline.decoding.open import DECODERS, open_video, probe
from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.decoding.readers import PickError
from kinodex.pipeline.decoding.spans import split_video
from kinodex.pipeline.decoding.torchcodec_reader import torchcodec_frames
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg


@needs_ffmpeg
def test_a_failure_on_the_way_goes_on_behind_the_last_sample(media: Path, tmp_path: Path, decoder: str) -> None:
    """Damage late in the file: samples came, then PyAV takes over; none is missing, none comes twice."""
    path = tmp_path / "damaged.mp4"
    clip = media / "clips" / "moviepy__sintel_trailer_52s.mp4"
    ffmpeg("-i", clip, "-an", "-t", "30", "-vf", "scale=160:90", "-c:v", "libx264", "-g", "25", path)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size * 8 // 10)
        file.write(bytes(3000))
    with open_video(path) as video:
        exact = [(sample.number, sample.time_s) for sample in video.samples(5)]
    with open_video(path, decoder=decoder) as video:
        ours = [(sample.number, sample.time_s, video.fell_back) for sample in video.samples(5)]
        assert video.decoder == "pyav" and video.fell_back is not None
    assert [each[:2] for each in ours] == exact
    assert ours[0][2] is None


def test_spans_are_read_by_any_decoder(media: Path, decoder: str) -> None:
    path = media / "clips" / "pixeltable__bangkok_half_res.mp4"
    with open_video(path) as video:
        whole = [(sample.number, sample.time_s) for sample in video.samples(2)]
    joined = []
    for span in split_video(path, path.name, 2, 4):
        with open_video(path, decoder=decoder) as video:
            joined += [(sample.number, sample.time_s) for sample in video.samples(2, span)]
            assert video.fell_back is None
    assert joined == whole


def test_a_decoder_that_is_not_there_gives_way_and_says_what_to_install(media: Path, film: Path) -> None:
    """NVDEC without a GPU, and whatever else cannot be loaded here."""
    for decoder in DECODERS:
        with open_video(media / "awkward" / "pyscenedetect__counter.mp4", decoder=decoder) as video:
            assert [sample.number for sample in video.samples(1)] == [0, 1, 2]
            assert video.decoder in (decoder, "pyav")
    for name, opened in (
        ("decord", decord_frames),
        ("torchcodec", partial(torchcodec_frames, stream_index=0, device="cpu")),
    ):
        if find_spec(name) is None:
            with pytest.raises(PickError, match=f"{name} does not load.*pip install {name}"):
                opened(film)


@pytest.fixture
def index(film: Path) -> FrameIndex:
    return index_frames(PyavReader(film, film.name), 2.0, None)


def test_the_index_holds_the_samples_of_a_whole_pass_and_spans_their_own(film: Path, index: FrameIndex) -> None:
    with open_video(film) as video:
        samples = [(sample.number, sample.time_s) for sample in video.samples(2.0)]
        assert (index.start_s, index.end_s) == (video.start_s, video.end_s)
    assert list(zip(index.numbers, index.times_s, strict=True)) == samples
    assert index.indices == [5 * number for number in range(24)]
    assert (index.count, index.size_px) == (120, (128, 64))
    assert index.min_distance_s == pytest.approx(0.1)
    exact = PyavReader(film, film.name)
    parts = [index_frames(exact, 2.0, span) for span in split_video(film, film.name, 2.0, 4.0)]
    assert len(parts) > 1
    assert [number for part in parts for number in part.numbers] == index.numbers
    assert [place for part in parts for place in part.indices] == index.indices


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


def test_streams_that_other_decoders_would_show_otherwise(film: Path) -> None:
    metadata = probe(film)
    cases: list[tuple[str, dict[str, Any], str | None]] = [
        ("decord", {}, None),
        ("torchcodec", {"container": "mpegts"}, None),
        ("decord", {"container": "mpegts"}, "transport stream"),
        ("torchcodec", {"interlaced": True}, "interlaced"),
        ("torchcodec", {"rotation_deg": 90}, None),
        ("torchcodec", {"rotation_deg": 90, "sample_aspect_ratio": 2.0}, "not square"),
        ("torchcodec", {"pix_fmt": "yuva420p"}, "transparent"),
        ("torchcodec", {"pix_fmt": "rgba64le"}, "transparent"),
        ("torchcodec", {"pix_fmt": "rgb24"}, None),
        *((decoder, {"hdr": True}, "tone-mapped") for decoder in ("torchcodec", "decord", "nvdec")),
    ]
    for decoder, changes, reason in cases:
        found = reason_unfit(decoder, replace(metadata, **changes))
        assert found is None if reason is None else found is not None and reason in found, (decoder, changes)
