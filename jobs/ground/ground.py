"""Grounding by search alone: the ranges where a text's evidence stands out, or that it is found nowhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from agent.environment import Environment
from agent.retrieval.calibration import calibrate
from agent.retrieval.line_matches import AnchorsFrom
from index.library_reader import LibraryReader
from index.rows import VideoRow
from jobs.errors import UsageError
from jobs.export.moments.moment import Moment
from jobs.ground.evidence import LEAST_OF_ALL, usual_cosines, video_evidence
from jobs.ground.ranges import EvidenceRange, evidence_ranges

MOST = 5
NEAREST_VIDEOS = 16
"""Videos in which ranges are looked for, the nearest by the library's indexes, if none are named."""
USUAL_VIDEOS = 48
"""Videos over which the usual is taken: these and others, evenly spaced over the library."""
BY_SEARCH = "search"
SHOT = "shot"
NOTHING_HELD = "the library holds neither pictures nor words of the videos searched"
NOTHING_FITS = "no picture and no line in them fits it better than is usual"
TOO_WEAK = "the best place stands out by {best:.2f}, and it takes {needed:.2f} to be there"


@dataclass(frozen=True, slots=True)
class Grounding:
    """The ranges of some videos in which something happens, the best first; none if it happens nowhere.

    `candidates` are the best ranges whether or not their evidence suffices; their scores are `evidence` on the scale
    from 0 to 1 of `agent.retrieval.calibration`. `evidence` is the greatest deviation found, in robust standard
    deviations, and `least` what it takes to be there; of an agent both are None. `reason` says why it is nowhere; of an
    agent it has its words in any case.
    """

    text: str
    candidates: tuple[Moment, ...]
    present: bool
    by: str
    evidence: float | None = None
    least: float | None = None
    reason: str = ""

    @property
    def ranges(self) -> tuple[Moment, ...]:
        """The ranges that are answered: those whose evidence suffices."""
        if not self.present:
            return ()
        if self.least is None:
            return self.candidates
        least = float(calibrate(np.array(self.least)))
        return tuple(each for each in self.candidates if each.score is not None and each.score >= least)


def ground(
    library: LibraryReader,
    environment: Environment,
    text: str,
    videos: Sequence[VideoRow] = (),
    *,
    most: int = MOST,
    evidence_from: AnchorsFrom = "both",
    least: float | None = None,
) -> Grounding:
    """Find the ranges of the videos, or of all, in which a text is true, by pictures, words or both.

    `environment` holds all videos of the library: what is usual is taken from many of them. `least` is the evidence
    that it takes to be there, by default what half of the everyday texts reach at their best in the same videos. Raises
    UsageError for an empty text, for `most` below 1 and for `least` below 0.
    """
    if not text.strip():
        raise UsageError("got an empty text; say in words what happens")
    if most < 1:
        raise UsageError(f"got most={most}; ask for at least 1 range")
    if least is not None and not 0 <= least < math.inf:
        raise UsageError(f"got least={least:g}; give the evidence that it takes, 0 or more, in deviations")
    named = [row.video_id for row in videos] or _nearest(environment, text, evidence_from)
    searched = [each for each in named if _holds_anything(environment, each)]
    if not searched:
        return Grounding(text, (), False, BY_SEARCH, 0.0, LEAST_OF_ALL if least is None else least, NOTHING_HELD)
    among = _usual_videos(environment, searched)
    usual = usual_cosines(environment, text, searched, among)
    found: list[EvidenceRange] = []
    for video_id in searched:
        evidence = video_evidence(environment, text, video_id, usual, among, evidence_from)
        found += evidence_ranges(evidence, _borders_s(environment, video_id), most)
    found.sort(key=lambda each: (-each.deviation, each.video_id, each.start_s))
    best, needed = found[0].deviation if found else 0.0, usual.least if least is None else least
    candidates = tuple(_moment(library, each, text) for each in found[:most])
    present = bool(found) and best >= needed
    reason = "" if present else (TOO_WEAK.format(best=best, needed=needed) if found else NOTHING_FITS)
    return Grounding(text, candidates, present, BY_SEARCH, best, needed, reason)


def as_json(grounding: Grounding) -> dict[str, Any]:
    """A grounding as JSON has it: times that a player shows, and those of the file's timestamps."""
    shown = [
        {
            "video_id": each.video.video_id,
            "title": each.video.title,
            "start_s": each.start_s,
            "end_s": each.end_s,
            "presentation_start_s": each.presentation_start_s,
            "presentation_end_s": each.presentation_end_s,
            "score": each.score,
            "found_in": each.source,
        }
        for each in grounding.candidates
    ]
    count = len(grounding.ranges)
    return {
        "text": grounding.text,
        "present": grounding.present,
        "by": grounding.by,
        "evidence": grounding.evidence,
        "least_evidence": grounding.least,
        "reason": grounding.reason,
        "ranges": shown[:count],
        "weaker": shown[count:],
    }


def _nearest(environment: Environment, text: str, evidence_from: AnchorsFrom) -> list[str]:
    nearest = environment.nearest([text], NEAREST_VIDEOS, anchors_from=evidence_from)
    return [video.video_id for video in nearest.videos]


def _usual_videos(environment: Environment, searched: Sequence[str]) -> list[str]:
    """The videos searched, and others evenly spaced over the library, `USUAL_VIDEOS` in all if there are so many."""
    others = sorted({video.video_id for video in environment.videos} - set(searched))
    count = min(len(others), max(USUAL_VIDEOS - len(searched), 0))
    spaced = [others[at * len(others) // count] for at in range(count)]
    return [*searched, *(each for each in spaced if _holds_anything(environment, each))]


def _holds_anything(environment: Environment, video_id: str) -> bool:
    """False for a video of which the library has neither frames nor words: nothing can be found in it."""
    return environment.pictured(video_id) or bool(environment.source.words(video_id))


def _borders_s(environment: Environment, video_id: str) -> list[float]:
    """The times at which shots begin, and the video's end; two windows beside each other have no border of a shot."""
    segments = environment.segments(video_id)
    inner = [after.start_s for before, after in pairwise(segments) if SHOT in (before.kind, after.kind)]
    return [segments[0].start_s, *inner, segments[-1].end_s] if segments else []


def _moment(library: LibraryReader, found: EvidenceRange, text: str) -> Moment:
    score = float(calibrate(np.array(found.deviation)))
    source = "words" if found.by_words else "pictures"
    return Moment(library.video(found.video_id), found.start_s, found.end_s, text, score, source)
