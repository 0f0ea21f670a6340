"""Grounding by search alone: the ranges where a text's evidence stands out. It is an order, never a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.agent.videos.scale import calibrate
from kinodex.index.errors import NoVectors, UnknownWords
from kinodex.index.library import LibraryReader
from kinodex.index.rows import VideoRow
from kinodex.index.spaces.towers import Sigmoid
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moment_rule import cut_times
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.grounding.evidence import usual_cosines, video_evidence
from kinodex.jobs.grounding.ranges import EvidenceRange, evidence_ranges
from kinodex.jobs.grounding.result import BY_SEARCH, MOST, Grounding
from kinodex.jobs.verdicts import basis_of

NEAREST_VIDEOS = 16
"""Videos in which ranges are looked for, the nearest by the library's indexes, if none are named."""
USUAL_VIDEOS = 48
"""Videos over which the usual is taken: these and others, evenly spaced over the library."""

NOTHING_HELD = "the library holds neither pictures nor words of the videos searched"
NOTHING_FITS = "no picture and no line in them fits it better than is usual"
NO_LINE_FITS = "no line in them fits it better than is usual"


def ground(
    library: LibraryReader,
    environment: Environment,
    text: str,
    videos: Sequence[VideoRow] = (),
    *,
    most: int = MOST,
    in_: AnchorsFrom = "all",
) -> Grounding:
    """Find the ranges of the videos, or of all, that fit a text best, by pictures, words or both.

    `environment` holds all videos of the library: what is usual is taken from many of them. Raises UsageError for an
    empty text, and for `most` below 1.
    """
    if not text.strip():
        raise UsageError("got an empty text; say in words what happens")
    if most < 1:
        raise UsageError(f"got most={most}; ask for at least 1 range")
    named = [row.video_id for row in videos]
    if not named:
        nearest = environment.nearest([text], NEAREST_VIDEOS, anchors_from=in_)
        named = [video.video_id for video in nearest.videos]
    searched = [each for each in named if _holds_anything(environment, each)]
    if not searched:
        return Grounding(text, (), None, BY_SEARCH, "ranking", 0.0, NOTHING_HELD)
    among = _usual_videos(environment, searched)
    unsearched = in_ == "words" or (in_ == "all" and not environment.has_vectors)
    usual = None if unsearched else usual_cosines(environment, text, among)
    least_cosine = library.sentences.least_cosine()
    found: list[EvidenceRange] = []
    for video_id in searched:
        evidence = video_evidence(environment, text, video_id, usual, among, in_, least_cosine)
        found += evidence_ranges(evidence, cut_times(environment.segments(video_id)), most)
    found.sort(key=lambda each: (-each.deviation, each.video_id, each.start_s))
    sigmoid = library.sigmoid(environment.source.space, text)
    candidates = tuple(_moment(library, environment, each, text, sigmoid) for each in found[:most])
    best, reason = (found[0].deviation, "") if found else (0.0, NOTHING_FITS)
    if reason and in_ == "all" and unsearched:
        reason = f"{NO_LINE_FITS}; {NoVectors.of(library.uri)}"
    if not unsearched and not environment.source.knows(text):
        reason = f"pictures are not compared: {UnknownWords.of(environment.source.space.name, text)}"
    return Grounding(text, candidates, None, BY_SEARCH, basis_of(candidates), best, reason)


def _usual_videos(environment: Environment, searched: Sequence[str]) -> list[str]:
    """Return the videos searched, and others evenly spaced over the library, `USUAL_VIDEOS` in all if there are that
    many.
    """
    others = sorted({video.video_id for video in environment.videos} - set(searched))
    count = min(len(others), max(USUAL_VIDEOS - len(searched), 0))
    spaced = [others[at * len(others) // count] for at in range(count)]
    return [*searched, *(each for each in spaced if _holds_anything(environment, each))]


def _holds_anything(environment: Environment, video_id: str) -> bool:
    """Return False for a video of which the library has neither frames nor words: nothing can be found in it."""
    return environment.pictured(video_id) or bool(environment.source.words(video_id))


def _moment(
    library: LibraryReader, environment: Environment, found: EvidenceRange, text: str, sigmoid: Sigmoid | None
) -> Moment:
    score = float(calibrate(np.array(found.deviation)))
    found_in = "words" if found.by_words else "frames"
    moment = Moment(library.video(found.video_id), found.start_s, found.end_s, text, score, found_in)
    if sigmoid is None or found.by_words or not environment.pictured(found.video_id):
        return moment
    times_s = environment.times(found.video_id)
    inside = (times_s >= found.start_s) & (times_s < found.end_s)
    best = float(environment.cosines(text, found.video_id)[inside].max(initial=-1.0))
    return replace(moment, basis="probability", probability=sigmoid.probability(best))
