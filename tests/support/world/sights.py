"""The content of pictures of story films: what a film's script shows at an instant, in words, and out of words again.

A sight is read off the tracks of the script inside the shot's view, never off its events: who holds a thing is where
it is drawn. Words are in one small grammar, so that a reader of captions knows as much as who wrote them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.world.sketch.scenes import COLOUR_NAMES, PLACE_NAMES, THING_NAMES
from tests.world.sketch.script import FPS
from tests.world.story import (
    ACTORS,
    CUES,
    HAND,
    ITEM_SIDE,
    ITEMS,
    Key,
    Prop,
    StoryFilm,
    landmark_box,
    position,
    shuffle_shots,
    text_box,
    write_story,
)

GROUND = "the ground"
Held = str | tuple[str, str]
"""The holder of an item: an actor, `GROUND`, or the two between whom it passes."""
SMALLEST = 0.04
"""Side of the smallest thing that is told from the scenery, as a fraction of the stage's height."""
WIDE = 0.95


@dataclass(frozen=True, slots=True)
class Sight:
    """The content of one picture, at `time_s` of its video; `number` is that of the frame or note in a request, else 0.

    `setting` is the place and whether it is night, `wide` that the whole stage is in view, `held` who has each item.
    """

    time_s: float
    card: str = ""
    setting: tuple[str, bool] | None = None
    wide: bool = False
    landmark: str = ""
    sign: str = ""
    things: frozenset[str] = frozenset()
    held: tuple[tuple[str, Held], ...] = ()
    number: int = 0

    @property
    def names(self) -> frozenset[str]:
        """Everything in it that has a name."""
        return self.things | {name for name in (self.landmark, self.sign, self.card) if name}

    def holder(self, item: str) -> Held | None:
        """The holder of an item; None where it is not seen with anybody."""
        return dict(self.held).get(item)


class Stage:
    """A story film to be looked at: `see` gives what is on screen at a time of the film."""

    def __init__(self, film: StoryFilm) -> None:
        self.film = film
        self._shots = list(film.starts())
        self._starts_s = [start_s for _, start_s in self._shots]

    @classmethod
    def of_script(cls, path: Path) -> Stage:
        """The film of a `.script.json` that `python -m tests.world.sample` wrote, written again from its seed."""
        script = json.loads(path.read_text(encoding="utf-8"))
        film = write_story(script["film"], script["duration_s"], script["seed"])
        return cls(shuffle_shots(film) if script["form"] == "shuffled" else film)

    def see(self, time_s: float) -> Sight:
        """The sight of the frame that is on screen at a time."""
        shot, start_s = self._shots[max(0, bisect_right(self._starts_s, time_s + 1e-3) - 1)]
        if shot.card is not None or shot.scene is None:
            return Sight(time_s, card=shot.card.word if shot.card else "")
        scene, view = self.film.scenes[shot.scene], shot.view
        now_s = round((shot.time[0] + time_s - start_s) * FPS) / FPS
        placed = [(track.prop, key) for track in scene.tracks if (key := position(track, now_s)) is not None]
        there = [
            (prop, key)
            for prop, key in placed
            if 0 < key.x - view.left < view.width and 0 < key.y - view.top < view.width and key.side > SMALLEST
        ]
        left, top, right, _ = landmark_box(scene.setting)
        shown = min(right, view.left + view.width) - max(left, view.left)
        has_landmark = shown > 0.4 * (right - left) and top < view.top + view.width
        actors = [(prop, key) for prop, key in there if prop.thing in ACTORS]
        items = [(prop, key) for prop, key in there if prop.thing in ITEMS and key.side <= ITEM_SIDE]
        held = ((prop.name, _holder(key, actors)) for prop, key in items)
        return Sight(
            time_s,
            setting=(scene.setting.place, scene.setting.night),
            wide=view.width > WIDE,
            landmark=scene.setting.landmark.name if has_landmark else "",
            sign=(scene.setting.sign or "") if text_box(scene.setting, view) else "",
            things=frozenset(prop.name for prop, _ in there),
            held=tuple((item, who) for item, who in held if who is not None),
        )


def _holder(item: Key, actors: Sequence[tuple[Prop, Key]]) -> Held | None:
    """The holder of an item: one a hand's breadth beside it, nobody if it stands on the ground, else two near it."""
    scale = item.side / ITEM_SIDE
    near = [prop.name for prop, key in actors if abs(abs(item.x - key.x) - HAND * scale) < 0.012]
    if scale > 0.97 and abs(item.y + item.side / 2 - 0.97) < 0.004:
        return GROUND
    if len(near) == 1:
        return near[0]
    close = sorted(prop.name for prop, key in actors if abs(item.x - key.x) < 0.2)
    return (close[0], close[1]) if len(close) == 2 else None


# Errors of eyes.


@dataclass(frozen=True, slots=True)
class Errors:
    """Rates at which a model errs; chances from 0 to 1. The same question and picture, or request, err alike."""

    miss: float = 0.0
    """Chance that a thing, a landmark, a sign or a card in a picture is not seen."""
    colour: float = 0.0
    """Chance that a thing is taken for one of another colour."""
    noise: float = 0.0
    """Standard deviation of a rating in points of 100; ratings then come in steps of five."""
    early: float = 0.0
    """Chance, at each decision, of an answer that what is seen does not settle."""
    reach_s: float = 60.0
    """The longest time between two sights from which it infers what happened in between."""


PERFECT = Errors()
ERRING = Errors(miss=0.15, colour=0.05, noise=15.0, early=0.05)


def seen_with_errors(sight: Sight, errors: Errors, chance: Random) -> Sight:
    """The part of a sight that eyes which err see."""
    if not errors.miss and not errors.colour:
        return sight
    taken: dict[str, str] = {"": ""}
    for name in sorted(sight.names):
        missed, confused = chance.random() < errors.miss, chance.random() < errors.colour
        colour, _, thing = name.partition(" ")
        if confused and colour in COLOUR_NAMES:
            colour = chance.choice([each for each in COLOUR_NAMES if each != colour])
        taken[name] = "" if missed else f"{colour} {thing}".strip()

    def whose(held: Held) -> Held | None:
        if isinstance(held, tuple):
            both = taken.get(held[0], ""), taken.get(held[1], "")
            return both if all(both) else None
        return held if held == GROUND else taken.get(held) or None

    held = ((taken[item], whose(who)) for item, who in sight.held if taken.get(item))
    return replace(
        sight,
        card=taken[sight.card],
        landmark=taken[sight.landmark],
        sign=taken[sight.sign],
        things=frozenset(taken[name] for name in sight.things) - {""},
        held=tuple((item, who) for item, who in held if who is not None),
    )


# Sights in words: "meadow by day; landmark red windmill; sign BAKERY 12; red cat holds white key; green dog".


def clauses(sight: Sight) -> Iterator[str]:
    """Say what a sight shows, clause by clause."""
    if sight.card:
        yield f"title card {sight.card}"
    if sight.setting is not None:
        yield f"{sight.setting[0]} by {'night' if sight.setting[1] else 'day'}"
    if sight.wide:
        yield "whole stage"
    if sight.landmark:
        yield f"landmark {sight.landmark}"
    if sight.sign:
        yield f"sign {sight.sign}"
    told = set()
    for item, who in sight.held:
        told |= {item, *(who if isinstance(who, tuple) else (who,))}
        yield (
            f"{item} between {who[0]} and {who[1]}"
            if isinstance(who, tuple)
            else f"{item} on {GROUND}"
            if who == GROUND
            else f"{who} holds {item}"
        )
    yield from sorted(sight.things - told)


def described(sight: Sight) -> str:
    """A sight in one line."""
    return "; ".join(clauses(sight)) or "nothing that has a name"


def told(sight: Sight, names: Iterable[str]) -> str:
    """The clauses of a sight about some names, with its time and place, as `read_times` reads them; "" if none."""
    place = "" if sight.setting is None else f"{sight.setting[0]} by {'night' if sight.setting[1] else 'day'}; "
    said = [clause for clause in clauses(sight) if any(name in clause for name in names)]
    return f"at {sight.time_s:g} s {place}{'; '.join(said)}" if said else ""


_NAME = rf"(?:{'|'.join(COLOUR_NAMES)}) (?:{'|'.join(sorted(THING_NAMES, key=len, reverse=True))})"
_PLACE = re.compile(rf"\b({'|'.join(PLACE_NAMES)}) by (day|night)\b")
_CARD, _SIGN = re.compile(r"title card ([A-Z]+)"), re.compile(r"sign ([A-Z]+ \d+)")
_LANDMARK = re.compile(rf"landmark ({_NAME})\b")
_HELD = re.compile(rf"({_NAME}) holds ({_NAME})|({_NAME}) on {GROUND}|({_NAME}) between ({_NAME}) and ({_NAME})")
_NAMES = re.compile(rf"\b{_NAME}\b")
_AT = re.compile(r"\bat (\d+(?:\.\d+)?) s ")


def read_sight(text: str, time_s: float, number: int = 0) -> Sight:
    """The sight that a text in words of `clauses` tells."""

    def first(pattern: re.Pattern[str]) -> str:
        return found[1] if (found := pattern.search(text)) else ""

    place = _PLACE.search(text)
    held: list[tuple[str, Held]] = []
    for actor, item, lying, passed, giver, taker in _HELD.findall(text):
        if item:
            held.append((item, actor))
        else:
            held.append((lying, GROUND) if lying else (passed, (giver, taker)))
    landmark = first(_LANDMARK)
    return Sight(
        time_s,
        first(_CARD),
        (place[1], place[2] == "night") if place else None,
        "whole stage" in text,
        landmark,
        first(_SIGN),
        frozenset(_NAMES.findall(text)) - {landmark},
        tuple(held),
        number,
    )


def read_times(text: str, number: int = 0) -> Iterator[Sight]:
    """The sights in a text that gives a time before each: "at 35 s red cat holds white key"."""
    pieces = _AT.split(text)
    for time_s, said in zip(pieces[1::2], pieces[2::2], strict=True):
        yield read_sight(said.partition("\n")[0], float(time_s), number)


def names_in(text: str) -> list[str]:
    """The things of a colour that a text names."""
    return list(dict.fromkeys(_NAMES.findall(text)))


# Lines that are spoken in stories, and what they say.

Fact = tuple[str, str, str]
"""Kind, subject and object of what a line says; "" where there is none."""
_FACTS: dict[str, str] = {
    "name": r"My name is (?P<a>\w+)\.|They call me (?P<b>\w+)\.|Hello, (?P<c>\w+) here, right on time",
    "plan": r"Next week (?P<a>\w+) is off to (?P<x>[^.]+)\.|(?P<b>\w+) has always meant to go to (?P<y>[^.]+), and",
    "reason": r"(?P<a>\w+) was late, because (?P<x>[^.]+)\.|You know why (?P<b>\w+) came late: (?P<y>[^.]+)\.",
    "code": r"for (?P<a>[^.]+) the code word is (?P<x>\w+)\.|wants to get into (?P<b>[^.]+) has to say (?P<y>\w+)\.",
    "purpose": r"we need it for (?P<x>[^.]+)\.|Keep it safe, it is for (?P<y>[^.]+)\.|It is yours until (?P<z>[^.]+)\.",
    "cue": rf"(?P<a>{'|'.join(CUES)})\.",
}


@dataclass(frozen=True, slots=True)
class Heard:
    """A quoted line in the range [start_s, end_s) under its number in a request, and what it says."""

    number: int
    start_s: float
    end_s: float
    facts: tuple[Fact, ...] = field(default=())


def facts_of(text: str) -> tuple[Fact, ...]:
    """The facts that spoken words tell."""
    found = []
    for kind, pattern in _FACTS.items():
        for match in re.finditer(pattern, text):
            said = {name: value or "" for name, value in match.groupdict().items()}
            subject = "".join(said.get(name, "") for name in "abc")
            found.append((kind, subject, "".join(said.get(name, "") for name in "xyz")))
    return tuple(found)
