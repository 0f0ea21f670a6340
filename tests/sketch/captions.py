"""Random scenes of the sketch world, claims about them, and the scenes of which a claim is true.

`claim_about` chooses the facts of a scene to mention, `altered` changes one, `plain_wording` puts a claim into words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.sketch.vocabulary import KINDS, PLACES, POSITIONS, SIZES, plural, with_article
from tests.world.sketch.scenes import (
    COLOUR_NAMES,
    NUMBERS,
    PLACE_NAMES,
    THING_NAMES,
    TITLE_WORDS,
    Group,
    Scene,
    TitleCard,
)

ANY_WORD = "*"
SEVERAL = 6
"""A count that stands for two or more."""


def held_out(thing: str, colour: str, place: str) -> bool:
    """True if this combination is held out of training: one in eleven, spread evenly over the vocabulary."""
    number = (3 * THING_NAMES.index(thing) + 5 * COLOUR_NAMES.index(colour) + 7 * PLACE_NAMES.index(place)) % 11
    return number == 0


def random_group(place: str, position: str, count: int, chance: Random, *, unseen: bool) -> Group:
    """Choose a group whose thing-colour-place combination is held out (`unseen`) or not."""
    while True:
        thing, colour = chance.choice(THING_NAMES), chance.choice(COLOUR_NAMES)
        if held_out(thing, colour, place) == unseen:
            return Group(
                thing, colour, count, chance.choice(tuple(SIZES)), position, chance.random(), chance.random() < 0.5
            )


def random_scene(chance: Random, *, unseen: bool = False) -> Scene:
    """Choose a scene with one to three groups, no thing twice."""
    place, night = chance.choice(PLACE_NAMES), chance.random() < 0.4
    number = chance.choices((1, 2, 3), (62, 28, 10))[0]
    positions = [chance.choice(tuple(POSITIONS))] if number == 1 else ["left", "middle", "right"]
    if number == 2:
        positions = ["left", "right"]
    groups: list[Group] = []
    for position in positions:
        count = 1
        if number < 3 and chance.random() < 0.36:
            count = chance.randint(2, 5 if number == 1 else 3)
        group = random_group(place, position if number > 1 or count == 1 else "middle", count, chance, unseen=unseen)
        if all(other.thing != group.thing for other in groups):
            groups.append(group)
    if len(groups) < number:
        return random_scene(chance, unseen=unseen)
    return Scene(place, night, tuple(groups))


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


def is_true(claim: Claim, scene: Scene | TitleCard) -> bool:
    """True if a scene shows all that the claim mentions."""
    if isinstance(scene, TitleCard):
        said = claim.word in (scene.word, ANY_WORD)
        return said and replace(claim, word=None) == Claim()
    if claim.word is not None or (claim.empty and scene.groups):
        return False
    at = claim.place in (None, scene.place) and claim.night in (None, scene.night)
    return at and all(any(_is_of(ask, group) for group in scene.groups) for ask in claim.groups)


def _is_of(ask: GroupClaim, group: Group) -> bool:
    nouns = (None, group.thing, *(kind for kind, things in KINDS.items() if group.thing in things))
    counts = (None, group.count, *((SEVERAL,) if group.count > 1 else ()))
    same = ask.colour in (None, group.colour) and ask.size in (None, group.size)
    return same and ask.noun in nouns and ask.count in counts and ask.position in (None, group.position)


def claim_about(scene: Scene | TitleCard, chance: Random) -> Claim:
    """Make a claim that is true of the scene and mentions some of its facts."""
    if isinstance(scene, TitleCard):
        return Claim(word=scene.word if chance.random() < 0.85 else ANY_WORD)
    night = scene.night if chance.random() < 0.4 else None
    if not scene.groups:
        return Claim(scene.place, night, empty=chance.random() < 0.7)
    if chance.random() < 0.04:
        return Claim(scene.place, night)
    spoken = chance.sample(scene.groups, 2 if len(scene.groups) > 1 and chance.random() < 0.5 else 1)
    alone = len(scene.groups) == 1
    return Claim(
        scene.place if chance.random() < 0.7 else None,
        night,
        tuple(_group_claim(group, alone, chance) for group in spoken),
    )


def full_claim(scene: Scene | TitleCard) -> Claim:
    """Make the claim that names the place, the hour and the first two groups with their colours and counts."""
    if isinstance(scene, TitleCard):
        return Claim(word=scene.word)
    groups = tuple(GroupClaim(group.thing, group.colour, group.count) for group in scene.groups[:2])
    return Claim(scene.place, scene.night, groups, empty=not groups)


def _group_claim(group: Group, alone: bool, chance: Random) -> GroupClaim:
    noun: str | None = group.thing
    if chance.random() < 0.06:
        noun = next((kind for kind, things in KINDS.items() if group.thing in things), None)
    colour = group.colour if chance.random() < 0.75 or noun is None else None
    if group.count > 1:
        return GroupClaim(noun, colour, group.count if chance.random() < 0.75 else SEVERAL)
    return GroupClaim(
        noun,
        colour,
        1 if chance.random() < 0.12 else None,
        group.size if group.size != "medium" and chance.random() < 0.25 else None,
        group.position if chance.random() < (0.12 if alone else 0.2) else None,
    )


def altered(claim: Claim, chance: Random) -> Claim:
    """Change one fact of a claim: a near miss, for telling close things apart."""
    if claim.word is not None:
        return replace(claim, word=chance.choice(TITLE_WORDS))
    if not claim.groups or chance.random() < 0.2:
        return replace(claim, place=chance.choice(PLACE_NAMES), night=None if claim.night is None else not claim.night)
    index = chance.randrange(len(claim.groups))
    group = claim.groups[index]
    if group.count is not None and group.count < SEVERAL and chance.random() < 0.6:
        changed = replace(group, count=max(1, min(5, group.count + chance.choice((-1, 1)))))
    elif group.colour is not None and chance.random() < 0.6:
        changed = replace(group, colour=chance.choice(COLOUR_NAMES))
    elif group.position is not None:
        changed = replace(group, position=chance.choice(tuple(POSITIONS)))
    else:
        changed = replace(group, noun=chance.choice(THING_NAMES))
    return replace(claim, groups=(*claim.groups[:index], changed, *claim.groups[index + 1 :]))


def plain_wording(claim: Claim) -> str:
    """Word the claim by the first words of the vocabulary: one fixed wording, for prompts and films' scripts."""
    if claim.word is not None:
        return f"a title card that says {claim.word}"
    names = []
    for group in claim.groups:
        words = [group.colour or "", group.noun or "thing"]
        if (group.count or 1) > 1:
            words = [NUMBERS[group.count or 1], words[0], plural(words[1])]
        phrase = " ".join(word for word in words if word)
        names.append(phrase if (group.count or 1) > 1 else with_article(phrase))
    subject = " and ".join(names) or ("nothing" if claim.empty else "a scene")
    place = PLACES[claim.place][0] if claim.place else ""
    hour = "" if claim.night is None else ("at night" if claim.night else "by day")
    return " ".join(part for part in (subject, place, hour) if part)
