"""Requests for a title and a summary: what is known is quoted, and a reply without either is none."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.prompts import render
from kinodex.agent.protocol import Note, Segment
from kinodex.agent.requests.describe import PartSummary, SummarizePart

VIDEO = "a" * 32
NOTES = (Note(VIDEO, 10.0, 14.0, "caption", "a red kite"), Note(VIDEO, 12.0, 13.5, "transcript", "Look, it flies!"))
SCENE = SummarizePart(part=Segment(0, VIDEO, 10.0, 40.0), level="scene", notes=NOTES)


def test_the_prompt_quotes_what_is_known():
    text = render(SCENE)
    assert "The part goes from 10.0 s to 40.0 s." in text
    assert "1. 10.0 s to 14.0 s (caption): a red kite\n2. 12.0 s to 13.5 s (transcript): Look, it flies!\n" in text
    assert "No frame is shown." in text
    assert "its scenes" not in text


def test_a_chapter_is_given_by_its_scenes():
    chapter = SummarizePart(part=SCENE.part, level="chapter", notes=(Note(VIDEO, 10.0, 20.0, "scene", "Kites"),))
    assert "titles and summaries of its scenes" in render(chapter)


def test_a_part_without_words():
    text = render(SummarizePart(part=SCENE.part, level="scene", notes=()))
    assert "line by line" not in text
    assert "\n\n\n" not in text


@pytest.mark.parametrize(
    ("title", "summary", "problem"),
    [
        (" ", "Kites fly.", "the title is empty"),
        ("Kites", "\n", "the summary is empty"),
        ("I'm sorry, I cannot help with that.", "Kites fly.", "refusal"),
        ("Kites " * 30, "Kites fly.", "at most eight words"),
        ("Kites", "Kites fly over the sea. " * 100, "one to three sentences"),
        ("Kites", "The kites fly over it. " * 6, "over and over"),
        ("At most eight words that tell this part", "Kites fly.", "repeats the instructions"),
        ("Kites", "One to three sentences.", "repeats the instructions"),
        ("Football", SCENE.example()["summary"], "repeats the instructions"),
    ],
)
def test_replies_that_cannot_be_used(title, summary, problem):
    with pytest.raises(InvalidReply, match=problem):
        SCENE.check(PartSummary(title=title, summary=summary))


def test_a_title_and_a_summary_are_a_reply():
    SCENE.check(PartSummary(title="Kites", summary="Kites fly."))
