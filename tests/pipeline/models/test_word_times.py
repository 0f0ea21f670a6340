"""Times of words: the best path through attention, and tokens joined to words."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from kinodex.pipeline.models.speech import path_times, words_of


def test_a_path_follows_what_each_token_attends_to():
    likeness = np.zeros((4, 20), np.float32)
    for row, (first, last) in enumerate([(0, 3), (3, 9), (9, 15), (15, 20)]):
        likeness[row, first:last] = 1.0
    assert path_times(likeness).tolist() == [0, 3, 9, 15]


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (6, 1), (5, 9), (9, 5), (12, 40)])
def test_no_path_is_better_than_the_one_that_was_found(shape):
    likeness = np.random.default_rng(shape[0]).normal(size=shape)

    @cache
    def best(row: int, step: int) -> float:
        if (row, step) == (0, 0):
            return float(likeness[0, 0])
        before = [(row - 1, step - 1), (row - 1, step), (row, step - 1)]
        return float(likeness[row, step]) + max(best(*each) for each in before if min(each) >= 0)

    starts = path_times(likeness).astype(int)
    assert starts[0] == 0
    assert (np.diff(starts) >= 0).all()
    ends = [*starts[1:], shape[1]]
    found = 0.0
    for row, (first, end) in enumerate(zip(starts, ends, strict=True)):
        own = likeness[row, first : max(end, first + 1)].sum()
        # the step where the next row begins may be shared by both
        shared = likeness[row, end] if first < end < shape[1] else 0.0
        found += own + max(shared, 0.0)
    assert found >= best(shape[0] - 1, shape[1] - 1) - 1e-9


def decoder(*texts: bytes):
    return lambda tokens, skip_special_tokens: b"".join(texts[token] for token in tokens).decode(errors="replace")


def words(*texts: bytes, language: str = "en") -> list[tuple[str, float, float]]:
    times = [float(number) for number in range(len(texts) + 1)]
    found = words_of(range(len(texts)), times, decoder(*texts), language)
    return [(word.text, word.start_s, word.end_s) for word in found]


def test_tokens_become_words_and_marks_belong_to_the_word_before():
    assert words(b" We", b"'re", b" on", b" Green", b"belt", b",", b" now", b"...") == [
        ("We're", 0, 2),
        ("on", 2, 3),
        ("Greenbelt,", 3, 5),
        ("now...", 6, 7),
    ]


def test_a_character_of_several_tokens_is_not_cut():
    kite = "\u51e7".encode()
    assert words(kite[:1], kite[1:2], kite[2:], "\u304c".encode(), "\u3002".encode(), language="ja") == [
        ("\u51e7", 0, 3),
        ("\u304c\u3002", 3, 4),
    ]
    assert words(b" caf", "\u00e9".encode()[:1], "\u00e9".encode()[1:], b" au") == [("caf\u00e9", 0, 3), ("au", 3, 4)]


def test_nothing_said_is_no_word():
    assert words() == []
    assert words(b" ") == []


def test_a_vowel_sign_is_said_and_no_punctuation():
    assert words(" हाथ".encode(), "ी".encode(), "।".encode(), language="hi") == [("हाथी।", 0.0, 2.0)]
