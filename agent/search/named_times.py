"""Anchors that need nothing to match: the times that the question names.

"What happens at 01:23?" says where to look, and no likeness of pictures finds it. A clock time of the question is
certain; one of an option is one of several possibilities. A number with a unit counts only after a word that makes it
a point in time ("at 90 seconds", "after 5 minutes"): "for 5 minutes" is a length, and "at 100 m" a distance.
"""

from __future__ import annotations

import re

import numpy as np

from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.videos import EXACT_S, Anchor
from kinodex.agent.videos.environment import Environment

IN_QUESTION, IN_OPTION = 1.0, 0.5
"""Similarities of the frame at a time that the question, or an option of it, names."""
_CLOCK = re.compile(
    r"(?<![\d:.])(?:(\d{1,2}):)?(\d{1,3}):(\d{2})(?:\.\d+)?(?![\d:])(?!\s*(?:a\.?m|p\.?m|o'?clock)\b)", re.I
)
_POINT = re.compile(
    r"\b(?:at|after|around|about|before|from|between|and|until|by|near)\s+(?:about\s+|around\s+|the\s+)?"
    r"(?:(\d+)\s*(?:hours?|hrs?|h)(?![a-z])[\s,]*(?:and\s+)?)?"
    # a bare m is metres, unless hours stand before it or seconds after it
    r"(?:(\d+)[\s-]*(?:minutes?|mins?|(?(1)m|m(?=[\s,]*(?:and\s+)?\d+(?:\.\d+)?[\s-]*s(?:ec|\b))))(?![a-z])"
    r"[\s,]*(?:and\s+)?)?"
    r"(?:(\d+(?:\.\d+)?)[\s-]*(?:seconds?|secs?|s)\b)?(?!\s*(?:of|later|long|earlier|before|after)\b)",
    re.I,
)
_MARK = re.compile(r"\b(?:minute|min)\s+(\d+)\b|\b(\d+)[\s-]minute\s+mark\b|\b(\d+)\s+minutes?\s+(?:in|into)\b", re.I)


def named_times_s(text: str) -> list[float]:
    """Return the points in time that a text names, in seconds, each once, in order."""
    found = [_seconds(*each.groups()) for each in _CLOCK.finditer(text)]
    found += [_seconds(*each.groups()) for each in _POINT.finditer(text) if any(each.groups())]
    found += [60.0 * float(next(filter(None, each.groups()))) for each in _MARK.finditer(text)]
    return sorted(set(found))


def _seconds(hours: str | None, minutes: str | None, seconds: str | None) -> float:
    return 3600 * float(hours or 0) + 60 * float(minutes or 0) + float(seconds or 0)


def question_anchors(environment: Environment, question: Question) -> list[Anchor]:
    """Return the frames on screen at the times that a question and its options name, of each video that lasts so
    long.
    """
    named = dict.fromkeys((time_s for text in question.options for time_s in named_times_s(text)), IN_OPTION)
    named |= dict.fromkeys(named_times_s(question.text), IN_QUESTION)
    found = []
    for video in environment.videos:
        stored = environment.frame_times(video.video_id)
        for time_s, similarity in named.items():
            if video.start_s <= time_s < video.end_s:
                at = max(int(np.searchsorted(stored.time_s, time_s + EXACT_S, side="right")) - 1, 0)
                frame = int(stored.frame_no[at]), float(stored.time_s[at])
                found.append(Anchor(video.video_id, *frame, similarity, f"at {time_s:g} s"))
    return found
