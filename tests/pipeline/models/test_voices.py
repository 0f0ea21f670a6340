"""Voices: vectors of lines, and lines grouped by voice."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from kinodex.pipeline.models.audio import RATE_HZ, sound_pieces
from kinodex.pipeline.models.voices import (
    DIM,
    SAME_IN_VIDEO,
    SAME_VOICE,
    group_voices,
    load_voice_encoder,
    unit,
)
from tests.support.models.stage_models import beeps

needs_weights = pytest.mark.skipif(find_spec("resemblyzer") is None, reason="pip install --no-deps resemblyzer")


def voice_of(number: int, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """A vector near the axis `number`: of cosine 1 / sqrt(1 + noise²) with it."""
    axis = np.zeros(DIM)
    axis[number] = 1.0
    chance = np.random.default_rng(seed).normal(size=DIM)
    return unit(axis + noise * chance / np.linalg.norm(chance))


def test_lines_of_one_voice_are_found_among_others():
    spoken = [voice_of(at % 3, 0.5, at) for at in range(30)]
    found, numbers = group_voices(spoken, [2.0] * 30)
    assert numbers == [at % 3 for at in range(30)]
    assert [round(voice.seconds) for voice in found] == [20, 20, 20]
    assert all(float(voice.vector @ voice_of(at)) > 0.95 for at, voice in enumerate(found))


@needs_weights
def test_the_encoder_is_the_same_however_loud_the_sound_is():
    encoder = load_voice_encoder("cpu")
    sound = beeps(3.0).samples + np.random.default_rng(0).normal(0, 0.05, 3 * RATE_HZ).astype(np.float32)
    loud, quiet = encoder.embed(sound * 0.05), encoder.embed(sound * 0.01)
    assert loud is not None
    assert quiet is not None
    assert loud.shape == (DIM,)
    assert float(np.linalg.norm(loud)) == pytest.approx(1.0, abs=1e-5)
    assert float(loud @ quiet) == pytest.approx(1.0, abs=1e-4)
    again = encoder.embed(sound * 0.05)
    assert again is not None
    assert np.array_equal(loud, again)
    assert encoder.embed(sound[: RATE_HZ // 2]) is None
    assert encoder.embed(np.zeros(RATE_HZ, np.float32)) is not None


@needs_weights
@pytest.mark.needs_media
@pytest.mark.slow
def test_real_voices_are_told_apart(media):
    """Lines of three narrators, as their films have them; times are where the detector of speech hears them."""
    encoder, vectors, seconds = load_voice_encoder("cpu"), [], []
    for name, lines in {
        "clips/torchcodec__nasa_13013.mp4": [(0.5, 4.7), (5.0, 8.4), (8.6, 12.2)],
        "awkward/simpl__track_audiosprites_video.webm": [(0.5, 4.4), (5.0, 7.1), (7.4, 11.0), (11.4, 13.5)],
        "clips/video2dataset__test_video.mp4": [(11.3, 17.8), (18.3, 24.3), (30.7, 37.1), (52.4, 56.7)],
    }.items():
        sound = np.concatenate([piece.samples for piece in sound_pieces(media / name, name)])
        for start_s, end_s in lines:
            vectors.append(encoder.embed(sound[round(start_s * RATE_HZ) : round(end_s * RATE_HZ)]))
            seconds.append(end_s - start_s)
    found, numbers = group_voices(vectors, seconds)
    assert numbers == [0] * 3 + [1] * 4 + [2] * 4
    between = [float(found[a].vector @ found[b].vector) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert max(between) < SAME_VOICE - 0.03
    assert SAME_IN_VIDEO < SAME_VOICE
