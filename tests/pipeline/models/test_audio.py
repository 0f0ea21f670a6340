"""The sound of a video in windows: whole, in order, at the right times, cut in pauses, and where somebody speaks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from kinodex.pipeline.errors import SoundError
from kinodex.pipeline.models.audio import RATE_HZ, WINDOW_S, Sound, sound_pieces, sound_windows
from kinodex.pipeline.models.speech.windows import STEP, Listener, VoiceDetector, load_voice_detector, voice_windows
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg
from tests.support.models.stage_models import beeps

PAUSES_S = (4.0, 24.0, 27.0, 49.0)


@pytest.mark.slow
def test_windows_are_the_sound_whole_and_in_order_and_end_in_pauses(long_film):
    windows = list(sound_windows(long_film, "long"))
    assert all(0 < len(window.samples) <= WINDOW_S * RATE_HZ for window in windows)
    for before, after in pairwise(windows):
        assert after.start_s == pytest.approx(before.end_s, abs=1e-6)
    heard, expected = np.concatenate([window.samples for window in windows]), beeps(70.0, PAUSES_S).samples
    assert windows[0].start_s == pytest.approx(0.0, abs=0.07)  # what an AAC encoder puts before the first sample
    assert len(heard) == pytest.approx(len(expected), abs=2048)
    by_second = [np.square(part[: len(expected)].reshape(70, -1)).mean(axis=1) for part in (heard, expected)]
    assert np.allclose(np.sqrt(by_second[0]), np.sqrt(by_second[1]), atol=0.03)
    ends_s = [window.end_s for window in windows[:-1]]
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


STEP_S = STEP / RATE_HZ


class Loudness(VoiceDetector, Listener):
    """Hears speech wherever it is loud: the cutting can be tried without real voices."""

    def __init__(self) -> None:
        """Load no model."""

    def listen(self) -> Loudness:
        return self

    def probabilities(self, samples):
        steps = np.pad(samples, (0, -len(samples) % STEP)).reshape(-1, STEP)
        return np.sqrt(np.square(steps).mean(axis=1)).clip(0, 1)


def loud(seconds: float, *ranges: tuple[float, float]) -> np.ndarray:
    """Silence of this many seconds with noise in these ranges."""
    samples = np.zeros(round(seconds * RATE_HZ), np.float32)
    for start_s, end_s in ranges:
        samples[round(start_s * RATE_HZ) : round(end_s * RATE_HZ)] = 0.9
    return samples


def pieces(samples: np.ndarray, start_s: float = 0.0, size: int = 1024) -> Iterator[Sound]:
    for first in range(0, len(samples), size):
        yield Sound(start_s + first / RATE_HZ, samples[first : first + size])


def test_long_talk_is_cut_in_its_pauses_and_without_a_pause_where_speech_is_least_certain():
    talk = loud(100, (0, 11), (11.5, 23), (23.5, 34))
    windows = list(voice_windows(pieces(talk), Loudness()))
    assert [window.end_s - window.start_s <= WINDOW_S for window in windows] == [True, True]
    assert 23 <= windows[0].end_s <= 23.6
    without = loud(50, (0, 50))
    without[round(25 * RATE_HZ) : round(25.1 * RATE_HZ)] = 0.6
    cut = list(voice_windows(pieces(without), Loudness()))
    assert cut[0].end_s == pytest.approx(25.05, abs=2 * STEP_S)
    assert sum(len(window.samples) for window in cut) / RATE_HZ == pytest.approx(50, abs=STEP_S)


def test_the_real_detector_hears_nobody_in_tones_noise_and_silence():
    detector = load_voice_detector()
    noise = np.random.default_rng(0).normal(0, 0.1, 10 * RATE_HZ).astype(np.float32)
    for samples in (beeps(10.0, (4.0,)).samples, noise, np.zeros(10 * RATE_HZ, np.float32)):
        assert list(voice_windows(pieces(samples), detector)) == []


@pytest.mark.slow
def test_the_real_detector_hears_the_speech_of_real_clips_and_no_music(media):
    detector = load_voice_detector()

    def heard(name: str) -> list[tuple[float, float]]:
        windows = voice_windows(sound_pieces(media / name, name), detector)
        return [each for window in windows for each in window.speech or ()]

    for silent in ("clips/moviepy__big_buck_bunny_0_30.webm", "clips/moviepy__chaplin.mp4"):
        assert heard(silent) == []
    talk = heard("clips/torchcodec__nasa_13013.mp4")
    assert [talk[0][0], talk[-1][1]] == pytest.approx([0.5, 12.4], abs=0.3)
    trailer = heard("clips/moviepy__sintel_trailer_52s.mp4")
    assert [round(start_s) for start_s, _ in trailer] == [12, 19, 37, 42]


@needs_ffmpeg
def test_the_sound_track_is_a_players_choice_or_the_one_that_is_named(tmp_path):
    film, tones = tmp_path / "film.mkv", ("sine=400:d=1", "sine=900:d=1")
    inputs = [word for tone in ("testsrc=d=1", *tones) for word in ("-f", "lavfi", "-i", tone)]
    languages = ("-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=ger", "-disposition:a:1", "default")
    ffmpeg(*inputs, "-map", "0", "-map", "1", "-map", "2", "-disposition:a:0", "0", *languages, film)

    def tone_hz(track):
        samples = np.concatenate([each.samples for each in sound_pieces(film, "film", track=track)])
        return int(np.argmax(np.abs(np.fft.rfft(samples))) * RATE_HZ / len(samples))

    for track, hz in ((None, 900), ("1", 400), ("2", 900), ("eng", 400), ("ger", 900)):
        assert tone_hz(track) == pytest.approx(hz, abs=10), track
    with pytest.raises(SoundError, match=r"got sound track 'de', and it has 1 \(eng\), 2 \(ger\)"):
        next(sound_pieces(film, "film", track="de"))


@needs_ffmpeg
@pytest.mark.parametrize(("right", "level"), [("-1", 2.0), ("1", 2.0), ("0", 1.0), ("-0.6", 1.6)])
def test_two_channels_are_heard_whatever_their_phase(right, level, tmp_path):
    """The right one is the left one times `right`; `level` is what both amount to, of one of them."""
    path = tmp_path / "two.mkv"
    tone = f"aevalsrc='0.25*sin(440*2*PI*t)|{right}*0.25*sin(440*2*PI*t)':d=3:s=48000:c=stereo"
    ffmpeg("-f", "lavfi", "-i", tone, "-c:a", "pcm_s16le", path)
    heard = np.concatenate([piece.samples for piece in sound_pieces(path, "two")])
    assert np.abs(heard[RATE_HZ : 2 * RATE_HZ]).max() == pytest.approx(0.25 * level / 2**0.5, rel=0.03)
    assert np.abs(heard).max() < 0.4
