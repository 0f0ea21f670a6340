"""Requests to describe a video: an empty caption or summary is no reply."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.prompts import render
from kinodex.agent.protocol import Note, Segment, Video
from kinodex.agent.requests.answer import check_not_echoed, check_not_looping
from kinodex.agent.requests.describe import DescribeSegment, Description, PartSummary, Summarize, SummarizePart, Summary
from tests.support.scripts import SCRIPTS, Script

DESCRIBE = DescribeSegment(segment=Segment(1, "a" * 32, 0.0, 5.0), frames=())
SUMMARIZE = Summarize(videos=(Video("a" * 32, "kites", 0.0, 60.0),), notes=())


def test_empty_ones_are_refused() -> None:
    with pytest.raises(InvalidReply, match="the caption is empty"):
        DESCRIBE.check(Description(caption=" ", confidence=50))
    with pytest.raises(InvalidReply, match="the summary is empty"):
        SUMMARIZE.check(Summary(summary="\n"))


def test_a_confidence_beyond_the_scale_is_no_reply() -> None:
    with pytest.raises(ValueError, match="confidence"):
        Description.model_validate({"caption": "a kite", "confidence": 101})


# Requests for a title and a summary: what is known is quoted, and a reply without either is none.


VIDEO = "a" * 32
NOTES = (Note(VIDEO, 10.0, 14.0, "caption", "a red kite"), Note(VIDEO, 12.0, 13.5, "transcript", "Look, it flies!"))
SCENE = SummarizePart(part=Segment(0, VIDEO, 10.0, 40.0), level="scene", notes=NOTES)


def test_the_prompt_quotes_what_is_known():
    text = render(SCENE)
    assert "The part goes from 10.0 s to 40.0 s." in text
    assert "1. 10.0 s to 14.0 s (caption): a red kite\n2. 12.0 s to 13.5 s (transcript): Look, it flies!\n" in text
    assert "No frame is shown." in text
    assert "its scenes" not in text


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
    ],
)
def test_replies_that_cannot_be_used(title, summary, problem):
    with pytest.raises(InvalidReply, match=problem):
        SCENE.check(PartSummary(title=title, summary=summary))


# Loops and repetitions of the instructions are no content; songs, lists and plain sentences are.


INSTRUCTIONS = "Write an entry for a table of contents. First line: a title of at most eight words."
LOOPS = (
    "The title of at most eight words: " * 12,
    "The man is a man. " * 5,
    "It says that the dog is here, and that " * 4 + "the dog is here",
    "\u4e00\u4e2a\u4eba\u5728\u516c\u56ed\u91cc\u5f39\u5409\u4ed6\u3002" * 3,
)
CONTENT = (
    "Row, row, row your boat.",
    "No. " * 8,
    "It is a film that is presented to the audience. It is a film that is shown to an audience in a hall of a town.",
    "A man plays the guitar on a bench in a park, and a woman with a dog stops to listen until it begins to rain.",
)


@pytest.mark.parametrize("text", LOOPS)
def test_loops(text):
    with pytest.raises(InvalidReply, match="over and over"):
        check_not_looping(text)


def test_what_says_something():
    for text in CONTENT:
        check_not_looping(text)
        check_not_echoed(text, INSTRUCTIONS)


@pytest.mark.parametrize("text", ["The title of at most eight words", "An ENTRY for a table of contents: kites"])
def test_repetitions_of_the_instructions(text):
    with pytest.raises(InvalidReply, match="repeats the instructions"):
        check_not_echoed(text, INSTRUCTIONS)


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_loops_are_known_in_every_script(script: Script) -> None:
    check_not_looping(" ".join(script.lines))
    with pytest.raises(InvalidReply, match="over and over"):
        check_not_looping("".join(script.lines[:1]) * 6)
