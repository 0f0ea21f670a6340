"""Claims of captions, and the scenes of which they are true.

Scenes and claims become rows of small integers, so that the truth of thousands of pairs is a few array operations.
-1 means "there is none" in a scene and "anything will do" in a claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobs.synthetic.world.scene import Scene, TitleCard
from jobs.synthetic.world.vocabulary import COLOUR_NAMES, KINDS, PLACE_NAMES, POSITIONS, SIZES, THING_NAMES, TITLE_WORDS

ANY_WORD = "*"
SEVERAL = 6
_NOUNS = {noun: code for code, noun in enumerate((*THING_NAMES, *KINDS))}
_COLOURS = {colour: code for code, colour in enumerate(COLOUR_NAMES)}
_PLACES = {place: code for code, place in enumerate(PLACE_NAMES)}
_SIZES = {size: code for code, size in enumerate(SIZES)}
_POSITIONS = {position: code for code, position in enumerate(POSITIONS)}
_WORDS = {word: code for code, word in enumerate((*TITLE_WORDS, ANY_WORD))}


@dataclass(frozen=True, slots=True)
class GroupClaim:
    """A group that a caption mentions; None leaves a property open. `count` of `SEVERAL` means two or more.

    `noun` is a thing or one of the wider kinds ("animal").
    """

    noun: str | None = None
    colour: str | None = None
    count: int | None = None
    size: str | None = None
    position: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of a caption: the place, the hour, up to two groups, that nothing is there, or a card's word."""

    place: str | None = None
    night: bool | None = None
    groups: tuple[GroupClaim, ...] = ()
    empty: bool = False
    word: str | None = None


def truth(claims: Sequence[Claim], scenes: Sequence[Scene | TitleCard]) -> NDArray[np.bool_]:
    """Compute which claims are true of which scenes: bool [claims, scenes]."""
    return truth_of_codes(claim_codes(claims), scene_codes(scenes))


def scene_codes(scenes: Sequence[Scene | TitleCard]) -> NDArray[np.int8]:
    """Encode scenes as rows: place, night, word, then thing, colour, count, size, position of up to three groups."""
    return np.array([_scene_row(scene) for scene in scenes], np.int8).reshape(-1, 18)


def claim_codes(claims: Sequence[Claim]) -> NDArray[np.int8]:
    """Encode claims as rows: place, night, word, empty; noun, colour, count, size, position of up to two groups."""
    return np.array([_claim_row(claim) for claim in claims], np.int8).reshape(-1, 14)


def truth_of_codes(claims: NDArray[np.int8], scenes: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Compute `truth` for encoded rows: bool [claims, scenes]."""
    ask, see = claims[:, None], scenes[None]
    place = (ask[..., 0] < 0) | (ask[..., 0] == see[..., 0])
    night = (ask[..., 1] < 0) | (ask[..., 1] == see[..., 1])
    any_word = (ask[..., 2] == _WORDS[ANY_WORD]) & (see[..., 2] >= 0)
    word = (ask[..., 2] < 0) | (ask[..., 2] == see[..., 2]) | any_word
    empty = (ask[..., 3] < 0) | ((see[..., 3] < 0) & (see[..., 2] < 0))
    whole: NDArray[np.bool_] = place & night & word & empty
    for first in (4, 9):
        found = np.zeros_like(whole)
        for start in (3, 8, 13):
            found |= _matches(ask[..., first : first + 5], see[..., start : start + 5])
        whole &= found | (ask[..., first : first + 5] < 0).all(axis=-1)
    return whole


def _matches(ask: NDArray[np.int8], see: NDArray[np.int8]) -> NDArray[np.bool_]:
    there = see[..., 0] >= 0
    noun: NDArray[np.bool_] = (ask[..., 0] < 0) | _is_a()[ask[..., 0], see[..., 0]]
    same = [(ask[..., column] < 0) | (ask[..., column] == see[..., column]) for column in (1, 3, 4)]
    count = (ask[..., 2] < 0) | (ask[..., 2] == see[..., 2]) | ((ask[..., 2] == SEVERAL) & (see[..., 2] > 1))
    found: NDArray[np.bool_] = there & noun & count & same[0] & same[1] & same[2]
    return found


def _is_a() -> NDArray[np.bool_]:
    table = np.zeros((len(_NOUNS), len(THING_NAMES)), bool)
    for thing in THING_NAMES:
        table[_NOUNS[thing], _NOUNS[thing]] = True
    for kind, things in KINDS.items():
        for thing in things:
            table[_NOUNS[kind], _NOUNS[thing]] = True
    return table


def _scene_row(scene: Scene | TitleCard) -> list[int]:
    if isinstance(scene, TitleCard):
        return [-1, -1, _WORDS.get(scene.word, -1)] + [-1] * 15
    row = [_PLACES[scene.place], int(scene.night), -1]
    for group in scene.groups:
        row += [
            _NOUNS[group.thing],
            _COLOURS[group.colour],
            group.count,
            _SIZES[group.size],
            _POSITIONS[group.position],
        ]
    return row + [-1] * (18 - len(row))


def _claim_row(claim: Claim) -> list[int]:
    row = [
        -1 if claim.place is None else _PLACES[claim.place],
        -1 if claim.night is None else int(claim.night),
        -1 if claim.word is None else _WORDS[claim.word],
        1 if claim.empty else -1,
    ]
    for group in claim.groups:
        row += [
            -1 if group.noun is None else _NOUNS[group.noun],
            -1 if group.colour is None else _COLOURS[group.colour],
            -1 if group.count is None else group.count,
            -1 if group.size is None else _SIZES[group.size],
            -1 if group.position is None else _POSITIONS[group.position],
        ]
    return row + [-1] * (14 - len(row))
