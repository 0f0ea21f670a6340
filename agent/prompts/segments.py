"""Segments as the prompts of a tree search write them: range, frames at the borders, score and reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kinodex.agent.prompts.times import beside_range, seconds
from kinodex.agent.protocol.frames import ShownFrame, citation_numbers
from kinodex.agent.protocol.videos import VIDEO_ID_LENGTH, ScoredSegment, Segment, Video


def candidate_lines(request: Any, reasons: bool = True, in_full: int | None = None) -> list[str]:
    """Return the segments that a request for the next step lists, by number.

    With `in_full` only so many, those with the highest scores, have their frames at the borders and their reasons.
    """
    full = {each.segment.number for each in request.listed[:in_full]}
    lines = []
    for each in sorted(request.listed, key=lambda each: each.segment.number):
        score = _score(each, request.scores) + ", looked into before" * each.divided
        if each.segment.number in full:
            line = segment_line(each.segment, request.frames, request.videos)
            lines.append(f"{line}{score}{_reason(each) if reasons else ''}")
        else:
            lines.append(f"{_short_line(each.segment, request.videos)}{score}")
    return lines


def segment_line(segment: Segment, frames: Sequence[ShownFrame], videos: Sequence[Video]) -> str:
    """Return a segment's name, range and border frames: "Segment 3: 40 s to 95 s, frame 2 to frame 3".

    Clock times stand in the labels of its border frames; where none is shown they are written here.
    """
    if found := _borders(segment, frames, videos):
        return f"{_short_line(segment, videos)}, {found}"
    return f"{_short_line(segment, videos)}{beside_range(segment)}"


def history_lines(request: Any, most: int | None = None, reasons: bool = True) -> list[str]:
    """Return the segments of the rounds before with their scores, by number; with `most` those with the highest."""
    best = sorted(request.history, key=lambda each: -each.rank)[:most]
    return [
        f"{_short_line(each.segment, request.videos)}{_score(each, 'reward')}{_reason(each) if reasons else ''}"
        for each in sorted(best, key=lambda each: each.segment.number)
    ]


def scores_line(segments: Sequence[ScoredSegment], videos: Sequence[Video], scores: str) -> str:
    """Return some segments with their scores in one line."""
    return "; ".join(f"{_short_line(each.segment, videos)}{_score(each, scores)}" for each in segments)


def time_line(request: Any) -> str:
    """Return the numbers of a request's frames in the order of time; "" where they stand in it, or of several videos.

    >>> from types import SimpleNamespace as N
    >>> frames = [N(video_id="v", time_s=40.0, label=1), N(video_id="v", time_s=12.0, label=2)]
    >>> time_line(N(frames=frames))
    'In the order of time: frame 2 (12 s), frame 1 (40 s).'
    """
    numbers, _ = citation_numbers(request.frames)
    numbered = list(zip(numbers, request.frames, strict=True))
    ordered = sorted(numbered, key=lambda each: (each[1].video_id, each[1].time_s))
    if ordered == numbered or len({frame.video_id for frame in request.frames}) > 1:
        return ""
    return f"In the order of time: {', '.join(f'frame {n} ({seconds(frame.time_s)})' for n, frame in ordered)}."


def newness(frames: Sequence[ShownFrame], new: Sequence[ShownFrame]) -> str:
    """Return a sentence that says which of the frames are new, the ones to rate by; "" where all are."""
    if not new or len(new) == len(frames):
        return ""
    numbers, _ = citation_numbers(frames)
    found = [number for number, frame in zip(numbers, frames, strict=True) if frame in new]
    those = f"frame {found[0]} is" if len(found) == 1 else f"frames {found[0]} to {found[-1]} are"
    return f" Of the frames only {those} new: rate by what is new, and take the others as known before."


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
    return f": {text}" if text else ""
