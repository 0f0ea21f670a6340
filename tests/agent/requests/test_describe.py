"""Requests to describe a video: an empty caption or summary is no reply."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import InvalidReply
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


# Requests for a title and a summary: what is known is quoted, and a reply without either is none.


VIDEO = "a" * 32
NOTES = (Note(VIDEO, 10.0, 14.0, "caption", "a red kite"), Note(VIDEO, 12.0, 13.5, "transcript", "Look, it flies!"))
SCENE = SummarizePart(part=Segment(0, VIDEO, 10.0, 40.0), level="scene", notes=NOTES)


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


@pytest.mark.parametrize("text", ["The title of at most eight words", "An ENTRY for a table of contents: kites"])
def test_repetitions_of_the_instructions(text):
    with pytest.raises(InvalidReply, match="repeats the instructions"):
        check_not_echoed(text, INSTRUCTIONS)


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_loops_are_known_in_every_script(script: Script) -> None:
    check_not_looping(" ".join(script.lines))
    with pytest.raises(InvalidReply, match="over and over"):
        check_not_looping("".join(script.lines[:1]) * 6)
