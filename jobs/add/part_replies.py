"""Replies of a local model about a part of a film, in its own words: a title, and a summary."""

from __future__ import annotations

import re

from kinodex.agent.errors import InvalidReply
from kinodex.agent.requests.repetition import check_not_echoed
from kinodex.agent.requests.summarize_part import PartSummary, SummarizePart

MARKS = "#*_\"'`“”: "
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
HEADING = re.compile(r"\W*(?:title|summary)\W*?:\s*", re.IGNORECASE)
SENTENCE_END = re.compile(r"[.!?…](?=[\s\"'”’)\]]|$)|[。！？]")


def read_entry(request: SummarizePart, text: str, is_whole: bool = True, instructions: str = "") -> PartSummary | None:
    """Read what a local model wrote: a title in its first line, the summary after it.

    Headings ("Title:") and marks are taken off, and the sentence that breaks off. A reply of one line, a refusal, a
    very long title, a loop and a repetition of the instructions are unusable.
    """
    text = text if is_whole else _whole_sentences(text)
    lines = [line for each in text.splitlines() if (line := HEADING.sub("", each, count=1).strip(MARKS))]
    reply = PartSummary(title=lines[0] if lines else "", summary=" ".join(lines[1:]))
    try:
        request.check(reply)
        check_not_echoed(text, instructions)
    except InvalidReply:
        return None
    return reply


def plain_line(text: str) -> str:
    """Return a text as one line without control characters.

    A title is a line of a player's list, and of a WebVTT cue.
    """
    return " ".join(CONTROL.sub(" ", text).split())


def _whole_sentences(text: str) -> str:
    """Leave out what follows the last end of a sentence; a line before the last is whole without one."""
    before, line_end, last = text.rstrip().rpartition("\n")
    ends = [found.end() for found in SENTENCE_END.finditer(last)]
    return f"{before}{line_end}{last[: ends[-1] if ends else 0]}"
