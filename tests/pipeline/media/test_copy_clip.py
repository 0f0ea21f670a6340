"""Clips that are copied: packets unchanged, from a key frame on, in a container that holds their codecs."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from kinodex.pipeline.errors import VideoError
from kinodex.pipeline.media.clips import copy_clip
from kinodex.pipeline.media.source import container_suffix
from tests.pipeline.media.test_encode_clip import FPS, LEVELS, film, shown

__all__ = ["film"]


def test_a_clip_begins_at_the_key_frame_before_and_loses_nothing(film: Path, tmp_path: Path) -> None:
    with av.open(str(film)) as container:
        keys = [(each.pts or 0) * (each.time_base or 0) for each in container.demux(video=0) if each.is_keyframe]
    begin_s = float(max(key for key in keys if key <= 2.35))
    clip = copy_clip(film, "film", tmp_path / "clip.mp4", 2.35, 3.25)
    assert (clip.start_s, clip.way, clip.has_sound) == (begin_s, "copied", False)
    assert clip.end_s >= 3.25
    until_the_end = [number for time_s, number in shown(clip.path) if begin_s + time_s < 3.25]
    assert until_the_end == [number % LEVELS for number in range(round(begin_s * FPS), 33)]
    ours, first = decoded(clip.path)[: len(until_the_end)], round(begin_s * FPS)
    assert ours == decoded(film)[first : first + len(ours)], "the same pictures to the last bit"


def decoded(path: Path) -> list[bytes]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray().tobytes() for frame in container.decode(video=0)]


def decoded_from(path: Path, start_s: float) -> list[bytes]:
    with av.open(str(path)) as container:
        frames = [frame for frame in container.decode(video=0) if (frame.time or 0.0) >= start_s - 1e-6]
    return [frame.to_ndarray().tobytes() for frame in frames]


def test_a_range_behind_the_end_leaves_no_file(film: Path, tmp_path: Path) -> None:
    with pytest.raises(VideoError, match=r"film: got a range from 8\.00 s, and its pictures end at 6\.00 s"):
        copy_clip(film, "film", tmp_path / "clip.mp4", 8.0, 9.0)
    assert not list(tmp_path.iterdir())


def test_containers_by_codec() -> None:
    assert container_suffix(["h264", "aac"]) == ".mp4"
    assert container_suffix(["vp8", "vorbis"]) == ".mkv"


@pytest.mark.needs_media
@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("awkward/mediabunny__rotate-buck-bunny.mp4", ".mp4"),
        ("awkward/mediabunny__test-mkv-srt.mkv", ".mp4"),
        ("awkward/mediabunny__av1-aac.avi", ".mp4"),
        ("awkward/mediabunny__frames.webm", ".mkv"),
    ],
)
def test_real_clips_are_copied_to_the_bit(media: Path, tmp_path: Path, name: str, suffix: str) -> None:
    source = media / name
    whole_s = length_s(source)
    clip = copy_clip(source, name, tmp_path / f"clip{suffix}", 0.5 * whole_s, 0.6 * whole_s)
    ours, theirs = decoded(clip.path), decoded_from(source, clip.start_s)
    shown_in_range = round(len(ours) * (0.6 * whole_s - clip.start_s) / (clip.end_s - clip.start_s)) - 1
    assert ours[:shown_in_range] == theirs[:shown_in_range] != []
    with av.open(str(source)) as original, av.open(str(clip.path)) as copy:
        assert clip.has_sound == bool(original.streams.audio) == bool(copy.streams.audio)
        assert next(original.decode(video=0)).rotation == next(copy.decode(video=0)).rotation


def length_s(path: Path) -> float:
    with av.open(str(path)) as container:
        return (container.duration or 0) / 1e6


@pytest.mark.needs_media
def test_a_container_that_cannot_hold_the_codec_is_refused(media: Path, tmp_path: Path) -> None:
    with pytest.raises(VideoError, match=r"mp4 cannot hold vp8; write the clip as \.mkv, or cut exactly"):
        copy_clip(media / "clips" / "simpl__gbike_ride_31s.webm", "ride", tmp_path / "clip.mp4", 1.0, 2.0)
    assert not list(tmp_path.iterdir())
