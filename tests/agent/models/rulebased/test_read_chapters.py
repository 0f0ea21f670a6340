"""Promises of chapters: by words that tell them apart, of the video that a part is of."""

from __future__ import annotations

import pytest

from kinodex.agent.models.rules import promise
from kinodex.agent.protocol import Note, Question, Segment

FILM, OTHER = "a" * 32, "b" * 32
QUESTION = Question("Who gives the blue hat to the cat?", ("the dog", "the duck"))
CHAPTERS = (
    Note(FILM, 0.0, 100.0, "chapter", "in the desert: the cat gets a blue hat"),
    Note(FILM, 100.0, 300.0, "chapter", "on the beach: the cat sleeps"),
)


@pytest.mark.parametrize(
    ("part", "promising"),
    [
        (Segment(1, FILM, 10.0, 120.0), True),
        (Segment(2, FILM, 90.0, 280.0), False),
        (Segment(3, FILM, 400.0, 500.0), False),
        (Segment(4, OTHER, 10.0, 90.0), False),
        (Segment(5, FILM, 10.0, 50.0), False),
    ],
)
def test_the_chapter_in_which_most_of_a_part_lies_counts(part, promising):
    assert (promise(QUESTION, CHAPTERS, part) > 0.2) is promising


def test_chapters_that_speak_alike_promise_nothing():
    same = tuple(Note(FILM, start_s, start_s + 100.0, "scene", "a blue hat") for start_s in (0.0, 100.0))
    assert promise(QUESTION, same, Segment(1, FILM, 0.0, 100.0)) == 0.0
    assert promise(QUESTION, (), Segment(1, FILM, 0.0, 100.0)) == 0.0
