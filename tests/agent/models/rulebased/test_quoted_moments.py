"""Quoted lines and what is seen at their times tell the answer together, and nothing where either is missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kinodex.agent.models.rules_words import Floats, Sights, read_moment, sights_of, telling_lines, words_of
from kinodex.agent.protocol import SCREEN_TEXT, SUBTITLE, Note, Question

SEEN = {10.0: "red cat", 17.0: "blue bus", 30.0: "green tent", 50.0: "yellow house", 90.0: "green tent"}
"""The only thing in the frame at each time."""


def sights(times_s: Sequence[float] = tuple(SEEN), video: str = "v") -> Sights:
    def matches(texts: Sequence[str]) -> Floats:
        return np.array([[float(SEEN[time_s] in text) for text in texts] for time_s in times_s])

    return Sights([video] * len(times_s), times_s, times_s, matches, least=0.5)


def said(start_s: float, text: str) -> Note:
    return Note("v", start_s, start_s + 2.75, SUBTITLE, text)


def written(start_s: float, end_s: float, text: str) -> Note:
    return Note("v", start_s, end_s, SCREEN_TEXT, text)


WHO = Question("Which of these is Lina?", ("the blue bus", "the red cat"))
CUE = Question('What passes by right after somebody says "Nobody move"?', ("a red cat", "a blue bus"))
BESIDE = Question("What stands beside the sign that says HOTEL 4?", ("a yellow house", "a green tent"))
SIGN = Question("What does the sign beside the yellow house say?", ("HOTEL 4", "SCHOOL 7"))
CARD = Question("Which word is on the title card right before the scene with the yellow house?", ("ECHO", "RIVER"))
PURPOSE = Question("What is the blue bus for that the red cat is given, as is said then?", ("the trial", "the wedding"))
NAME, OTHER = said(9.5, "They call me Lina."), said(30.0, "Next week Lina is off to the coast.")
SIGNS = [written(25.0, 35.0, "HOTEL 4"), written(45.0, 60.0, "SCHOOL 7")]
CARDS = [written(22.0, 25.0, "RIVER"), written(40.0, 43.0, "ECHO"), written(70.0, 73.0, "RIVER")]
GIFTS = [said(9.0, "It is yours until the wedding."), said(29.0, "Take this, we need it for the trial.")]


@pytest.mark.parametrize(
    ("question", "lines", "answer", "times_s", "quoted"),
    [
        (WHO, [OTHER, NAME], "the red cat", [10.0], [1]),
        (CUE, [said(10.0, "Nobody move.")], "a blue bus", [17.0], [0]),
        (BESIDE, SIGNS, "a green tent", [30.0], [0]),
        (SIGN, SIGNS, "SCHOOL 7", [50.0], [1]),
        (CARD, CARDS, "ECHO", [50.0], [1]),
        (PURPOSE, GIFTS, "the wedding", [10.0], [0]),
    ],
)
def test_lines_and_frames_tell_together(
    question: Question, lines: list[Note], answer: str, times_s: list[float], quoted: list[int]
) -> None:
    found = read_moment(question, lines, sights())
    assert found is not None
    assert question.options[found.choice] == answer
    assert [tuple(SEEN)[at] for at in found.sights] == times_s
    assert list(found.lines) == quoted


@pytest.mark.parametrize(
    ("question", "lines", "seen"),
    [
        (WHO, [], sights()),
        (WHO, [written(9.5, 12.0, "They call me Lina.")], sights()),
        (WHO, [NAME], sights([50.0])),
        (WHO, [NAME], sights(video="another")),
        (WHO, [NAME], sights([])),
        (BESIDE, [written(5.0, 20.0, "HOTEL 4")], sights()),
        (SIGN, SIGNS, sights([30.0])),
        (CARD, CARDS[2:], sights()),
        (Question("Who is there?", WHO.options), [NAME], sights()),
        (Question("Which of these is Lina?"), [NAME], sights()),
    ],
    ids=["no line", "not said", "not then", "other video", "no frame", "no match", "no house", "later", "form", "open"],
)
def test_nothing_is_told_where_lines_or_frames_say_nothing(question: Question, lines: list[Note], seen: Sights) -> None:
    assert read_moment(question, lines, seen) is None


def test_what_to_look_for_and_where() -> None:
    assert telling_lines(WHO, [OTHER, NAME]) == [1], "the other line speaks of somebody who may be away"
    assert telling_lines(WHO, [OTHER]) == [0]
    assert telling_lines(PURPOSE, [*GIFTS, NAME]) == [0, 1]
    assert sights_of(WHO) == WHO.options and words_of(WHO) == ("Lina",)
    assert sights_of(SIGN) == ("yellow house",) and words_of(SIGN) == SIGN.options
    assert sights_of(PURPOSE) == ("blue bus", "red cat")
    assert not sights_of(Question("Who is there?")) and not words_of(Question("Who is there?"))
