"""Frames decoded by a plan are those of decoding everything, to the last bit, for less work."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.decoding.pyav_reader import (
    PacketPlan,
    Packets,
    PlanViolated,
    PyavReader,
    list_packets,
    plan_samples,
)
from kinodex.pipeline.errors import PipelineError
from tests.support.ffmpeg import MADE, ffmpeg, make, needs_ffmpeg

CLOSED = [0, 3, 1, 2, 4, 7, 5, 6]  # two groups of four: I P B B
OPEN = [0, 3, 1, 2, 6, 4, 5, 7]  # the second begins with an I that is shown after two of its B


def planned(times: list[int], keys: list[int], every: int, first: int = 0, until: int | None = None) -> PacketPlan:
    """The plan for one sample of `every` frames of a stream, with times in the order of decoding."""
    pts = np.array(times, np.int64)
    packets = Packets(pts, np.isin(pts, keys), np.zeros(len(pts), bool), Fraction(max(times) + 1))
    return plan_samples(packets, 0, Fraction(1, every), first, until)


def sent(plan: PacketPlan) -> list[int]:
    return [int(pts) for pts in plan.pts[plan.sent]]


def test_of_each_closed_group_only_what_comes_before_its_last_wanted_frame_is_sent() -> None:
    plan = planned([*CLOSED, 8], [0, 4, 8], every=4)
    assert plan.numbers == {0: 0, 4: 1, 8: 2}
    assert sent(plan) == [0, 4, 8]
    assert plan.pts[plan.restart].tolist() == [4, 8]


def test_a_group_without_wanted_frames_is_left_out() -> None:
    plan = planned([*CLOSED, 8, 11, 9, 10], [0, 4, 8], every=9)
    assert plan.numbers == {0: 0, 9: 1}
    assert sent(plan) == [0, 8, 11, 9]


def test_leading_pictures_that_are_wanted_need_the_group_before() -> None:
    plan = planned([*OPEN, 8], [0, 6, 8], every=5)
    assert plan.numbers == {0: 0, 5: 1}
    assert sent(plan) == [0, 3, 1, 2, 6, 4, 5]
    assert not plan.restart.any()


def test_leading_pictures_that_are_not_wanted_are_left_out_with_the_group_before() -> None:
    plan = planned([*OPEN, 8], [0, 6, 8], every=7)
    assert plan.numbers == {0: 0, 7: 1}
    assert sent(plan) == [0, 6, 7]
    assert plan.pts[plan.restart].tolist() == [6]


def test_a_part_begins_afresh_and_ends_with_its_own_frames() -> None:
    plan = planned([6, 4, 5, 7, 8], [6, 8], every=1, first=6, until=8)
    assert (plan.numbers, sent(plan)) == ({6: 6, 7: 7}, [6, 7])
    assert plan.restart.tolist() == [True, False, False, False, False]


def test_numbers_are_exact_where_they_exceed_64_bits() -> None:
    pts = np.array([0, 10**15, 2 * 10**15], np.int64)
    packets = Packets(pts, np.ones(3, bool), np.zeros(3, bool), Fraction(6 * 10**15 + 1, 3))
    plan = plan_samples(packets, 0, Fraction(999_999_999, 1_000_003), 0, None)
    assert plan.numbers == {time: -(-time * 999_999_999 // 1_000_003) for time in pts.tolist()}


def shown(path: Path, fps: float) -> dict[float, str]:
    """Time and fingerprint of each sample."""
    with open_video(path) as video:
        return {s.time_s: hashlib.md5(s.frame.to_ndarray().tobytes()).hexdigest() for s in video.samples(fps)}


def plan_of(path: Path, fps: float) -> PacketPlan:
    video = PyavReader(path, path.name)
    rate = Fraction(fps).limit_denominator(1000) * video.base
    return plan_samples(video.packets(), video.first_pts, rate, video.first_pts, None)


@needs_ffmpeg
@pytest.mark.parametrize("kind", MADE)
def test_a_plan_changes_no_bit(media: Path, tmp_path: Path, kind: str) -> None:
    path = make(kind, media, tmp_path)
    every = shown(path, 1000)
    for fps in (0.2, 1, 6):
        some = shown(path, fps)
        assert len(some) >= 9.9 * fps
        assert some == {time_s: every[time_s] for time_s in some}
    if kind != "mpeg2.mpg":  # most of its packets carry no time
        assert plan_of(path, 0.2).sent.mean() < 0.45


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["clips", "awkward"])
def test_a_plan_changes_no_bit_of_real_files(media: Path, folder: str) -> None:
    compared = 0
    for path in sorted((media / folder).iterdir()):
        if path.stat().st_size > 500_000:
            continue
        try:
            every = shown(path, 90_000)
        except PipelineError:
            continue
        for fps in (0.3, 2):
            some = shown(path, fps)
            assert some == {time_s: every[time_s] for time_s in some}, path.name
        compared += 1
    assert compared >= 5


@needs_ffmpeg
def test_key_frames_that_are_none_are_found_out(media: Path, tmp_path: Path) -> None:
    """Intra refresh: what the file calls key frames refresh the picture bit by bit; nothing starts there."""
    path = tmp_path / "refresh.mkv"
    clip = media / "clips" / "torchcodec__dog_eating_854132.mp4"
    ffmpeg(
        "-i", clip, "-an", "-vf", "scale=160:90", "-c:v", "libx264", "-x264-params", "keyint=30:intra-refresh=1", path
    )
    assert plan_of(path, 0.5).restart.any()
    every, some = shown(path, 1000), shown(path, 0.5)
    assert len(some) >= 5
    assert some == {time_s: every[time_s] for time_s in some}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mediabunny__hevc-aac.avi", "without presentation times"),
        ("mediabunny__annex-b.mp4", "damaged"),
        ("simpl__track_audiosprites_video.webm", "double"),
    ],
)
def test_packets_that_are_no_ground_to_plan_on(media: Path, name: str, message: str) -> None:
    with pytest.raises(PlanViolated, match=message):
        PyavReader(media / "awkward" / name, name).packets()


def test_listing_tells_what_an_edit_list_hides(media: Path) -> None:
    video = PyavReader(media / "awkward" / "mediabunny__edit-list-discard.mp4", "discard")
    with video.open_stream() as (container, stream):
        packets = list_packets(container.demux(stream), stream)
    assert (len(packets), len(packets.shown())) == (50, 49)
    assert packets.shown()[0] == video.first_pts
