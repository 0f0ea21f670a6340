"""The sound of a video in windows: whole, in order, at the right times, cut in pauses."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.errors import EmptyFile, NotAVideo, SoundError
from kinodex.pipeline.models.audio import RATE_HZ, WINDOW_S, sound_windows
from tests.support.models.stage_models import beeps, tiny_film

PAUSES_S = (4.0, 24.0, 27.0, 49.0)


CLIPS = {  # seconds of sound as ffprobe says, and its first presentation time
    "clips/moviepy__sintel_trailer_52s.mp4": (52.22, 0.0),
    "clips/video2dataset__test_video.mp4": (122.67, 0.0),
    "clips/moviepy__big_buck_bunny_0_30.webm": (30.02, 0.0),
    "awkward/mediabunny__no-initial-keyframe.ts": (2.647, 112.713),
    "awkward/mediabunny__hevc.ts": (5.014, 1.483),
}


@pytest.fixture(scope="module")
def long_film(tmp_path_factory) -> Path:
    """A minute and ten seconds; the second half of the last pause may end a window too."""
    return tiny_film(tmp_path_factory.mktemp("films") / "long.mp4", 2, 1, beeps(70.0, PAUSES_S))


def test_windows_are_the_sound_whole_and_in_order(long_film):
    windows = list(sound_windows(long_film, "long"))
    assert all(0 < len(window.samples) <= WINDOW_S * RATE_HZ for window in windows)
    for before, after in pairwise(windows):
        assert after.start_s == pytest.approx(before.end_s, abs=1e-6)
    heard = np.concatenate([window.samples for window in windows])
    expected = beeps(70.0, PAUSES_S).samples
    assert windows[0].start_s == pytest.approx(0.0, abs=0.07)  # what an AAC encoder puts before the first sample
    assert len(heard) == pytest.approx(len(expected), abs=2048)
    by_second = [np.square(part[: len(expected)].reshape(70, -1)).mean(axis=1) for part in (heard, expected)]
    assert np.allclose(np.sqrt(by_second[0]), np.sqrt(by_second[1]), atol=0.03)


def test_windows_end_in_pauses(long_film):
    windows = list(sound_windows(long_film, "long"))
    ends_s = [window.end_s for window in windows[:-1]]
    assert len(ends_s) >= 2
    assert any(pause_s <= ends_s[0] <= pause_s + 0.6 for pause_s in (24.0, 27.0))
    assert 49.0 <= ends_s[1] <= 49.6


def test_sound_that_begins_late_and_has_a_hole_keeps_its_times(tmp_path):
    import av

    path = tmp_path / "holes.mkv"
    tone = (beeps(1.0).samples * 32767).astype(np.int16)
    with av.open(str(path), "w") as file:
        audio = file.add_stream("pcm_s16le", rate=RATE_HZ, layout="mono")
        for start_s in (2.0, 10.0):
            for first in range(0, RATE_HZ, 1600):
                frame = av.AudioFrame.from_ndarray(tone[None, first : first + 1600], "s16", "mono")
                frame.sample_rate, frame.pts = RATE_HZ, round(start_s * RATE_HZ) + first
                file.mux(audio.encode(frame))
        file.mux(audio.encode())
    windows = list(sound_windows(path, "holes"))
    assert [(window.start_s, window.end_s) for window in windows] == [(2.0, 3.0), (10.0, 11.0)]


@pytest.mark.parametrize("name", CLIPS)
def test_real_sound_lasts_as_long_as_it_should(media, name):
    seconds, start_s = CLIPS[name]
    windows = list(sound_windows(media / name, name))
    assert windows[0].start_s == pytest.approx(start_s, abs=0.01)
    assert windows[-1].end_s - windows[0].start_s == pytest.approx(seconds, abs=0.05)
    assert sum(len(window.samples) for window in windows) / RATE_HZ == pytest.approx(seconds, abs=0.05)


def test_a_film_without_sound_has_no_window(tmp_path):
    assert list(sound_windows(tiny_film(tmp_path / "mute.mp4", 2, 1), "mute")) == []


def test_sound_of_which_nothing_decodes(tmp_path, long_film):
    """The packets of the sound track are overwritten; the file's tables stay whole."""
    import av

    path = tmp_path / "noise.mp4"
    data = bytearray(long_film.read_bytes())
    with av.open(str(long_film)) as file:
        packets = [packet for packet in file.demux(file.streams.audio[0]) if packet.size]
        places = [(packet.pos or 0, packet.size) for packet in packets]
    for place, size in places:
        data[place : place + size] = b"\xff" * size
    path.write_bytes(data)
    with pytest.raises(SoundError, match="nothing of its sound track decodes; re-encode it"):
        list(sound_windows(path, "noise.mp4"))


def test_files_that_are_no_films(tmp_path):
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "text.mp4").write_text("this is no film")
    with pytest.raises(EmptyFile):
        list(sound_windows(tmp_path / "empty.mp4", "empty.mp4"))
    with pytest.raises(NotAVideo):
        list(sound_windows(tmp_path / "text.mp4", "text.mp4"))
