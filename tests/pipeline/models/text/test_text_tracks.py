"""Readings of successive frames as lines with their times, with the mistakes that readers make between frames."""

from __future__ import annotations

import pytest

from kinodex.pipeline.models.screen_text import Reading, join_readings

LOW = (0.1, 0.8, 0.5, 0.9)
HIGH = (0.1, 0.1, 0.5, 0.2)


def lines(*frames, times_s=None, end_s=None):
    """Join frames of texts, or of readings, a second apart unless `times_s` says otherwise: start, end and text."""
    readings = [[each if isinstance(each, Reading) else Reading(each, 0.95, LOW) for each in frame] for frame in frames]
    times_s = times_s or [float(number) for number in range(len(frames))]
    found = join_readings(readings, times_s, end_s or float(len(frames)))
    return [(line.start_s, line.end_s, line.text) for line in found]


def test_a_caption_that_stands_is_one_line_up_to_the_first_frame_without_it():
    assert lines([], ["Hello"], ["Hello"], ["Hello"], [], [], []) == [(1.0, 4.0, "Hello")]


def test_the_last_line_ends_with_the_video():
    assert lines([], ["Hello"], end_s=9.5) == [(1.0, 9.5, "Hello")]


def test_a_picture_that_stands_still_is_one_frame_and_lasts_until_the_next():
    found = join_readings([[Reading("Hello", 0.95, LOW)], []], [2.0, 31.0], 40.0)
    assert [(line.start_s, line.end_s, line.frames) for line in found] == [(2.0, 31.0, 1)]


def test_a_caption_that_comes_back_is_two_lines():
    assert lines(["Hello"], [], [], ["Hello"]) == [(0.0, 1.0, "Hello"), (3.0, 4.0, "Hello")]


def test_one_frame_that_was_overlooked_does_not_end_a_line_but_a_long_one_does():
    assert lines(["Hello"], [], ["Hello"]) == [(0.0, 3.0, "Hello")]
    standing = lines(["Hello"], [], ["Hello"], times_s=[0.0, 1.0, 20.0], end_s=21.0)
    assert standing == [(0.0, 1.0, "Hello"), (20.0, 21.0, "Hello")]


def test_the_text_is_the_one_read_most_surely_and_often():
    frames = [[Reading(text, sure, LOW)] for text, sure in (("M0RNING", 0.97), ("MORNING", 0.9), ("MORNING", 0.8))]
    (line,) = join_readings(frames, [0.0, 1.0, 2.0], 3.0)
    assert (line.text, line.confidence, line.frames) == ("MORNING", 0.9, 3)


@pytest.mark.parametrize("other", ["Brand0n Castellano", "Brandon  Castellano.", "Brandon Castelano"])
def test_small_differences_between_frames_are_one_line(other):
    found = lines(["Brandon Castellano"], ["Brandon Castellano"], [Reading(other, 0.7, LOW)])
    assert found == [(0.0, 3.0, "Brandon Castellano")]


def test_another_text_in_the_same_place_is_another_line():
    assert lines(["Good morning"], ["See you soon"]) == [(0.0, 1.0, "Good morning"), (1.0, 2.0, "See you soon")]


def test_a_digit_that_changes_is_another_line_unless_it_was_read_badly():
    assert lines(["Lap 12"], ["Lap 13"]) == [(0.0, 1.0, "Lap 12"), (1.0, 2.0, "Lap 13")]
    assert lines(["Lap 12"], ["Lap 12"], [Reading("Lap 18", 0.6, LOW)]) == [(0.0, 3.0, "Lap 12")]


def test_two_lines_at_once_each_with_its_own_box():
    both = [Reading("EXIT", 0.95, HIGH), Reading("EXIT", 0.95, LOW)]
    found = join_readings([both, both, [both[1]], [both[1]], [both[1]]], [0.0, 1.0, 2.0, 3.0, 4.0], 5.0)
    assert [(line.start_s, line.end_s, line.box) for line in found] == [(0.0, 2.0, HIGH), (0.0, 5.0, LOW)]


def test_text_that_moves_a_little_is_one_line_and_a_word_elsewhere_another():
    moving = [[Reading("Credits", 0.95, (0.1, y, 0.5, y + 0.05))] for y in (0.9, 0.75, 0.6, 0.45)]
    (line,) = join_readings(moving, [0.0, 1.0, 2.0, 3.0], 4.0)
    assert (line.start_s, line.end_s, line.frames) == (0.0, 4.0, 4)
    apart = join_readings([[Reading("Credits", 0.95, LOW)], [Reading("Credits", 0.95, HIGH)]], [0.0, 1.0], 2.0)
    assert [line.end_s for line in apart] == [1.0, 2.0]


def test_lines_of_one_time_come_from_top_to_bottom():
    found = lines([Reading("below", 0.95, LOW), Reading("above", 0.95, HIGH)])
    assert [text for _, _, text in found] == ["above", "below"]
    assert lines() == lines([]) == []


def test_words_that_differ_in_their_vowel_signs_are_two():
    """Without its marks "की" would be "का"."""
    assert [text for _, _, text in lines(["की कि"], ["का के"])] == ["की कि", "का के"]
