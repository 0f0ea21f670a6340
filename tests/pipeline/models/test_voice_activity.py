"""Windows of sound where somebody speaks: cut in pauses, whole, and none for music, noise and silence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from kinodex.pipeline.models.audio import (
    RATE_HZ,
    STEP,
    WINDOW_S,
    Sound,
    load_voice_detector,
    sound_pieces,
    speech_steps,
    voice_windows,
    windows_of,
)
from tests.support.models.stage_models import beeps

STEP_S = STEP / RATE_HZ


class Loudness:
    """Hears speech wherever it is loud: the cutting can be tried without real voices."""

    def listen(self) -> Loudness:
        return self

    def probabilities(self, samples):
        steps = np.pad(samples, (0, -len(samples) % STEP)).reshape(-1, STEP)
        return np.sqrt(np.square(steps).mean(axis=1)).clip(0, 1)


def loud(seconds: float, *ranges: tuple[float, float]) -> np.ndarray:
    """Silence of so many seconds with noise in these ranges."""
    samples = np.zeros(round(seconds * RATE_HZ), np.float32)
    for start_s, end_s in ranges:
        samples[round(start_s * RATE_HZ) : round(end_s * RATE_HZ)] = 0.9
    return samples


def pieces(samples: np.ndarray, start_s: float = 0.0, size: int = 1024) -> Iterator[Sound]:
    for first in range(0, len(samples), size):
        yield Sound(start_s + first / RATE_HZ, samples[first : first + size])


def spans(windows) -> list[tuple[float, float]]:
    return [(round(window.start_s, 1), round(window.end_s, 1)) for window in windows]


def test_a_range_of_speech_has_no_short_pauses_and_is_no_click():
    probabilities = np.zeros(200, np.float32)
    probabilities[50:80] = 0.9
    probabilities[70] = 0.0  # 32 ms
    probabilities[120] = 0.9
    ((start, end),) = speech_steps(probabilities)
    assert (start, end) == (50 - 6, 80 + 6)


def test_windows_hold_what_is_said_with_its_pauses_and_a_second_around():
    windows = list(voice_windows(pieces(loud(60, (10, 12), (14, 15), (40, 41))), Loudness()))
    assert spans(windows) == [(8.8, 16.2), (38.8, 42.2)]
    assert [len(window.speech or ()) for window in windows] == [2, 1]
    first, second = windows[0].speech or ()
    assert first == pytest.approx((9.8, 12.2), abs=STEP_S)
    assert second == pytest.approx((13.8, 15.2), abs=STEP_S)


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


@pytest.mark.parametrize("size", [160, 1024, 7001, 400_000])
def test_windows_do_not_depend_on_the_pieces_that_sound_comes_in(size):
    ranges = [(3.0, 9.0), (17.0, 17.6), (30.0, 61.5), (64.0, 65.0), (80.0, 80.1), (95.0, 99.0)]
    whole = list(voice_windows(pieces(loud(100, *ranges), 5.0, 10**7), Loudness()))
    split = list(voice_windows(pieces(loud(100, *ranges), 5.0, size), Loudness()))
    assert spans(whole) == spans(split)
    assert len(whole) > 3
    for one, other in zip(whole, split, strict=True):
        assert np.array_equal(one.samples, other.samples)
        assert one.speech == pytest.approx(np.array(other.speech))


def test_a_gap_of_the_sound_ends_a_window():
    sound = [*pieces(loud(4, (1, 4))), *pieces(loud(4, (0, 3)), 104.0)]
    assert spans(voice_windows(sound, Loudness())) == [(0.0, 4.0), (104.0, 108.0)]


def test_a_window_waits_for_its_end_where_the_sound_goes_on():
    probabilities = np.zeros(100, np.float32)
    probabilities[10:60] = 1.0
    assert list(windows_of(probabilities, goes_on=True)) == []
    assert len(list(windows_of(probabilities))) == 1
    later = np.concatenate([probabilities, np.zeros(200, np.float32)])
    assert len(list(windows_of(later, goes_on=True))) == 1


def test_the_real_detector_hears_nobody_in_tones_noise_and_silence():
    detector = load_voice_detector()
    noise = np.random.default_rng(0).normal(0, 0.1, 10 * RATE_HZ).astype(np.float32)
    for samples in (beeps(10.0, (4.0,)).samples, noise, np.zeros(10 * RATE_HZ, np.float32)):
        assert list(voice_windows(pieces(samples), detector)) == []


@pytest.mark.needs_media
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
