"""One language for a video unless there is evidence of a change, however its windows come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.models.speech import follow_languages

ENGLISH, GERMAN = 0, 1


def windows(*shares: float) -> NDArray[np.float64]:
    """Log-probabilities of windows of which English has these shares, German the others."""
    logs: NDArray[np.float64] = np.log(np.array([[share, 1 - share] for share in shares]))
    return logs


def chosen(*shares: float, seconds: float = 25.0) -> list[int]:
    return follow_languages(windows(*shares), np.full(len(shares), seconds), None)[0]


def test_a_doubtful_window_does_not_change_the_language():
    assert chosen(0.99, 0.9, 0.3, 0.1, 0.95, 0.99) == [ENGLISH] * 6


def test_a_film_in_two_languages_changes_where_they_do():
    assert chosen(0.98, 0.99, 0.97, 0.02, 0.01, 0.05, 0.9) == [ENGLISH] * 3 + [GERMAN] * 3 + [GERMAN]
    assert chosen(0.999, 0.999, 0.001, 0.001, 0.999, 0.999) == [ENGLISH] * 2 + [GERMAN] * 2 + [ENGLISH] * 2


def test_the_first_window_is_judged_with_those_after_it():
    assert chosen(0.3, 0.99, 0.99) == [ENGLISH] * 3


def test_a_few_words_are_little_evidence():
    short = np.array([25.0, 25.0, 0.5, 25.0])
    assert follow_languages(windows(0.99, 0.99, 0.001, 0.99), short, None)[0] == [ENGLISH] * 4


def test_what_was_heard_before_counts_for_what_follows():
    _, standing = follow_languages(windows(0.99, 0.99), np.full(2, 25.0), None)
    assert follow_languages(windows(0.2), np.full(1, 25.0), standing)[0] == [ENGLISH]
    assert follow_languages(windows(0.2), np.full(1, 25.0), None)[0] == [GERMAN]
