"""Descriptions of frames: the phrases of the sketch world that are nearest to their stored vectors.

Only for libraries in the drawn space, whose words these are. A frame is a title card, or a place at an hour with
up to two groups of things; each step keeps what the steps before it found. The confidence of a phrase is its share
among the phrases that it was compared with: a softmax of their cosines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.library_videos import LibraryVideos
from tests.world.drawn_space import drawn_fingerprint
from tests.world.rules.sketch_words import COLOURS, HOURS, NUMBERS, PLACES, THINGS, TITLES, counted, title_card

SPACE = drawn_fingerprint().digest
SHARPNESS = 60.0
"""Cosines are multiplied by this before a softmax."""
COUNTED_GROUPS = 8
"""The number of best groups that are counted."""
SECOND_GROUPS = 40
"""The number of best groups that are tried beside the first."""
LEAST_GAIN = 0.02
"""The least gain of the cosine for a second group to be named."""

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Some words and their confidence, from 0 to 1."""

    text: str
    confidence: float


def describe(environment: Environment, frames: Sequence[ShownFrame]) -> Phrase:
    """Describe frames in order, each description once; the least confidence of all counts."""
    phrases = {phrase.text: phrase for phrase in (_described(environment, frame) for frame in frames)}
    return Phrase("; then ".join(phrases), min(phrase.confidence for phrase in phrases.values()))


def describe_each(environment: Environment, frames: Sequence[ShownFrame]) -> list[str]:
    return [_described(environment, frame).text for frame in frames]


def _described(environment: Environment, frame: ShownFrame) -> Phrase:
    parts = clauses(environment, frame)
    return Phrase(" ".join(part.text for part in parts), math.prod(part.confidence for part in parts))


def clauses(environment: Environment, frame: ShownFrame) -> list[Phrase]:
    """Describe one frame: a title card; or the things in it, and where and when.

    Raises `NeedsLanguage` for a library in another space.
    """
    source = environment.source
    if source.space.digest != SPACE:
        raise NeedsLanguage(
            f"the built-in model has words only for libraries in the drawn space, and this one is in "
            f"{source.space.name}; give --model and --base-url"
        )
    memory = source.in_memory(frame.video_id)
    vector = memory.units[int(np.searchsorted(memory.stored.frame_no, frame.frame_no))]
    scenes, cards = list(product(PLACES, HOURS)), [title_card(word) for word in TITLES]
    cosines = source.embed_texts([f"a scene {place} {hour}" for place, hour in scenes] + cards) @ vector
    best = int(np.argmax(cosines))
    if best >= len(scenes):
        return [Phrase(cards[best - len(scenes)], _share(cosines))]
    place, hour = scenes[best]
    return [_describe_things(source, vector, place), Phrase(f"{place} {hour}", _share(cosines))]


def _describe_things(source: LibraryVideos, vector: Vector, place: str) -> Phrase:
    def cosines_of(groups: Sequence[str]) -> Vector:
        cosines: Vector = source.embed_texts([f"{each} {place}" for each in groups]) @ vector
        return cosines

    kinds, counts = list(product(COLOURS, THINGS)), range(1, len(NUMBERS) + 1)
    single = cosines_of([counted(1, *each) for each in kinds])
    nearest = [kinds[at] for at in np.argsort(-single)]
    groups = [counted(number, *each) for each in nearest[:COUNTED_GROUPS] for number in counts]
    cosines = cosines_of([*groups, "nothing"])
    best = int(np.argmax(cosines))
    if best == len(groups):
        return Phrase("nothing", _share(cosines))
    first = nearest[best // len(NUMBERS)]
    others = [each for each in nearest[:SECOND_GROUPS] if each != first]
    both = cosines_of([f"{groups[best]} and {counted(1, *each)}" for each in others])
    second = others[int(np.argmax(both))]
    pairs = [f"{groups[best]} and {counted(number, *second)}" for number in counts]
    joint = cosines_of(pairs)
    if joint.max() - cosines[best] < LEAST_GAIN:
        return Phrase(groups[best], _share(cosines))
    return Phrase(pairs[int(np.argmax(joint))], _share(cosines) * _share(both) * _share(joint))


def _share(cosines: Vector) -> float:
    return float(1 / np.exp(SHARPNESS * (cosines - cosines.max())).sum())
