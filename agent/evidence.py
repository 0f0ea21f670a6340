"""The evidence of an answer: the time ranges of the frames and notes that it cites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from kinodex.agent.protocol.frames import ShownFrame, citation_numbers
from kinodex.agent.protocol.notes import Note
from kinodex.agent.videos.environment import Environment


@dataclass(frozen=True, slots=True)
class Evidence:
    """A time range [start_s, end_s) of a video that was shown, in frames or notes, to the model that answered."""

    video_id: str
    start_s: float
    end_s: float


Shown = Sequence[ShownFrame | Note]
"""The basis of an answer: frames that were shown, or notes in words."""


def evidence_ranges(environment: Environment, shown: Shown, cited: Sequence[int]) -> tuple[Evidence, ...]:
    """Return the time ranges of the cited frames and notes, or of all if none is cited; neighbours are joined.

    A citation of something that was never shown is no evidence and is left out.
    """
    ranges: list[Evidence] = []
    found = [
        (each.video_id, each.start_s, each.end_s)
        if isinstance(each, Note)
        else (each.video_id, *environment.shown_range(each))
        for each in cited_items(shown, cited)
    ]
    for video_id, start_s, end_s in sorted(found):
        last = ranges[-1] if ranges else None
        if last and last.video_id == video_id and start_s <= last.end_s:
            ranges[-1] = Evidence(video_id, last.start_s, max(end_s, last.end_s))
        else:
            ranges.append(Evidence(video_id, start_s, end_s))
    return tuple(ranges)


def cited_items(shown: Shown, cited: Sequence[int]) -> Shown:
    """Return the frames, then notes, cited by their numbers, all if none is cited.

    A look that failed is never among them.
    """
    named = [each for number, each in zip(shown_numbers(shown), shown, strict=True) if number in cited] or shown
    return [each for each in named if isinstance(each, ShownFrame) or not each.failed]


def shown_numbers(shown: Shown) -> list[int]:
    frames = [each for each in shown if isinstance(each, ShownFrame)]
    return list(chain(*citation_numbers(frames, shown[len(frames) :])))
