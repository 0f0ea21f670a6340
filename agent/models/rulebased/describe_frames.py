"""Frames put into words: the phrases of the sketch world that their stored vectors are nearest to.

Only for libraries in the built-in space, whose words these are. A frame is a title card, or a place at an hour with
up to two groups of things; each step keeps what the steps before it found. How sure a phrase is, is its share among
the phrases it was compared with: a softmax of their cosines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from agent.core.protocol import ShownFrame
from agent.environment import Environment
from agent.errors import NeedsLanguage
from agent.models.rulebased.vocabulary import COLOURS, HOURS, NUMBERS, PLACES, THINGS, TITLES, counted, title_card

SPACE = "builtin"
SHARPNESS = 60.0
"""Cosines are multiplied by this before a softmax."""
COUNTED = 8
"""How many of the best groups are counted."""
BESIDE = 40
"""How many of the best groups are tried beside the first."""
SECOND = 0.02
"""What a second group must add to the cosine to be named."""

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Some words and how sure they are, from 0 to 1."""

    text: str
    confidence: float


def describe(environment: Environment, frames: Sequence[ShownFrame]) -> Phrase:
    """What frames show, each description once and in order; as sure as the least sure of them."""
    seen = {phrase.text: phrase for phrase in (joined(clauses(environment, frame)) for frame in frames)}
    return Phrase("; then ".join(seen), min(phrase.confidence for phrase in seen.values()))


def joined(parts: Sequence[Phrase]) -> Phrase:
    """One phrase of several about the same frame."""
    return Phrase(" ".join(part.text for part in parts), math.prod(part.confidence for part in parts))


def clauses(environment: Environment, frame: ShownFrame) -> list[Phrase]:
    """What a frame shows: a title card; or what is there, and where and when.

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
    return [_things(environment, vector, place), Phrase(f"{place} {hour}", _share(cosines))]


def _things(environment: Environment, vector: Vector, place: str) -> Phrase:
    """The group of things that stands out at a place, or nothing, and one beside it if that explains more."""
    alike = list(product(COLOURS, THINGS))
    single = _cosines(environment, vector, [f"{counted(1, *each)} {place}" for each in alike])
    nearest = [alike[at] for at in np.argsort(-single)]
    groups = [counted(number, *each) for each in nearest[:COUNTED] for number in range(1, len(NUMBERS) + 1)]
    cosines = _cosines(environment, vector, [f"{each} {place}" for each in (*groups, "nothing")])
    best = int(np.argmax(cosines))
    if best == len(groups):
        return Phrase("nothing", _share(cosines))
    first = nearest[best // len(NUMBERS)]
    others = [each for each in nearest[:BESIDE] if each != first]
    both = _cosines(environment, vector, [f"{groups[best]} and {counted(1, *each)} {place}" for each in others])
    second = others[int(np.argmax(both))]
    pairs = [f"{groups[best]} and {counted(number, *second)}" for number in range(1, len(NUMBERS) + 1)]
    joint = _cosines(environment, vector, [f"{each} {place}" for each in pairs])
    if joint.max() - cosines[best] < SECOND:
        return Phrase(groups[best], _share(cosines))
    return Phrase(pairs[int(np.argmax(joint))], _share(cosines) * _share(both) * _share(joint))


def _cosines(environment: Environment, vector: Vector, texts: Sequence[str]) -> Vector:
    cosines: Vector = environment.source.embed_texts(texts) @ vector
    return cosines


def _share(cosines: Vector) -> float:
    """The share of the best in a softmax."""
    return float(1 / np.exp(SHARPNESS * (cosines - cosines.max())).sum())
