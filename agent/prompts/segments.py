"""Segments as the prompts of a tree search write them: range, frames at the borders, score and reason.

The list of candidates grows by five or six segments a round and changes with every score, so it is the part of a
prompt that no cache serves. Those that promise most are written in full, the others in short, and those in which
nothing is left to see not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kinodex.agent.prompts.times import beside_range, seconds
from kinodex.agent.protocol.frames import ShownFrame, citation_numbers
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import VIDEO_ID_LENGTH, ScoredSegment, Segment, Video, listed_candidates
from kinodex.index.text import beginning

IN_FULL = 6
"""Candidates with clock times, frames at the borders and the reason of their score."""
COMPARED = 3
"""Scores of earlier rounds that a rater sees beside that of the parent."""
REASON_CHARACTERS = 240
"""Of a reason in a prompt: the fifteen words that are asked for have fewer."""
CUT = " ..."


def candidate_lines(
    candidates: Iterable[ScoredSegment],
    frames: Sequence[ShownFrame],
    videos: Sequence[Video],
    scores: str,
    in_full: bool = False,
) -> list[str]:
    """Return the best-scored segments that can be explored, or all, by number.

    `scores` are "fused", "reward" or "none".

    Which are listed is said by `kinodex.agent.protocol.videos.listed_candidates`.
    """
    live = listed_candidates(candidates, scores, in_full)
    full = {each.segment.number for each in live[: None if in_full else IN_FULL]}
    lines = []
    for each in sorted(live, key=lambda each: each.segment.number):
        score = _score(each, scores) + ", looked into before" * each.divided
        if each.segment.number in full:
            lines.append(f"{segment_line(each.segment, frames, videos)}{score}{_reason(each)}")
        else:
            lines.append(f"{_short_line(each.segment, videos)}{score}")
    return lines


def segment_line(segment: Segment, frames: Sequence[ShownFrame], videos: Sequence[Video]) -> str:
    """Return a segment's name, range and border frames: "Segment 3: 40 s to 95 s, frame 2 to frame 3".

    Clock times stand in the labels of its border frames; where none is shown they are written here.
    """
    if found := _borders(segment, frames, videos):
        return f"{_short_line(segment, videos)}, {found}"
    return f"{_short_line(segment, videos)}{beside_range(segment)}"


def history_lines(
    history: Iterable[ScoredSegment], parent: int | None, videos: Sequence[Video], in_full: bool = False
) -> list[str]:
    """Return the best-scored segments of earlier rounds, by number, without the parent.

    With `in_full` all are given, each with its reason.
    """
    others = [each for each in history if each.segment.number != parent and each.explorable]
    best = sorted(others, key=lambda each: -each.rank)[: None if in_full else COMPARED]
    return [
        f"{_short_line(each.segment, videos)}{_score(each, 'reward')}{_reason(each) if in_full else ''}"
        for each in sorted(best, key=lambda each: each.segment.number)
    ]


def frame_order(request: Request[Any]) -> str:
    """Say in what order the frames of a tree search stand; "" for those of other requests."""
    if getattr(request, "must_answer", False):
        return "in the order of time, "
    return "in the order in which they were looked at, which is not that of time, " if hasattr(request, "log") else ""


def newness(frames: Sequence[ShownFrame], new: Sequence[ShownFrame]) -> str:
    """Return a sentence that says which of the frames are new, the ones to rate by; "" where all are."""
    if not new or len(new) == len(frames):
        return ""
    numbers, _ = citation_numbers(frames)
    found = [number for number, frame in zip(numbers, frames, strict=True) if frame in new]
    those = f"frame {found[0]} is" if len(found) == 1 else f"frames {found[0]} to {found[-1]} are"
    return f" Of the frames only {those} new: rate by what is new, and take the others as known before."


def parent_score(history: Iterable[ScoredSegment], parent: int | None) -> str:
    """Return the score and the reason that the parent had when it was chosen; "" without a score."""
    found = next((each for each in history if each.segment.number == parent), None)
    return "" if found is None or found.score is None else f" (score {found.score:.0f}{_reason(found)})"


def _borders(segment: Segment, frames: Sequence[ShownFrame], videos: Sequence[Video]) -> str:
    """Return the shown frames at a segment's borders, "frame 2 to frame 3"; "" if neither is shown."""
    numbers, _ = citation_numbers(frames)
    at = {(frame.video_id, frame.time_s): number for number, frame in zip(numbers, frames, strict=True)}
    shown = at.get((segment.video_id, segment.start_s)), at.get((segment.video_id, segment.end_s))
    if shown == (None, None):
        return ""
    whole = {(video.video_id, video.start_s): "the beginning" for video in videos}
    whole |= {(video.video_id, video.end_s): "the end" for video in videos}
    ends = [(segment.video_id, segment.start_s), (segment.video_id, segment.end_s)]
    words = [
        whole.get(end, "an earlier frame") if it is None else f"frame {it}" for it, end in zip(shown, ends, strict=True)
    ]
    return " to ".join(words)


def _short_line(segment: Segment, videos: Sequence[Video]) -> str:
    of = f" of video {segment.video_id[:VIDEO_ID_LENGTH]}" if len(videos) > 1 else ""
    return f"Segment {segment.number}{of}: {seconds(segment.start_s)} to {seconds(segment.end_s)}"


def _score(each: ScoredSegment, scores: str) -> str:
    if scores == "none":
        return ""
    known = "" if each.score is None else f", score {each.score:{'.2f' if scores == 'fused' else '.0f'}}"
    return known if each.rated and known else f"{known}, not rated"


def _reason(each: ScoredSegment) -> str:
    text = " ".join(each.explanation.split())
    if len(text) > REASON_CHARACTERS:
        text = f"{beginning(text, REASON_CHARACTERS - len(CUT))}{CUT}"
    return f": {text}" if text else ""
