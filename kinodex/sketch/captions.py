"""Captions of the sketch world: phrases of people, searches and questions about a scene.

`claim_about` chooses the facts of a scene to mention; `wording` puts a claim into one of very many wordings.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from kinodex.sketch.scenes import (
    ANY_WORD,
    COLOUR_NAMES,
    COLOURS,
    DAY,
    KINDS,
    NIGHT,
    NUMBERS,
    PLACE_NAMES,
    PLACE_NOUNS,
    PLACES,
    POSITIONS,
    SEVERAL,
    SIZES,
    THING_NAMES,
    THINGS,
    TITLE_WORDS,
    Claim,
    Group,
    GroupClaim,
    Scene,
    TitleCard,
    plural,
    with_article,
)

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
