"""Captions of the sketch world: random scenes, claims about them, and the many wordings of a claim.

`claim_about` chooses the facts of a scene to mention; `wording` puts a claim into one of very many wordings; `truth`
computes which claims are true of which scenes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from kinodex.sketch.scenes import (
    CARD_PAINTS,
    COLOUR_NAMES,
    NUMBERS,
    PLACE_NAMES,
    THING_NAMES,
    TITLE_WORDS,
    Group,
    Scene,
    TitleCard,
)
from tests.sketch.vocabulary import (
    COLOURS,
    DAY,
    KINDS,
    NIGHT,
    PLACE_NOUNS,
    PLACES,
    POSITIONS,
    SIZES,
    THINGS,
    plural,
    with_article,
)

# Random scenes: the images that the built-in model is trained and scored on.


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


# Claims of captions, and the scenes of which they are true.
#
# Scenes and claims become rows of small integers, so that the truth of thousands of pairs is a few array operations.
# -1 means "there is none" in a scene and "anything will do" in a claim.

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


# Wordings of claims.

OPENINGS = (
    "",
    "",
    "",
    "",
    "a picture of ",
    "a photo of ",
    "a drawing of ",
    "a video frame of ",
    "a frame showing ",
    "there is ",
    "we see ",
    "a scene with ",
    "a shot of ",
    "the image shows ",
    "video of ",
    "look for ",
    "a moment with ",
    "an image of ",
)
QUESTIONS = (
    "what comes after {}?",
    "what happens right after {}?",
    "what appears after {}?",
    "when do we see {}?",
    "is there {}?",
    "does {} appear in the video?",
    "which scene follows {}?",
    "what is shown before {}?",
    "find {}",
    "the moment when {} appears",
    "what else is there with {}?",
)


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


def wording(claim: Claim, chance: Random) -> str:
    """Word the claim: as a sentence, a phrase, a question or a bag of keywords."""
    if claim.word is not None:
        return _card_wording(claim.word, chance)
    style = chance.random()
    if style < 0.16:
        return _keywords(claim, chance)
    if style < 0.24 and len(claim.groups) == 1:
        return _specific_question(claim, chance)
    subject = _subject(claim, chance)
    parts = [part for part in (_place_phrase(claim, chance), _hour_phrase(claim, chance)) if part]
    if claim.groups:
        chance.shuffle(parts)
    elif claim.place is not None:
        parts = [part for part in (_hour_phrase(claim, chance),) if part]
    phrase = " ".join([subject, *parts])
    if parts and claim.groups and chance.random() < 0.1:
        phrase = f"{' '.join(parts)}, {subject}"
    if style > 0.9:
        return chance.choice(QUESTIONS).format(phrase.replace("a ", "the ", 1) if phrase.startswith("a ") else phrase)
    return chance.choice(OPENINGS) + phrase + chance.choice(("", "", ".", " in the video"))


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


def _card_wording(word: str, chance: Random) -> str:
    if word == ANY_WORD:
        return chance.choice(
            (
                "a title card",
                "a card with text",
                "text on the screen",
                "a caption card with a word",
                "written words",
                "a title",
                "big letters on a plain background",
            )
        )
    shown = chance.choice((word, word.lower(), word.capitalize(), f'"{word}"'))
    return chance.choice(
        (
            "a title card that says {}",
            "the word {}",
            "a card with the word {}",
            "{}",
            "title card {}",
            "the title {}",
            "text saying {}",
            "a title card reading {}",
            "{} written on the screen",
            "the card {} appears",
            "what comes after the title card {}?",
        )
    ).format(shown)


def _noun(group: GroupClaim, chance: Random, many: bool) -> str:
    if group.noun is None:
        return chance.choice(("things", "objects") if many else ("thing", "object"))
    others = THINGS.get(group.noun, ())
    noun = chance.choice(others) if others and chance.random() < 0.4 else group.noun
    return plural(noun) if many else noun


def _colour(group: GroupClaim, chance: Random) -> str:
    if group.colour is None:
        return ""
    others = COLOURS[group.colour]
    return chance.choice(others) if others and chance.random() < 0.08 else group.colour


def _group_phrase(group: GroupClaim, chance: Random) -> str:
    many = group.count is not None and group.count > 1
    words = [_colour(group, chance), _noun(group, chance, many)]
    if group.size is not None and SIZES[group.size]:
        words.insert(0, chance.choice(SIZES[group.size]))
    if group.count == SEVERAL:
        words.insert(0, chance.choice(("several", "some", "a few", "many", "")))
    elif many:
        words.insert(0, chance.choice((NUMBERS[group.count or 0], NUMBERS[group.count or 0], str(group.count))))
    elif group.count == 1:
        words.insert(0, chance.choice(("one", "a single", "a lone", "exactly one")))
    phrase = " ".join(word for word in words if word)
    if not many and group.count is None and chance.random() < 0.85:
        phrase = with_article(phrase) if chance.random() < 0.8 else "the " + phrase
    if not many and group.colour is not None and chance.random() < 0.05:
        phrase = f"{with_article(_noun(group, chance, False))} that is {group.colour}"
    return f"{phrase} {chance.choice(POSITIONS[group.position])}" if group.position else phrase


def _subject(claim: Claim, chance: Random) -> str:
    if claim.groups:
        joint = chance.choice((" and ", " and ", " with ", " next to ", " beside ", ", ", " together with ", " near "))
        return joint.join(_group_phrase(group, chance) for group in claim.groups)
    if claim.place is None:
        return "a scene"
    noun = chance.choice(PLACE_NOUNS[claim.place])
    if claim.empty:
        return chance.choice(
            (
                "an empty {}",
                "the empty {}",
                "{} with nothing in it",
                "only the {}",
                "a deserted {}",
                "nothing but {}",
                "{} without anything",
            )
        ).format(noun)
    return chance.choice(("the {}", "{}", "a view of the {}", "{} scene", PLACES[claim.place][0])).format(noun)


def _place_phrase(claim: Claim, chance: Random) -> str:
    if claim.place is None:
        return ""
    return PLACES[claim.place][0] if chance.random() < 0.3 else chance.choice(PLACES[claim.place])


def _hour_phrase(claim: Claim, chance: Random) -> str:
    if claim.night is None:
        return ""
    return chance.choice(NIGHT if claim.night else DAY)


def _keywords(claim: Claim, chance: Random) -> str:
    bags = []
    for group in claim.groups:
        many = group.count is not None and group.count > 1
        bag = [_colour(group, chance), _noun(group, chance, many)]
        if many and group.count != SEVERAL:
            bag.insert(0, NUMBERS[group.count or 0])
        if group.size is not None and SIZES[group.size]:
            bag.insert(0, chance.choice(SIZES[group.size]))
        if len(claim.groups) == 1:
            chance.shuffle(bag)
        if group.position is not None:
            bag.append(group.position)
        bags.append(" ".join(word for word in bag if word))
    if claim.place is not None:
        bags.append(chance.choice(PLACE_NOUNS[claim.place]))
    if claim.night is not None:
        bags.append("night" if claim.night else "day")
    if claim.empty:
        bags.append("empty")
    chance.shuffle(bags)
    return " ".join(bags)


def _specific_question(claim: Claim, chance: Random) -> str:
    """Word a question whose subject is the whole claim."""
    group = claim.groups[0]
    where = " ".join(part for part in (_place_phrase(claim, chance), _hour_phrase(claim, chance)) if part)
    if group.count is not None and group.count > 1:
        noun = f"{_colour(group, chance)} {_noun(group, chance, True)}".strip()
        if group.count == SEVERAL:
            return f"how many {noun} are there {where}".strip() + "?"
        return f"are there {NUMBERS[group.count]} {noun} {where}".strip() + "?"
    noun = " ".join(word for word in (_colour(group, chance), _noun(group, chance, False)) if word)
    if group.count is not None or group.size is not None or group.position is not None:
        return f"when is {_group_phrase(group, chance)} {where} shown".replace("  ", " ") + "?"
    if not group.colour:
        return (
            chance.choice(
                ("what colour is the {} {}?", "what color is the {} {}?", "which colour does the {} {} have?")
            )
            .format(noun, where)
            .replace(" ?", "?")
        )
    return (
        chance.choice(
            (
                "where is the {} {}?",
                "what is next to the {} {}?",
                "what do we see after the {} {}?",
                "in which place is the {} {}?",
            )
        )
        .format(noun, where)
        .replace(" ?", "?")
    )
