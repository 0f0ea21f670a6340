"""The evidence of an answer: the time ranges of the frames and notes that it cites."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from agent.answer import Evidence
from agent.core.protocol import ShownFrame, citation_numbers
from agent.core.question import Note
from agent.environment import Environment

Shown = Sequence[ShownFrame | Note]
"""The basis of an answer: frames that were shown, or notes in words."""


def evidence_ranges(environment: Environment, shown: Shown, cited: Sequence[int]) -> tuple[Evidence, ...]:
    """Time ranges of the frames, then notes, cited by their numbers; of all if none is cited; neighbours joined.

    A citation of something that was never shown is no evidence and is left out.
    """
    ranges: list[Evidence] = []
    for video_id, start_s, end_s in sorted(_range(environment, each) for each in cited_items(shown, cited)):
        last = ranges[-1] if ranges else None
        if last and last.video_id == video_id and start_s <= last.end_s:
            ranges[-1] = Evidence(video_id, last.start_s, max(end_s, last.end_s))
        else:
            ranges.append(Evidence(video_id, start_s, end_s))
    return tuple(ranges)


def cited_items(shown: Shown, cited: Sequence[int]) -> Shown:
    """The frames, then notes, cited by their numbers, all if none is cited; a look that failed is never among them."""
    named = [each for number, each in zip(shown_numbers(shown), shown, strict=True) if number in cited] or shown
    return [each for each in named if isinstance(each, ShownFrame) or not each.failed]


def shown_numbers(shown: Shown) -> list[int]:
    """The numbers by which frames, then notes are cited, in their order."""
    frames = [each for each in shown if isinstance(each, ShownFrame)]
    return list(chain(*citation_numbers(frames, shown[len(frames) :])))


def _range(environment: Environment, shown: ShownFrame | Note) -> tuple[str, float, float]:
    if isinstance(shown, Note):
        return shown.video_id, shown.start_s, shown.end_s
    return shown.video_id, *environment.shown_range(shown)
