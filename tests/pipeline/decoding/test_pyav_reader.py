"""Awkward and damaged files give their readable frames, or an error of the right class; a plan sends fewer packets."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.decoding.open import open_video, probe
from kinodex.pipeline.decoding.packet_plan import PacketPlan, Packets, PlanViolated, list_packets, plan_samples
from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.errors import (
    NotAVideo,
    NothingDecodes,
    PipelineError,
)
from tests.support.ffmpeg import MADE, ffmpeg, needs_ffmpeg

av = pytest.importorskip("av")


def times_at(path: Path, fps: float = 1) -> tuple[list[tuple[int, float]], float, int]:
    """(number, time) of each sample, the end, and the errors."""
    with open_video(path) as video:
        found = [(sample.number, sample.time_s) for sample in video.samples(fps)]
        return found, video.end_s, video.decode_errors


@pytest.mark.slow
@needs_ffmpeg
def test_a_file_cut_short_gives_its_beginning(made: Callable[[str], Path], media: Path, tmp_path: Path) -> None:
    for kind in ("h264.mp4", "h264_open.mkv", "h264_open.ts", "mpeg2.mpg", "mpeg4.avi"):
        whole = made(kind)
        cut = tmp_path / f"cut{whole.suffix}"
        data = whole.read_bytes()
        cut.write_bytes(data[: len(data) * 6 // 10])
        full, _, _ = times_at(whole)
        part, end_s, _ = times_at(cut)
        assert 4 < len(part) < len(full), kind
        assert [number for number, _ in part] == [number for number, _ in full[: len(part)]], kind
        assert end_s < full[-1][1], kind
    cut.with_suffix(".mp4").write_bytes((media / "clips" / "moviepy__sintel_trailer_52s.mp4").read_bytes()[:20_000])
    with pytest.raises((NotAVideo, NothingDecodes)):  # its index is cut off
        probe(cut.with_suffix(".mp4"))


def test_random_damage_never_crashes_and_never_runs_on(media: Path, tmp_path: Path) -> None:
    data, dice = (media / "awkward" / "pyscenedetect__counter.mp4").read_bytes(), random.Random(7)
    path = tmp_path / "fuzzed.mp4"
    outcomes = set()
    for _ in range(30):
        broken = bytearray(data)
        for _ in range(dice.randrange(1, 60)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        path.write_bytes(broken[: dice.randrange(len(broken) // 2, len(broken) + 1)])
        try:
            found, _, _ = times_at(path)
            assert len(found) <= 30
            outcomes.add("frames")
        except PipelineError as error:
            outcomes.add(type(error).__name__)
    assert "frames" in outcomes


X264 = "b-adapt=0:scenecut=0:b-pyramid=none"


def write_film(path: Path, steps_ms: list[int]) -> None:
    """H.264 with two B-frames in a row, each frame noise and shown for its own time."""
    times_ms = [0, *accumulate(steps_ms[:-1])]
    dice = np.random.default_rng(0)
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=25, options={"bf": "2", "x264-params": X264})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 1000)
        for time_ms in times_ms:
            frame = av.VideoFrame.from_ndarray(dice.integers(0, 255, (48, 64, 3), np.uint8), format="rgb24")
            frame.pts, frame.time_base = time_ms, Fraction(1, 1000)
            file.mux(stream.encode(frame.reformat(format="yuv420p")))
        file.mux(stream.encode())


def test_the_last_frame_in_time_does_not_last_as_long_as_one_sent_after_it(tmp_path: Path) -> None:
    """Of B-frames at a variable rate; with a plan, and where damage has all decoded."""
    for steps_ms, times in (
        ([40] * 18 + [5000, 40, 40], [0.0, 0.72]),  # FFmpeg: the last one lasts 5 s, and is a sample
        ([40] * 18 + [1000] * 3, [0.0, 0.72, 1.72, 2.72]),
    ):
        path = tmp_path / f"{len(times)}.mp4"
        write_film(path, steps_ms)
        for damaged in (False, True):
            if damaged:
                with av.open(str(path)) as file:
                    position = [packet.pos for packet in file.demux(video=0) if packet.size][4]
                with path.open("r+b") as bytes_:
                    bytes_.seek(position or 0)
                    bytes_.write(b"\xff" * 60)
            with open_video(path) as video:
                found = [round(sample.time_s, 3) for sample in video.samples(1.0)]
                assert video.end_s == pytest.approx(sum(steps_ms) / 1000)
                assert (video.decode_errors > 0) == damaged
            assert found == times, damaged


CLOSED = [0, 3, 1, 2, 4, 7, 5, 6]  # two groups of four: I P B B


OPEN = [0, 3, 1, 2, 6, 4, 5, 7]  # the second begins with an I that is shown after two of its B


def planned(times: list[int], keys: list[int], every: int, first: int = 0, until: int | None = None) -> PacketPlan:
    """The plan for one sample of `every` frames of a stream, with times in the order of decoding."""
    pts = np.array(times, np.int64)
    packets = Packets(pts, np.isin(pts, keys), np.zeros(len(pts), bool), Fraction(max(times) + 1))
    return plan_samples(packets, 0, Fraction(1, every), first, until)


@pytest.mark.parametrize(
    ("case", "plan", "numbers", "sent", "restart"),
    [
        ("of a closed group only what comes before its last wanted frame",
         planned([*CLOSED, 8], [0, 4, 8], every=4), {0: 0, 4: 1, 8: 2}, [0, 4, 8], [4, 8]),
        ("a group without wanted frames is left out",
         planned([*CLOSED, 8, 11, 9, 10], [0, 4, 8], every=9), {0: 0, 9: 1}, [0, 8, 11, 9], [8]),
        ("leading pictures that are wanted need the group before",
         planned([*OPEN, 8], [0, 6, 8], every=5), {0: 0, 5: 1}, [0, 3, 1, 2, 6, 4, 5], []),
        ("leading pictures that are not wanted are left out with the group before",
         planned([*OPEN, 8], [0, 6, 8], every=7), {0: 0, 7: 1}, [0, 6, 7], [6]),
        ("a part begins afresh and ends with its own frames",
         planned([6, 4, 5, 7, 8], [6, 8], every=1, first=6, until=8), {6: 6, 7: 7}, [6, 7], [6]),
    ],
)  # fmt: skip
def test_a_plan_sends_what_is_needed(case, plan, numbers, sent, restart) -> None:
    assert (plan.numbers, plan.pts[plan.sent].tolist()) == (numbers, sent), case
    assert plan.pts[plan.restart].tolist() == restart, case


def plan_of(path: Path, fps: float) -> PacketPlan:
    video = PyavReader(path, path.name)
    rate = Fraction(fps).limit_denominator(1000) * video.base
    return plan_samples(video.packets(), video.first_pts, rate, video.first_pts, None)


@pytest.mark.slow
@needs_ffmpeg
def test_a_plan_is_less_work_and_finds_key_frames_out_that_are_none(made: Callable[[str], Path]) -> None:
    """Intra refresh: what the file calls key frames refresh the picture bit by bit; nothing starts there."""
    for kind in set(MADE) - {"mpeg2.mpg"}:
        assert plan_of(made(kind), 0.2).sent.mean() < 0.45, kind
    path = made("refresh.mkv")
    assert plan_of(path, 0.5).restart.any()
    every, some = shown(path, 1000), shown(path, 0.5)
    assert len(some) >= 5
    assert some == {time_s: every[time_s] for time_s in some}


def shown(path: Path, fps: float) -> dict[float, int]:
    """Time and fingerprint of each sample."""
    with open_video(path) as video:
        return {s.time_s: zlib.crc32(np.ascontiguousarray(s.frame.to_ndarray()).data) for s in video.samples(fps)}


@pytest.mark.slow
@needs_ffmpeg
def test_damage_in_the_middle_loses_only_what_is_damaged(made: Callable[[str], Path], tmp_path: Path) -> None:
    for kind in ("h264.mp4", "h264_open.mkv", "mpeg2.ts", "vp8.webm"):
        whole = made(kind).read_bytes()
        full, end_s, _ = times_at(made(kind))
        path, middle, size = tmp_path / kind, len(whole) // 2, len(whole) // 40
        counted = 0
        for damage in (bytes(size), random.Random(1).randbytes(size)):
            path.write_bytes(whole[:middle] + damage + whole[middle + size :])
            found, damaged_end_s, errors = times_at(path)
            counted += errors
            assert len(found) >= len(full) - 3, kind
            assert damaged_end_s == pytest.approx(end_s, abs=0.5), kind
        assert counted > 0 or kind == "vp8.webm"  # VP8 turns any bytes into a picture without complaint


@pytest.mark.slow
@needs_ffmpeg
def test_other_containers(tmp_path: Path) -> None:
    for container in ("h264", "avi", "mpg", "wmv", "flv", "mov", "3gp", "ogv", "mxf", "gif"):
        path = tmp_path / f"made.{container}"
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=176x144:rate=25:duration=4", "-pix_fmt",
               "rgb8" if container == "gif" else "yuv420p", path)  # fmt: skip
        found, end_s, errors = times_at(path)
        assert ([number for number, _ in found], errors) == ([0, 1, 2, 3], 0), container
        assert end_s - found[0][1] == pytest.approx(4, abs=0.1), container


def test_numbers_are_exact_where_they_exceed_64_bits() -> None:
    pts = np.array([0, 10**15, 2 * 10**15], np.int64)
    packets = Packets(pts, np.ones(3, bool), np.zeros(3, bool), Fraction(6 * 10**15 + 1, 3))
    plan = plan_samples(packets, 0, Fraction(999_999_999, 1_000_003), 0, None)
    assert plan.numbers == {time: -(-time * 999_999_999 // 1_000_003) for time in pts.tolist()}


def test_packets_that_are_no_ground_to_plan_on(media: Path) -> None:
    for name, message in {
        "mediabunny__hevc-aac.avi": "without presentation times",
        "mediabunny__annex-b.mp4": "damaged",
        "simpl__track_audiosprites_video.webm": "double",
    }.items():
        with pytest.raises(PlanViolated, match=message):
            PyavReader(media / "awkward" / name, name).packets()


def test_listing_tells_what_an_edit_list_hides(media: Path) -> None:
    video = PyavReader(media / "awkward" / "mediabunny__edit-list-discard.mp4", "discard")
    with video.open_stream() as (container, stream):
        packets = list_packets(container.demux(stream), stream)
    assert (len(packets), len(packets.shown())) == (50, 49)
    assert packets.shown()[0] == video.first_pts
