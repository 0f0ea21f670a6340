"""Ways to play a film, and streams from any time of it: the frame that is shown then comes first, at 0."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest

from kinodex.pipeline.decoding.clock import UNBROKEN
from kinodex.pipeline.errors import NotAVideo, PlaylistRefused, VideoError
from kinodex.pipeline.media.encoding import order_s
from kinodex.pipeline.media.facts import MediaFacts
from kinodex.pipeline.media.pictures import frames_from
from kinodex.pipeline.media.play import playable
from kinodex.pipeline.media.play_stream import StreamWay, encoded_pictures, encoder_name, write_stream
from kinodex.pipeline.media.source import open_source
from kinodex.pipeline.media.stream_child import BROKEN_FILE
from tests.support.ffmpeg import grey_film, needs_ffmpeg
from tests.support.libraries.play_library import FILM_S, FPS, KINDS, WIDTH_PX, film_frames, write_film, write_films

MP4, WEBM = "mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"


H264 = MediaFacts(MP4, "h264", "High", "yuv420p", False, False, 0, "aac", True, True)


def test_the_least_work_that_makes_it_play():
    for changes, way, why in (
        ({}, "file", "browsers play H.264 with AAC"),
        ({"sound": None, "hdr": True}, "file", "high dynamic range"),
        ({"rotation_deg": -90}, "file", "browsers play"),
        ({"container": WEBM, "codec": "vp8", "sound": "vorbis"}, "file", "VP8 with Vorbis"),
        ({"container": WEBM}, "remuxed", "Matroska"),
        ({"container": "mpegts"}, "remuxed", "MPEGTS"),
        ({"container": "avi"}, "remuxed", "AVI"),
        ({"sound": "ac3"}, "remuxed", "AC-3"),
        ({"is_first_video": False}, "remuxed", "several video tracks"),
        ({"container": "avi", "codec": "vp8"}, "transcoded", "AVI"),
        ({"container": "avi", "has_times": False}, "transcoded", "do not say when"),
        ({"codec": "hevc"}, "transcoded", "HEVC"),
        ({"codec": "mpeg2video"}, "transcoded", "no decoder for MPEG-2"),
        ({"codec": "prores"}, "transcoded", "no decoder for ProRes"),
        ({"pix_fmt": "yuv420p10le"}, "transcoded", "ten bits"),
        ({"pix_fmt": "yuv444p"}, "transcoded", "more colour"),
        ({"interlaced": True}, "transcoded", "interlaced"),
    ):
        choice = playable(replace(H264, **changes))
        assert choice.way == way and why in choice.why, changes
    assert playable(replace(H264, codec="hevc"), can_hevc=True).way == "file"
    assert playable(replace(H264, codec="hevc", container="mpegts"), can_hevc=True).way == "remuxed"
    failed = [frozenset(), frozenset({"file"}), frozenset({"file", "remuxed"})]
    assert [playable(H264, failed=each).way for each in failed] == ["file", "remuxed", "transcoded"]
    vp8 = replace(H264, container=WEBM, codec="vp8", sound=None)
    assert playable(vp8, failed=failed[1]).way == "transcoded", "MP4 does not take VP8"


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    write_films(folder)
    return folder


def streamed(uri: str, way: StreamWay, from_s: float) -> bytes:
    data = bytearray()

    def write(part: bytes) -> int:
        data.extend(part)
        return len(part)

    write_stream(uri, way, from_s, 9e9, SimpleNamespace(write=write))
    return bytes(data)


def time_s_of(frame: av.VideoFrame | av.AudioFrame) -> float:
    assert frame.time is not None
    return frame.time


def pictures(data: bytes) -> list[tuple[float, int]]:
    """Times of the pictures that a player shows, and the number of the film's frame that each is most like."""
    film = np.stack([frame.mean(axis=(0, 2)) for frame in film_frames()])
    with av.open(io.BytesIO(data), "r") as container:
        frames = [frame for frame in container.decode(video=0) if time_s_of(frame) > -0.001]
        seen = [frame.to_ndarray(format="rgb24").mean(axis=(0, 2)) for frame in frames]
    numbers = [int(np.abs(film - picture).mean(axis=1).argmin()) for picture in seen]
    return [(round(time_s_of(frame), 3), number) for frame, number in zip(frames, numbers, strict=True)]


@pytest.mark.slow
def test_a_stream_shows_the_frame_of_its_time_first_with_its_sound(films):
    ways: list[tuple[str, StreamWay]] = [("packed.mkv", "remuxed"), ("old.avi", "transcoded"), ("plain.mp4", "remuxed")]
    for name, way in ways:
        shown = pictures(streamed(str(films / name), way, 5.1))
        assert [time_s for time_s, _ in shown[:2]] == [0.0, 0.1] and abs(len(shown) - FILM_S * FPS + 51) <= 1, name
        assert all(abs(number - 51 - at) <= 2 for at, (_, number) in enumerate(shown)), name
        assert shown[-1][0] == pytest.approx(FILM_S - 5.2, abs=0.11), name
    with av.open(str(films / "broadcast.ts")) as container:  # searching in it is rough
        start_s = time_s_of(next(container.decode(video=0)))
    for number in (31, 71):
        shown = pictures(streamed(str(films / "broadcast.ts"), "transcoded", start_s + number / FPS))
        assert shown[0][0] == 0.0 and abs(shown[0][1] - number) <= 1
    for name in (name for name, (_, sound) in KINDS.items() if sound):
        data = streamed(str(films / name), "transcoded", 5.0)
        with av.open(io.BytesIO(data), "r") as container:
            times_s = [time_s for frame in container.decode(audio=0) if (time_s := time_s_of(frame)) >= 0]
        assert times_s[0] < 0.06 and times_s[-1] == pytest.approx(FILM_S - 5.0, abs=0.2), name


@pytest.mark.slow
def test_files_that_hold_no_video_are_refused(films, tmp_path):
    with pytest.raises(VideoError, match=r"shows no picture from 99\.00 s on"):
        streamed(str(films / "old.avi"), "transcoded", 99.0)
    (tmp_path / "list.mp4").write_text("#EXTM3U\n#EXTINF:1,\nplain.mp4\n#EXT-X-ENDLIST\n")
    with pytest.raises(PlaylistRefused):
        streamed(str(tmp_path / "list.mp4"), "remuxed", 0.0)
    (tmp_path / "text.mp4").write_text("no video at all")
    with pytest.raises(NotAVideo):
        streamed(str(tmp_path / "text.mp4"), "remuxed", 0.0)


@pytest.mark.slow
@needs_ffmpeg
def test_a_broadcast_with_pictures_out_of_order_loses_none(tmp_path):
    film = grey_film(tmp_path / "film.ts", "-c:v", "libx264", "-bf", "3", "-g", "60", "-c:a", "aac", length_s=6)
    with av.open(str(film)) as container:
        begin_s = min(time_s_of(frame) for frame in container.decode(video=0))
    for way in ("remuxed", "transcoded"):
        for from_s, count in ((begin_s - 0.001, 150), (begin_s, 150), (begin_s + 2.0, 100)):
            with av.open(io.BytesIO(streamed(str(film), way, from_s)), "r") as container:
                times_s = [time_s for frame in container.decode(video=0) if (time_s := time_s_of(frame)) > -0.001]
            assert len(times_s) == count and times_s[0] < 0.0015, (way, from_s)


def test_pictures_are_encoded_from_a_time_on_with_even_sides_and_in_order(tmp_path):
    write_film(tmp_path / "film.avi", "mpeg4", None, length_s=3)
    with ExitStack() as opened, av.open(io.BytesIO(), "w", format="mp4") as target:
        _, pictures, _ = frames_from(opened, lambda: open_source(str(tmp_path / "film.avi")), "film", 1.05, UNBROKEN)
        shown = list(pictures)
        assert shown[0][0] <= Fraction(105, 100) < shown[0][1]
        packets = list(encoded_pictures(shown[0], shown[1:], Fraction(1), target, 1.05))
        orders = [order_s(packet) for packet in packets]
        assert orders == sorted(orders) and orders[0] == 0.0 and len(packets) == len(shown) >= 2 * FPS - 1
        assert target.streams.video[0].width == WIDTH_PX
        assert target.streams.video[0].codec_context.name == encoder_name()
        for packet in packets:
            target.mux(packet)


def child(**task: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kinodex.pipeline.media.stream_child", "1500000000", json.dumps(task)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.mark.slow
def test_the_child_that_opens_files_ends_with_its_reader_and_with_its_parent(tmp_path):
    film = tmp_path / "film.mkv"
    write_film(film, "libx264", "aac", length_s=20)
    with child(task="facts", uri=str(film)) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.read())["codec"] == "h264" and process.wait() == 0
    with child(task="facts", uri=str(tmp_path / "none.mp4")) as process:
        assert process.stderr is not None
        assert json.loads(process.stderr.read())["error"] == "SourceMissing" and process.wait() == BROKEN_FILE
    with child(task="stream", uri=str(film), way="transcoded", from_s=0.0, end_s=20.0) as process:
        assert process.stdout is not None
        assert process.stdout.read(8)[4:] == b"ftyp"
        process.stdout.close()
        assert process.wait() == 0
    with child(task="stream", uri=str(film), way="transcoded", from_s=0.0, end_s=20.0) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.read(8)[4:] == b"ftyp"
        process.stdin.close()  # as when its parent ends
        assert process.wait() < 0
