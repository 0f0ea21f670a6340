"""Descriptions of frames: the phrases of the sketch world that are nearest to their stored vectors.

Only for libraries in the built-in space, whose words these are. A frame is a title card, or a place at an hour with
up to two groups of things; each step keeps what the steps before it found. The confidence of a phrase is its share
among the phrases that it was compared with: a softmax of their cosines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent.core.protocol import ShownFrame
from agent.environment import Environment
from agent.errors import NeedsLanguage
from agent.models.rulebased.judge_notes import is_relevant
from agent.models.rulebased.vocabulary import COLOURS, HOURS, NUMBERS, PLACES, THINGS, TITLES, counted, title_card
from agent.requests.describe import DescribeSegment
from agent.variants.longvideoagent.requests import ReadFrames
from agent.variants.videoagent2.requests import CaptionFrames
from agent.variants.videoseek.look_requests import FocusClip, OverviewVideo, SkimRange

SPACE = "builtin"
SHARPNESS = 60.0
"""Cosines are multiplied by this before a softmax."""
COUNTED_GROUPS = 8
"""The number of best groups that are counted."""
SECOND_GROUPS = 40
"""The number of best groups that are tried beside the first."""
LEAST_GAIN = 0.02
"""The least gain of the cosine for a second group to be named."""

Vector = NDArray[np.float32]
DescribeRequest = DescribeSegment | ReadFrames | CaptionFrames | OverviewVideo | SkimRange | FocusClip


@dataclass(frozen=True, slots=True)
class Phrase:
    """Some words and their confidence, from 0 to 1."""

    text: str
    confidence: float


def describe(environment: Environment, frames: Sequence[ShownFrame]) -> Phrase:
    """Describe frames in order, each description once; the least confidence of all counts."""
    phrases = {phrase.text: phrase for phrase in (join(clauses(environment, frame)) for frame in frames)}
    return Phrase("; then ".join(phrases), min(phrase.confidence for phrase in phrases.values()))


def join(parts: Sequence[Phrase]) -> Phrase:
    """Join several phrases about the same frame."""
    return Phrase(" ".join(part.text for part in parts), math.prod(part.confidence for part in parts))


def clauses(environment: Environment, frame: ShownFrame) -> list[Phrase]:
    """Describe one frame: a title card; or the things in it, and where and when.

    Raises `NeedsLanguage` for a library in another space.
    """
    space = environment.source.space.name
    if space != SPACE:
        raise NeedsLanguage(
            f"the built-in model has words only for libraries in the built-in space, and this one is in {space}; "
            "give --model and --base-url"
        )
    memory = environment.source.in_memory(frame.video_id)
    vector = memory.units[int(np.searchsorted(memory.stored.frame_no, frame.frame_no))]
    scenes = list(product(PLACES, HOURS))
    cards = [title_card(word) for word in TITLES]
    cosines = _cosines(environment, vector, [f"a scene {place} {hour}" for place, hour in scenes] + cards)
    best = int(np.argmax(cosines))
    if best >= len(scenes):
        return [Phrase(cards[best - len(scenes)], _share(cosines))]
    place, hour = scenes[best]
    return [_describe_things(environment, vector, place), Phrase(f"{place} {hour}", _share(cosines))]


def _describe_things(environment: Environment, vector: Vector, place: str) -> Phrase:
    """Name the nearest group of things at a place, or nothing, and a second group if it raises the cosine."""
    kinds = list(product(COLOURS, THINGS))
    single = _cosines(environment, vector, [f"{counted(1, *each)} {place}" for each in kinds])
    nearest = [kinds[at] for at in np.argsort(-single)]
    groups = [counted(number, *each) for each in nearest[:COUNTED_GROUPS] for number in range(1, len(NUMBERS) + 1)]
    cosines = _cosines(environment, vector, [f"{each} {place}" for each in (*groups, "nothing")])
    best = int(np.argmax(cosines))
    if best == len(groups):
        return Phrase("nothing", _share(cosines))
    first = nearest[best // len(NUMBERS)]
    others = [each for each in nearest[:SECOND_GROUPS] if each != first]
    both = _cosines(environment, vector, [f"{groups[best]} and {counted(1, *each)} {place}" for each in others])
    second = others[int(np.argmax(both))]
    pairs = [f"{groups[best]} and {counted(number, *second)}" for number in range(1, len(NUMBERS) + 1)]
    joint = _cosines(environment, vector, [f"{each} {place}" for each in pairs])
    if joint.max() - cosines[best] < LEAST_GAIN:
        return Phrase(groups[best], _share(cosines))
    return Phrase(pairs[int(np.argmax(joint))], _share(cosines) * _share(both) * _share(joint))


def _cosines(environment: Environment, vector: Vector, texts: Sequence[str]) -> Vector:
    cosines: Vector = environment.source.embed_texts(texts) @ vector
    return cosines


def _share(cosines: Vector) -> float:
    """The share of the best in a softmax."""
    return float(1 / np.exp(SHARPNESS * (cosines - cosines.max())).sum())


def describe_reply(environment: Environment, request: DescribeRequest) -> dict[str, Any]:
    """Answer a request to describe frames, as JSON values; raises `NeedsLanguage` where there are no words."""
    match request:
        case DescribeSegment():
            whole = describe(environment, request.frames)
            return {"caption": whole.text, "confidence": 100 * whole.confidence}
        case ReadFrames():
            return {"observation": describe(environment, request.frames).text}
        case CaptionFrames():
            return {"captions": _captions(environment, request)}
    texts = [join(clauses(environment, frame)).text for frame in request.frames]
    if isinstance(request, OverviewVideo):
        return {"frames": [{"frame": at, "description": text} for at, text in enumerate(texts, 1)]}
    relevant = {at: text for at, text in enumerate(texts, 1) if is_relevant(request.query, text)}
    if isinstance(request, SkimRange):
        frames = [{"frame": at, "description": text} for at, text in enumerate(texts, 1)]
        return {"frames": [each | {"relevant": relevant.get(at)} for at, each in enumerate(frames, 1)]}
    answer = "; then ".join(dict.fromkeys(relevant.values()))
    return {"found": bool(relevant), "answer": answer, "frames": list(relevant)}


def _captions(environment: Environment, request: CaptionFrames) -> list[dict[str, Any]]:
    if request.box is not None:
        raise NeedsLanguage(
            "the built-in model knows whole frames, not enlarged parts; give a model that sees as the role vision"
        )
    return [
        {"frame": at, "clauses": [_clause(part, request.confidence) for part in clauses(environment, frame)]}
        for at, frame in enumerate(request.frames, 1)
    ]


def _clause(part: Phrase, with_confidence: bool) -> dict[str, Any]:
    return {"text": part.text, "confidence": part.confidence if with_confidence else None}
