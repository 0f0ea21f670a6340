"""The models that write titles and summaries: one behind an OpenAI-compatible endpoint, or a local one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from agent.core.protocol import ShownFrame
from agent.errors import InvalidReply
from agent.requests.echoes import check_not_echoed
from agent.requests.scenes import PartSummary, SummarizePart
from index.rows import StoredFrame
from jobs.annotate.endpoint import ModelThread, ask_again
from jobs.annotate.scenes.contents import Write, Written
from jobs.annotate.stage import hub_for
from jobs.stored_frames import picture_of

if TYPE_CHECKING:
    from agent.models.openai_compatible import OpenAIModel
    from pipeline.scenes.writer import Writer

MARKS = "#*_\"'`“”: "
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
HEADING = re.compile(r"\W*(?:title|summary)\W*?:\s*", re.IGNORECASE)
SENTENCE_END = re.compile(r"[.!?…](?=[\s\"'”’)\]]|$)|[。！？]")


def endpoint_writer(thread: ModelThread) -> Write:
    """Write with an endpoint's model, all parts of a batch at once."""

    def write(requests: Sequence[SummarizePart]) -> list[Written]:
        return thread.submit(_ask_all(thread.model, requests)).result()

    return write


def local_writer(writer: Writer) -> Write:
    """Write with a local model; one that reads no pictures has nothing to say of a part without words."""
    from pipeline.scenes.writer import PROMPT, PartLines

    instructions = PROMPT.read_text(encoding="utf-8")

    def write(requests: Sequence[SummarizePart]) -> list[Written]:
        parts = [
            PartLines(
                tuple(note.text for note in request.notes),
                tuple(picture_of(_stored(frame)) for frame in request.frames),
                request.part.end_s - request.part.start_s,
            )
            for request in requests
        ]
        pairs = zip(requests, writer.write(parts), strict=True)
        return [
            Written(nothing_known=True) if reply is None else read_entry(request, *reply, instructions)
            for request, reply in pairs
        ]

    return write


@lru_cache(maxsize=1)
def open_writer(model: str, device: str, max_new_tokens: int) -> Writer:
    """Load a local model once."""
    from pipeline.scenes.writer import load_writer

    with hub_for(model):
        return load_writer(model, device, max_new_tokens)


def read_entry(request: SummarizePart, text: str, is_whole: bool = True, instructions: str = "") -> Written:
    """Read what a local model wrote: a title in its first line, the summary after it.

    Headings ("Title:") and marks are taken off, and of a text that is not whole the sentence that breaks off. A reply
    of one line, a refusal, a very long title, a loop and a repetition of the instructions are unusable.
    """
    text = text if is_whole else _whole_sentences(text)
    lines = [line for each in text.splitlines() if (line := HEADING.sub("", each, count=1).strip(MARKS))]
    reply = PartSummary(title=lines[0] if lines else "", summary=" ".join(lines[1:]))
    try:
        request.check(reply)
        check_not_echoed(text, instructions)
    except InvalidReply:
        return Written()
    return Written(plain_line(reply.title), plain_line(reply.summary))


def plain_line(text: str) -> str:
    """A text as one line without control characters: a title is a line of a player's list, and of a WebVTT cue."""
    return " ".join(CONTROL.sub(" ", text).split())


def _whole_sentences(text: str) -> str:
    """Leave out what follows the last end of a sentence; a line before the last is whole without one."""
    before, line_end, last = text.rstrip().rpartition("\n")
    ends = [found.end() for found in SENTENCE_END.finditer(last)]
    return f"{before}{line_end}{last[: ends[-1] if ends else 0]}"


def _stored(frame: ShownFrame) -> StoredFrame:
    return StoredFrame(frame.video_id, frame.frame_no, frame.time_s, frame.width_px, frame.height_px, frame.jpeg)


async def _ask_all(model: OpenAIModel, requests: Sequence[SummarizePart]) -> list[Written]:
    from agent.core.side_by_side import gather_all

    return await gather_all([_ask(model, request) for request in requests])


async def _ask(model: OpenAIModel, request: SummarizePart) -> Written:
    outcome = await ask_again(model, request)
    reply = outcome.reply
    title, summary = ("", "") if reply is None else (plain_line(reply.title), plain_line(reply.summary))
    return Written(title, summary, outcome.usage, outcome.refused)
