"""Random scenes: the images that the built-in model is trained and scored on."""

from __future__ import annotations

from random import Random

from jobs.synthetic.world.scene import Group, Scene, TitleCard
from jobs.synthetic.world.vocabulary import COLOUR_NAMES, PLACE_NAMES, POSITIONS, SIZES, THING_NAMES, TITLE_WORDS

CARD_PAINTS = (
    ((18, 18, 24), (240, 240, 235)),
    ((236, 232, 220), (30, 30, 34)),
    ((30, 50, 96), (250, 240, 200)),
    ((120, 28, 32), (250, 236, 220)),
    ((24, 84, 60), (240, 240, 220)),
)


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


def random_picture(chance: Random) -> Scene | TitleCard:
    """Choose a scene for training: combinations that are not held out, some empty places, some title cards."""
    kind = chance.random()
    if kind < 0.06:
        paper, ink = chance.choice(CARD_PAINTS)
        return TitleCard(chance.choice(TITLE_WORDS), paper, ink)
    if kind < 0.12:
        return Scene(chance.choice(PLACE_NAMES), chance.random() < 0.5)
    return random_scene(chance)
