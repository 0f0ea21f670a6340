"""Captions of the sketch world: what people, searchers and questions might write about a scene.

`claim_about` picks which facts of a scene to speak of; `wording` puts a claim into one of very many wordings.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from jobs.synthetic.world.claims import ANY_WORD, SEVERAL, Asked, Claim
from jobs.synthetic.world.scene import Group, Scene, TitleCard
from jobs.synthetic.world.vocabulary import (
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
    SIZES,
    THING_NAMES,
    THINGS,
    TITLE_WORDS,
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
    """A claim that is true of the scene and speaks of some of its facts."""
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
        tuple(_asked_about(group, alone, chance) for group in spoken),
    )


def full_claim(scene: Scene | TitleCard) -> Claim:
    """The claim that names the place, the hour and the first two groups with their colours and counts."""
    if isinstance(scene, TitleCard):
        return Claim(word=scene.word)
    groups = tuple(Asked(group.thing, group.colour, group.count) for group in scene.groups[:2])
    return Claim(scene.place, scene.night, groups, empty=not groups)


def _asked_about(group: Group, alone: bool, chance: Random) -> Asked:
    noun: str | None = group.thing
    if chance.random() < 0.06:
        noun = next((kind for kind, things in KINDS.items() if group.thing in things), None)
    colour = group.colour if chance.random() < 0.75 or noun is None else None
    if group.count > 1:
        return Asked(noun, colour, group.count if chance.random() < 0.75 else SEVERAL)
    return Asked(
        noun,
        colour,
        1 if chance.random() < 0.12 else None,
        group.size if group.size != "medium" and chance.random() < 0.25 else None,
        group.position if chance.random() < (0.12 if alone else 0.2) else None,
    )


def altered(claim: Claim, chance: Random) -> Claim:
    """The claim with one fact changed: a near miss, for telling close things apart."""
    if claim.word is not None:
        return replace(claim, word=chance.choice(TITLE_WORDS))
    if not claim.groups or chance.random() < 0.2:
        return replace(claim, place=chance.choice(PLACE_NAMES), night=None if claim.night is None else not claim.night)
    index = chance.randrange(len(claim.groups))
    asked = claim.groups[index]
    if asked.count is not None and asked.count < SEVERAL and chance.random() < 0.6:
        changed = replace(asked, count=max(1, min(5, asked.count + chance.choice((-1, 1)))))
    elif asked.colour is not None and chance.random() < 0.6:
        changed = replace(asked, colour=chance.choice(COLOUR_NAMES))
    elif asked.position is not None:
        changed = replace(asked, position=chance.choice(tuple(POSITIONS)))
    else:
        changed = replace(asked, noun=chance.choice(THING_NAMES))
    return replace(claim, groups=(*claim.groups[:index], changed, *claim.groups[index + 1 :]))


def wording(claim: Claim, chance: Random) -> str:
    """The claim in words: a sentence, a phrase, a question or a bag of keywords."""
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
    """The claim in the first words of the vocabulary: one fixed wording, for prompts and films' scripts."""
    if claim.word is not None:
        return f"a title card that says {claim.word}"
    names = []
    for asked in claim.groups:
        words = [asked.colour or "", asked.noun or "thing"]
        if (asked.count or 1) > 1:
            words = [NUMBERS[asked.count or 1], words[0], plural(words[1])]
        phrase = " ".join(word for word in words if word)
        names.append(phrase if (asked.count or 1) > 1 else with_article(phrase))
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


def _noun(asked: Asked, chance: Random, many: bool) -> str:
    if asked.noun is None:
        return chance.choice(("things", "objects") if many else ("thing", "object"))
    others = THINGS.get(asked.noun, ())
    noun = chance.choice(others) if others and chance.random() < 0.4 else asked.noun
    return plural(noun) if many else noun


def _colour(asked: Asked, chance: Random) -> str:
    if asked.colour is None:
        return ""
    others = COLOURS[asked.colour]
    return chance.choice(others) if others and chance.random() < 0.08 else asked.colour


def _group_phrase(asked: Asked, chance: Random) -> str:
    many = asked.count is not None and asked.count > 1
    words = [_colour(asked, chance), _noun(asked, chance, many)]
    if asked.size is not None and SIZES[asked.size]:
        words.insert(0, chance.choice(SIZES[asked.size]))
    if asked.count == SEVERAL:
        words.insert(0, chance.choice(("several", "some", "a few", "many", "")))
    elif many:
        words.insert(0, chance.choice((NUMBERS[asked.count or 0], NUMBERS[asked.count or 0], str(asked.count))))
    elif asked.count == 1:
        words.insert(0, chance.choice(("one", "a single", "a lone", "exactly one")))
    phrase = " ".join(word for word in words if word)
    if not many and asked.count is None and chance.random() < 0.85:
        phrase = with_article(phrase) if chance.random() < 0.8 else "the " + phrase
    if not many and asked.colour is not None and chance.random() < 0.05:
        phrase = f"{with_article(_noun(asked, chance, False))} that is {asked.colour}"
    return f"{phrase} {chance.choice(POSITIONS[asked.position])}" if asked.position else phrase


def _subject(claim: Claim, chance: Random) -> str:
    if claim.groups:
        joint = chance.choice((" and ", " and ", " with ", " next to ", " beside ", ", ", " together with ", " near "))
        return joint.join(_group_phrase(asked, chance) for asked in claim.groups)
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
    for asked in claim.groups:
        many = asked.count is not None and asked.count > 1
        bag = [_colour(asked, chance), _noun(asked, chance, many)]
        if many and asked.count != SEVERAL:
            bag.insert(0, NUMBERS[asked.count or 0])
        if asked.size is not None and SIZES[asked.size]:
            bag.insert(0, chance.choice(SIZES[asked.size]))
        if len(claim.groups) == 1:
            chance.shuffle(bag)
        if asked.position is not None:
            bag.append(asked.position)
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
    """A question whose subject is all that the claim says."""
    asked = claim.groups[0]
    where = " ".join(part for part in (_place_phrase(claim, chance), _hour_phrase(claim, chance)) if part)
    if asked.count is not None and asked.count > 1:
        noun = f"{_colour(asked, chance)} {_noun(asked, chance, True)}".strip()
        if asked.count == SEVERAL:
            return f"how many {noun} are there {where}".strip() + "?"
        return f"are there {NUMBERS[asked.count]} {noun} {where}".strip() + "?"
    noun = " ".join(word for word in (_colour(asked, chance), _noun(asked, chance, False)) if word)
    if asked.count is not None or asked.size is not None or asked.position is not None:
        return f"when is {_group_phrase(asked, chance)} {where} shown".replace("  ", " ") + "?"
    if not asked.colour:
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
