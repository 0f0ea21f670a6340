"""Streams from any time of a film: the frame that is shown then comes first, at 0, whatever the file is."""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np
import pytest

from kinodex.pipeline.errors import NotAVideo, PlaylistRefused, VideoError
from kinodex.pipeline.media.play import StreamWay, write_stream
from kinodex.pipeline.media.source import open_source, read_facts
from tests.support.ffmpeg import grey_film, needs_ffmpeg
from tests.support.libraries.play_library import FILM_S, FPS, KINDS, film_frames, write_films
from tests.support.servers.files.folder_server import serve_folder


class Sink(io.RawIOBase):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        self.data += data
        return len(data)


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    write_films(folder)
    return folder


def streamed(uri: str, way: StreamWay, from_s: float) -> bytes:
    sink = Sink()
    write_stream(uri, way, from_s, sink)
    return bytes(sink.data)


def time_s_of(frame: av.VideoFrame | av.AudioFrame) -> float:
    assert frame.time is not None
    return frame.time


def pictures(data: bytes) -> list[tuple[float, int]]:
    """Times of the pictures that a player shows, and the number of the film's frame that each is most like."""
    film = [frame.mean(axis=(0, 2)) for frame in film_frames()]
    with av.open(io.BytesIO(data), "r") as container:
        frames = [frame for frame in container.decode(video=0) if time_s_of(frame) > -0.001]
        seen = [frame.to_ndarray(format="rgb24").mean(axis=(0, 2)) for frame in frames]
    numbers = [int(np.argmin([np.abs(each - picture).mean() for each in film])) for picture in seen]
    return [(round(time_s_of(frame), 3), number) for frame, number in zip(frames, numbers, strict=True)]


@pytest.mark.parametrize(
    ("name", "way"), [("packed.mkv", "remuxed"), ("old.avi", "transcoded"), ("plain.mp4", "remuxed")]
)
def test_a_stream_shows_the_frame_of_its_time_first(films, name, way):
    shown = pictures(streamed(str(films / name), way, 5.1))
    assert [time_s for time_s, _ in shown[:2]] == [0.0, 0.1] and abs(len(shown) - FILM_S * FPS + 51) <= 1
    assert all(abs(number - 51 - at) <= 2 for at, (_, number) in enumerate(shown))
    assert shown[-1][0] == pytest.approx(FILM_S - 5.2, abs=0.11)


def test_a_stream_of_a_broadcast_begins_at_its_time_although_searching_in_it_is_rough(films):
    with av.open(str(films / "broadcast.ts")) as container:
        start_s = time_s_of(next(container.decode(video=0)))
    for number in (31, 71):
        shown = pictures(streamed(str(films / "broadcast.ts"), "transcoded", start_s + number / FPS))
        assert shown[0][0] == 0.0 and abs(shown[0][1] - number) <= 1


@pytest.mark.parametrize("name", [name for name, (_, sound) in KINDS.items() if sound])
def test_sound_begins_with_the_picture(films, name):
    data = streamed(str(films / name), "transcoded", 5.0)
    with av.open(io.BytesIO(data), "r") as container:
        times_s = [time_s for frame in container.decode(audio=0) if (time_s := time_s_of(frame)) >= 0]
    assert times_s[0] < 0.06 and times_s[-1] == pytest.approx(FILM_S - 5.0, abs=0.2)


def test_a_film_elsewhere_is_read_in_parts(films):
    pytest.importorskip("aiohttp")
    from tests.support.servers.files.part_server import serve_parts

    with serve_parts(films) as address:
        with open_source(f"{address}/packed.mkv") as container:
            assert read_facts(container, "packed").codec == "h264"
        assert streamed(f"{address}/packed.mkv", "remuxed", 5.1) == streamed(str(films / "packed.mkv"), "remuxed", 5.1)
    with serve_folder(films) as address, pytest.raises(Exception, match="no parts of them"):
        streamed(f"{address}/packed.mkv", "remuxed", 5.1)


def test_files_that_hold_no_video_are_refused(films, tmp_path):
    with pytest.raises(VideoError, match=r"shows no picture from 99\.00 s on"):
        streamed(str(films / "old.avi"), "transcoded", 99.0)
    (tmp_path / "list.mp4").write_text("#EXTM3U\n#EXTINF:1,\nplain.mp4\n#EXT-X-ENDLIST\n")
    with pytest.raises(PlaylistRefused):
        streamed(str(tmp_path / "list.mp4"), "remuxed", 0.0)
    (tmp_path / "text.mp4").write_text("no video at all")
    with pytest.raises(NotAVideo):
        streamed(str(tmp_path / "text.mp4"), "remuxed", 0.0)


@needs_ffmpeg
@pytest.mark.parametrize("way", ["remuxed", "transcoded"])
def test_a_broadcast_with_pictures_out_of_order_loses_none(tmp_path, way):
    film = grey_film(tmp_path / "film.ts", "-c:v", "libx264", "-bf", "3", "-g", "60", "-c:a", "aac")
    with av.open(str(film)) as container:
        begin_s = min(time_s_of(frame) for frame in container.decode(video=0))
    for from_s, count in ((begin_s - 0.001, 300), (begin_s, 300), (begin_s + 5.0, 175)):
        with av.open(io.BytesIO(streamed(str(film), way, from_s)), "r") as container:
            times_s = [time_s for frame in container.decode(video=0) if (time_s := time_s_of(frame)) > -0.001]
        assert len(times_s) == count and times_s[0] < 0.0015


@needs_ffmpeg
@pytest.mark.parametrize(
    ("name", "codec"), [("a.webm", "libvpx"), ("a.ogv", "libtheora"), ("a.wmv", "wmv2"), ("a.avi", "mpeg4")]
)
def test_what_mp4_cannot_hold_is_an_error_in_words(tmp_path, name, codec):
    film = grey_film(tmp_path / name, "-c:v", codec, "-bf", "2" if codec == "mpeg4" else "0", sound=False)
    with pytest.raises(VideoError, match=r"mp4 cannot hold (vp8|theora|wmv2); |say when they are shown"):
        streamed(str(film), "remuxed", 1.0)
    assert streamed(str(film), "transcoded", 1.0)
