"""Films of the sketch world that tell a story: places that last, things that come, go and change hands, talk, signs."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tests.world.sketch.places import draw_place
from tests.world.sketch.render import OnFrame, Pixels, encode_frames
from tests.world.sketch.scenes import (
    CARD_PAINTS,
    COLOUR_NAMES,
    PLACE_NAMES,
    TITLE_WORDS,
    TitleCard,
    draw_card,
    with_article,
)
from tests.world.sketch.script import FPS, HEIGHT_PX, WIDTH_PX, SpokenLine, subrip
from tests.world.sketch.things import FLYING, sprite

# The parts that the world's things play in a story, and the words that are written and spoken in one: `words.toml`.

WORDS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _words(name: str) -> tuple[str, ...]:
    return tuple(WORDS[name])


ACTORS, ITEMS, NAMES, SIGN_WORDS = map(_words, ("actors", "items", "names", "sign_words"))
GOALS, REASONS, GATES, CODE_WORDS = map(_words, ("goals", "reasons", "gates", "code_words"))
PURPOSES, CUES, CHATTER = map(_words, ("purposes", "cues", "chatter"))
PASSERS: Mapping[str, Sequence[str]] = WORDS["passers"]
LANDMARKS: Mapping[str, Sequence[str]] = WORDS["landmarks"]


@dataclass(frozen=True, slots=True)
class Prop:
    """A thing of one colour; in a film there is one of each."""

    thing: str
    colour: str

    @property
    def name(self) -> str:
        return f"{self.colour} {self.thing}"


class Pool:
    """Things, words and names of one film, each handed out once."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self._used: set[Prop] = set()
        self._words: dict[Sequence[str], list[str]] = {}

    def prop(self, things: Sequence[str]) -> Prop | None:
        left = [prop for prop in product(things, COLOUR_NAMES) if Prop(*prop) not in self._used]
        if not left:
            return None
        found = Prop(*self.chance.choice(left))
        self._used.add(found)
        return found

    def word(self, words: Sequence[str]) -> str | None:
        if words not in self._words:
            self._words[words] = self.chance.sample(words, len(words))
        return self._words[words].pop() if self._words[words] else None


# A story film before it is drawn: its places, things in motion, events, shots and lines.
#
# Times called `story` run in the order of the story, in seconds; a shot shows a stretch of story time, so that shots in
# another order make another film of the same content. Times are whole frames at `FPS`.

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Key:
    """The place of a thing at a time: its middle as fractions of the stage, its side as a fraction of the height."""

    time_s: float
    x: float
    y: float
    side: float


@dataclass(frozen=True, slots=True)
class Track:
    """A thing on stage from its first key to its last, in a straight line from each to the next."""

    prop: Prop
    keys: tuple[Key, ...]
    mirrored: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """A place in one light with a landmark, and a sign beside it or none; it looks the same at each visit."""

    place: str
    night: bool
    landmark: Prop
    landmark_x: float
    sign: str | None
    sign_x: float
    seed: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens during a story range.

    Kinds: "enter" and "return" (`what` is carried in), "leave", "give" (`what`, to `other`), "put" (`what` down),
    "take" (`what`, which `other` had put down), "pass". `moment` is the part that must be seen to know it, which no cut
    interrupts. `back_at_s` is the start of the return from a leave, if there is one in the scene.
    """

    kind: str
    who: Prop
    time: Range
    moment: Range
    what: Prop | None = None
    other: Prop | None = None
    cue: str | None = None
    back_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A spoken line during a story range. `fact` is what a question can ask about it: kind, subject, object."""

    time: Range
    text: str
    speaker: str
    fact: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class StoryScene:
    setting: Setting
    time: Range
    tracks: tuple[Track, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class View:
    """The part of the stage that a camera shows: left and top edge, and width (and height) as a fraction."""

    left: float = 0.0
    top: float = 0.0
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class StoryShot:
    """A stretch of story frames on screen: of a scene (its number) in a view, or a title card."""

    first_frame: int
    frames: int
    scene: int | None = None
    view: View = View()
    card: TitleCard | None = None

    @property
    def time(self) -> Range:
        return self.first_frame / FPS, (self.first_frame + self.frames) / FPS


@dataclass(frozen=True, slots=True)
class StoryFilm:
    """A film: its shots in the order of the screen, scenes in that of the story, and names of those in it."""

    film: str
    seed: int
    form: str
    shots: tuple[StoryShot, ...]
    scenes: tuple[StoryScene, ...]
    lines: tuple[Line, ...]
    names: dict[Prop, str]

    @property
    def duration_s(self) -> float:
        return sum(shot.frames for shot in self.shots) / FPS

    def starts(self) -> Iterator[tuple[StoryShot, float]]:
        frame = 0
        for shot in self.shots:
            yield shot, frame / FPS
            frame += shot.frames

    def on_screen(self, story: Range) -> list[Range]:
        """Return the ranges of the film that show a story range, in order, joined where they meet."""
        pieces: list[Range] = []
        for shot, start_s in self.starts():
            low, high = max(story[0], shot.time[0]), min(story[1], shot.time[1])
            if low >= high:
                continue
            piece = (round(start_s + low - shot.time[0], 6), round(start_s + high - shot.time[0], 6))
            if pieces and abs(pieces[-1][1] - piece[0]) < 1e-5:
                piece = (pieces.pop()[0], piece[1])
            pieces.append(piece)
        return pieces

    def events(self) -> Iterator[tuple[Event, StoryScene]]:
        for scene in self.scenes:
            for event in scene.events:
                yield event, scene


def whole_frames(time_s: float) -> float:
    return round(time_s * FPS) / FPS


# Write a story film: its settings and cast, its scenes one after another, its title cards, shots and lines.

SHORTEST_STORY_S = 30.0
SCENE_S = (80.0, 210.0)
LEAST_SCENE_S = 24.0
CARD_S = (3.0, 4.0)
SECONDS_PER_ACTOR = 110.0


def write_story(film: str, duration_s: float, seed: int) -> StoryFilm:
    """Write a film of `duration_s` seconds (whole frames, at least 30 s), the same for the same arguments."""
    chance = Random(f"story/{film}/{seed}")
    total = max(SHORTEST_STORY_S, whole_frames(duration_s))
    pool = Pool(chance)
    number = max(4, min(len(NAMES), round(total / SECONDS_PER_ACTOR)))
    cast = [actor for _ in range(number) if (actor := pool.prop(ACTORS))]
    world = World(pool, chance, dict(zip(cast, chance.sample(NAMES, len(cast)), strict=True)))
    shots: list[StoryShot] = []
    scenes: list[StoryScene] = []
    lines: list[Line] = []
    settings: list[Setting] = []
    now = 0.0
    while now < total - 1 / FPS:
        now = _card(shots, now, pool, chance)
        end = _scene_end(now, total, chance)
        settings.append(_setting(settings, pool, chance))
        scene, writing = play_scene(settings[-1], _company(cast, scenes, chance), now, end, world)
        shots += cut_scene(len(scenes), scene, writing.guards, chance)
        scenes.append(scene)
        lines += writing.lines
        now = end
    lines += free_lines(shots, scenes, lines, world.names, pool, chance)
    spoken = tuple(sorted(lines, key=lambda line: line.time))
    return StoryFilm(film, seed, "story", tuple(shots), tuple(scenes), spoken, world.names)


def _card(shots: list[StoryShot], now: float, pool: Pool, chance: Random) -> float:
    word = pool.word(TITLE_WORDS)
    if word is None:
        return now
    frames = round(chance.uniform(*CARD_S) * FPS)
    shots.append(StoryShot(round(now * FPS), frames, card=TitleCard(word, *chance.choice(CARD_PAINTS))))
    return now + frames / FPS


def _scene_end(now: float, total: float, chance: Random) -> float:
    length = chance.uniform(*SCENE_S)
    length = min(length, max(LEAST_SCENE_S, total / 3 * chance.uniform(0.8, 1.1)))
    left = total - now
    least = max(LEAST_SCENE_S, length / 2)
    return total if left < length + least + CARD_S[1] else whole_frames(now + length)


def _setting(before: list[Setting], pool: Pool, chance: Random) -> Setting:
    """Choose where a scene is: one time in three where one was before, but not the last, as it looked then."""
    earlier = [setting for setting in before if setting != before[-1]]
    place = chance.choice([name for name in PLACE_NAMES if not before or name != before[-1].place])
    again = bool(earlier) and chance.random() < 0.35
    landmark = None if again else pool.prop(LANDMARKS[place])
    if landmark is None:
        return chance.choice(earlier)
    word = pool.word(SIGN_WORDS) if chance.random() < 0.8 else None
    landmark_x = chance.choice((0.2, 0.3, 0.7, 0.8))
    toward_middle = 1 if landmark_x < 0.5 else -1
    sign_x = landmark_x + toward_middle * (0.14 + SIGN_WIDTH / 2)
    sign = None if word is None else f"{word} {chance.randint(2, 98)}"
    return Setting(place, chance.random() < 0.35, landmark, landmark_x, sign, sign_x, chance.randrange(10**6))


def _company(cast: list[Prop], scenes: list[StoryScene], chance: Random) -> list[Prop]:
    """Choose who may come into a scene: one who was in the last scene, the others by chance, in random order."""
    last = [event.who for event in scenes[-1].events if event.who in cast] if scenes else []
    kept = [chance.choice(last)] if last else []
    others = chance.sample([actor for actor in cast if actor not in kept], min(len(cast) - 1, chance.randint(3, 4)))
    company = [*kept, *others]
    chance.shuffle(company)
    return company


# The geometry of the stage, and the tracks of things that move on it.
#
# The stage is as wide as 16:9; `x` runs from 0 to 1, `distance` from 0 (at the front) to 1 (at the horizon).

ASPECT = 16 / 9
SLOTS = (0.16, 0.385, 0.615, 0.84)
"""Where actors stand."""
ACTOR_SIDE = {"elephant": 0.42, "horse": 0.4, "person": 0.4, "cat": 0.31, "rabbit": 0.31, "duck": 0.29}
SIDE, ITEM_SIDE, PASSER_SIDE, SMALL_SIDE = 0.36, 0.18, 0.34, 0.2
SMALL_PASSERS = frozenset({"bird", "butterfly", "snail", "turtle", "spider", "snake"})
FACING_LEFT = frozenset({"dog", "horse", "elephant", "snail", "turtle", "duck", "car", "helicopter"})
HAND = 0.1
"""The distance of a held item from an actor's middle, in widths of the stage."""
LANDMARK_SIDE, LANDMARK_FEET = 0.44, 0.72
FEET, HORIZON = 0.95, 0.6
PASSING = 0.3
"""The distance at which things pass: behind the actors, in front of the landmark."""


def scale(distance: float) -> float:
    return 1 - 0.88 * distance


def feet(distance: float) -> float:
    return FEET - (FEET - HORIZON) * distance


def actor_key(prop: Prop, time_s: float, x: float, distance: float) -> Key:
    side = ACTOR_SIDE.get(prop.thing, SIDE) * scale(distance)
    return Key(time_s, x, feet(distance) - side / 2, side)


def passer_key(prop: Prop, time_s: float, x: float, distance: float) -> Key:
    side = (SMALL_SIDE if prop.thing in SMALL_PASSERS else PASSER_SIDE) * scale(distance) / scale(PASSING)
    if prop.thing in FLYING:
        return Key(time_s, x, 0.15 + 0.25 * max(0.0, distance - PASSING), side * 0.8)
    return Key(time_s, x, feet(distance) - side / 2, side)


def item_key(time_s: float, x: float, distance: float, *, held: bool) -> Key:
    side = ITEM_SIDE * scale(distance)
    lift = 0.07 * scale(distance) if held else 0.0
    return Key(time_s, x, feet(distance) + 0.02 - lift - side / 2, side)


class Stage:
    """Things on stage while a scene is written: where each is, who holds what, and the tracks so far."""

    def __init__(self) -> None:
        self.tracks: list[Track] = []
        self.at: dict[Prop, tuple[float, float]] = {}
        self.slot: dict[Prop, int] = {}
        self.held: dict[Prop, Prop] = {}
        self.put_by: dict[Prop, Prop] = {}
        self._side: dict[Prop, int] = {}
        self._keys: dict[Prop, list[Key]] = {}
        self._mirrored: dict[Prop, bool] = {}

    def enter(self, actor: Prop, time_s: float, x: float, distance: float, item: Prop | None, toward: float) -> None:
        self.at[actor] = (x, distance)
        self._side[actor] = 1 if toward >= x else -1
        self._mirrored[actor] = (toward < x) != (actor.thing in FACING_LEFT)
        self._keys[actor] = []
        if item is not None:
            self.held[actor] = item
            self._keys[item] = []
        self._mark(actor, time_s)

    def move(self, actor: Prop, start_s: float, end_s: float, x: float, distance: float = 0.0) -> None:
        self._mark(actor, start_s)
        self.at[actor] = (x, distance)
        self._mark(actor, end_s)

    def exit(self, actor: Prop, time_s: float) -> Prop | None:
        self._mark(actor, time_s)
        self._close(actor)
        item = self.held.pop(actor, None)
        if item is not None:
            self._close(item)
        del self.at[actor]
        self.slot.pop(actor, None)
        return item

    def hand_over(self, giver: Prop, taker: Prop, start_s: float, end_s: float) -> Prop:
        item = self.held.pop(giver)
        self._mark_item(item, giver, start_s)
        giver_x, taker_x = self.at[giver][0], self.at[taker][0]
        self._side[taker] = -1 if giver_x >= taker_x else 1  # away from the giver, so that it is seen who has it
        self.held[taker] = item
        self._mark_item(item, taker, end_s)
        return item

    def put_down(self, actor: Prop, start_s: float, end_s: float, x: float) -> Prop:
        item = self.held.pop(actor)
        self._mark_item(item, actor, start_s)
        self._keys[item].append(item_key(end_s, x, 0.0, held=False))
        self.put_by[item] = actor
        self.at[item] = (x, 0.0)
        return item

    def pick_up(self, actor: Prop, item: Prop, start_s: float, end_s: float) -> None:
        x, _ = self.at.pop(item)
        self._keys[item].append(item_key(start_s, x, 0.0, held=False))
        self._side[actor] = 1 if x >= self.at[actor][0] else -1
        self.held[actor] = item
        del self.put_by[item]
        self._mark_item(item, actor, end_s)

    def close(self, time_s: float) -> dict[Prop, Prop]:
        """End the scene; returns what each actor on stage holds."""
        for actor in list(self.at):
            if actor in self.put_by:
                self._keys[actor].append(item_key(time_s, self.at[actor][0], 0.0, held=False))
                self._close(actor)
            else:
                self._mark(actor, time_s)
        held = dict(self.held)
        for actor in [each for each in self.at if each not in self.put_by]:
            self.exit(actor, time_s)
        return held

    def _mark(self, actor: Prop, time_s: float) -> None:
        x, distance = self.at[actor]
        self._keys[actor].append(actor_key(actor, whole_frames(time_s), x, distance))
        if actor in self.held:
            self._mark_item(self.held[actor], actor, time_s)

    def _mark_item(self, item: Prop, actor: Prop, time_s: float) -> None:
        x, distance = self.at[actor]
        x += self._side[actor] * HAND * scale(distance)
        self._keys[item].append(item_key(whole_frames(time_s), x, distance, held=True))

    def _close(self, prop: Prop) -> None:
        keys = sorted(self._keys.pop(prop), key=lambda key: key.time_s)
        self.tracks.append(Track(prop, tuple(keys), self._mirrored.get(prop, False)))


def position(track: Track, time_s: float) -> Key | None:
    keys = track.keys
    if not keys[0].time_s <= time_s < keys[-1].time_s:
        return None
    after = next(number for number, key in enumerate(keys) if key.time_s > time_s)
    left, right = keys[after - 1], keys[after]
    share = (time_s - left.time_s) / (right.time_s - left.time_s)
    mixed = [
        low + (high - low) * share for low, high in ((left.x, right.x), (left.y, right.y), (left.side, right.side))
    ]
    return Key(time_s, *mixed)


# Acts of a scene: each moves things on the stage, notes its event, and guards from cuts what must be seen.

ALONGSIDE = 0.18
"""The distance from another at which an actor stops to hand something over."""
LINE_S = 2.75


@dataclass(slots=True)
class Writing:
    """A scene while it is written: the stage, what happened so far, and from when on each thing is free again."""

    setting: Setting
    stage: Stage
    chance: Random
    events: list[Event] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    guards: list[Range] = field(default_factory=list)
    busy: dict[Prop, float] = field(default_factory=dict)
    gone: dict[Prop, float] = field(default_factory=dict)
    carried_off: dict[Prop, Prop | None] = field(default_factory=dict)

    def note(self, event: Event, *, guard: Range | None = None) -> None:
        self.events.append(event)
        self.guards.append(guard or event.moment)

    def free_slot(self) -> int | None:
        taken = set(self.stage.slot.values())
        free = [slot for slot in range(len(SLOTS)) if slot not in taken]
        return self.chance.choice(free) if free else None


def enter(writing: Writing, actor: Prop, slot: int, item: Prop | None, now: float, *, again: bool = False) -> float:
    """Let an actor come to a slot, from an edge or from far away, small at first; returns when it is there."""
    chance, stage, x = writing.chance, writing.stage, SLOTS[slot]
    stage.slot[actor] = slot
    start = whole_frames(now)
    if chance.random() < 0.45:
        far_x = x + chance.choice((-1, 1)) * chance.uniform(0.1, 0.2)
        end = whole_frames(start + chance.uniform(6.0, 9.0))
        stage.enter(actor, start, far_x, 1.0, item, x)
    else:
        edge = -0.14 if x < 0.5 else 1.14
        end = whole_frames(start + chance.uniform(2.5, 4.0))
        stage.enter(actor, start, edge, 0.0, item, x)
    stage.move(actor, start, end, x)
    writing.busy[actor] = end
    moment = (end - 1.0, end + 0.75)
    writing.note(Event("return" if again else "enter", actor, (start, end), moment, item))
    if again:
        _mark_return(writing, actor, start)
    return end


def _mark_return(writing: Writing, actor: Prop, start: float) -> None:
    """Note in the leave of an actor when it comes back."""
    for number in reversed(range(len(writing.events))):
        event = writing.events[number]
        if event.kind == "leave" and event.who == actor:
            writing.events[number] = replace(event, back_at_s=whole_frames(start))
            return


def leave(writing: Writing, actor: Prop, now: float) -> float:
    chance, stage = writing.chance, writing.stage
    x, _ = stage.at[actor]
    start = whole_frames(now)
    if chance.random() < 0.35:
        end = whole_frames(start + chance.uniform(5.0, 7.0))
        stage.move(actor, start, end, x + chance.choice((-0.12, 0.12)), 1.0)
    else:
        end = whole_frames(start + chance.uniform(2.5, 4.0))
        stage.move(actor, start, end, -0.14 if x < 0.5 else 1.14)
    writing.carried_off[actor] = stage.exit(actor, end)
    writing.gone[actor] = end
    writing.note(Event("leave", actor, (start, end), (start, start + 1.5), writing.carried_off[actor]))
    return end


def give(writing: Writing, giver: Prop, taker: Prop, now: float, words: Line | None) -> float:
    """Let one actor walk to another, hand over what it holds while `words` are said, and walk back; till when."""
    stage = writing.stage
    giver_x, taker_x = stage.at[giver][0], stage.at[taker][0]
    beside = taker_x + (ALONGSIDE if giver_x > taker_x else -ALONGSIDE)
    start = whole_frames(now)
    there = whole_frames(start + 0.8 + 2.4 * abs(beside - giver_x))
    handed = whole_frames(there + 1.75)
    stage.move(giver, start, there, beside)
    item = stage.hand_over(giver, taker, there + 0.75, handed)
    end = whole_frames(handed + 1.5 + 2.4 * abs(beside - giver_x))
    stage.move(giver, handed + 0.75, end, giver_x)
    writing.busy[giver] = writing.busy[taker] = end
    moment = (there - 0.5, handed + 1.5)
    if words is not None:
        spoken = (whole_frames(there), whole_frames(there + LINE_S))
        writing.lines.append(Line(spoken, words.text, words.speaker, words.fact))
    writing.note(Event("give", giver, (start, end), moment, item, taker))
    return end


def put(writing: Writing, actor: Prop, now: float) -> float:
    stage = writing.stage
    start = whole_frames(now)
    end = whole_frames(start + 1.25)
    x = stage.at[actor][0]
    item = stage.put_down(actor, start, end, x)
    stage.slot[item] = stage.slot[actor]
    writing.note(Event("put", actor, (start - 0.75, end + 0.75), (start - 0.75, end + 0.75), item))
    return leave(writing, actor, end + 1.0)


def take(writing: Writing, actor: Prop, item: Prop, now: float) -> float:
    stage = writing.stage
    item_x, putter = stage.at[item][0], stage.put_by[item]
    slot = stage.slot.pop(item)
    x, start = stage.at[actor][0], whole_frames(now)
    beside = item_x + (0.1 if x > item_x else -0.1)
    there = whole_frames(start + 0.8 + 2.4 * abs(beside - x))
    end = whole_frames(there + 1.25)
    stage.move(actor, start, there, beside)
    stage.pick_up(actor, item, there + 0.5, end)
    stage.slot[actor] = slot
    writing.busy[actor] = whole_frames(end + 1.0)
    writing.note(Event("take", actor, (start, end), (there - 0.5, end + 1.0), item, putter))
    return end + 1.0


def pass_by(writing: Writing, passer: Prop, now: float, cue: Line | None) -> float:
    """Let a thing go past, behind those who stand there: from the horizon, small at first, or from edge to edge."""
    chance = writing.chance
    start = whole_frames(now)
    if cue is not None:
        spoken = (start, whole_frames(start + LINE_S))
        writing.lines.append(Line(spoken, cue.text, cue.speaker, cue.fact))
        start = spoken[1]
    goes_right = chance.random() < 0.5
    edge = 1.16 if goes_right else -0.16
    if chance.random() < 0.5:
        near = whole_frames(start + chance.uniform(4.0, 6.0))
        end = whole_frames(near + chance.uniform(3.0, 4.0))
        x = chance.uniform(0.3, 0.7)
        keys = [(start, x, 1.0), (near, x + (0.1 if goes_right else -0.1), PASSING + 0.1), (end, edge, PASSING)]
        sight = (near - 0.5, end)
    else:
        end = whole_frames(start + chance.uniform(4.5, 7.0))
        keys = [(start, 1 - edge, PASSING), (end, edge, PASSING)]
        sight = (start + 0.75, end - 0.5)
    mirrored = goes_right == (passer.thing in FACING_LEFT)
    path = tuple(passer_key(passer, time_s, x, distance) for time_s, x, distance in keys)
    writing.stage.tracks.append(Track(passer, path, mirrored))
    said = cue.fact[1] if cue is not None and cue.fact is not None else None
    guard = (start - LINE_S - 0.25 if cue is not None else sight[0], sight[1])
    writing.note(Event("pass", passer, (start, end), sight, cue=said), guard=guard)
    return end


# The shots of a scene: where cuts fall and what part of the stage each shows.
#
# Cuts fall anywhere but into what must be seen in one piece, so most movements begin in one shot and end in the next.

SHOT_S = (5.0, 12.0)
SHORTEST_S = 3.5
CLOSEST = 0.58
"""The least part of the stage's width that a shot shows."""
SIGN_WIDTH, SIGN_TOP, SIGN_BOTTOM = 0.21, 0.3, 0.43
Box = tuple[float, float, float, float]
"""Left, top, right and bottom, as fractions."""


def cut_scene(number: int, scene: StoryScene, guards: Sequence[Range], chance: Random) -> list[StoryShot]:
    first, last = (round(time_s * FPS) for time_s in scene.time)
    walls = [(math.floor(low * FPS), math.ceil(high * FPS)) for low, high in guards]
    cuts = [first]
    while last - cuts[-1] > (SHOT_S[0] + SHORTEST_S) * FPS:
        cut = _clear_of(cuts[-1] + round(chance.uniform(*SHOT_S) * FPS), walls)
        if last - cut < SHORTEST_S * FPS:
            break
        cuts.append(cut)
    cuts.append(last)
    return [
        StoryShot(start, end - start, number, _view(scene, start / FPS, end / FPS, chance))
        for start, end in pairwise(cuts)
    ]


def _clear_of(frame: int, walls: Sequence[tuple[int, int]]) -> int:
    for low, high in sorted(walls):
        if low < frame < high:
            frame = high
    return frame


def sign_box(setting: Setting) -> Box | None:
    if setting.sign is None:
        return None
    return (setting.sign_x - SIGN_WIDTH / 2, SIGN_TOP, setting.sign_x + SIGN_WIDTH / 2, SIGN_BOTTOM)


def landmark_box(setting: Setting) -> Box:
    half = LANDMARK_SIDE / ASPECT / 2
    x = setting.landmark_x
    return (x - half, LANDMARK_FEET - LANDMARK_SIDE, x + half, LANDMARK_FEET)


def in_view(box: Box, view: View) -> Box | None:
    left, top, right, bottom = (
        (value - low) / view.width for value, low in zip(box, (view.left, view.top) * 2, strict=True)
    )
    return (left, top, right, bottom) if min(left, top) >= 0 and max(right, bottom) <= 1 else None


def _view(scene: StoryScene, start_s: float, end_s: float, chance: Random) -> View:
    """Frame a shot: the whole stage, all who are there from near, or, if nothing happens, the sign or one of them."""
    boxes = _boxes(scene, start_s, end_s)
    still = not any(event.time[0] < end_s and event.time[1] > start_s for event in scene.events)
    board = sign_box(scene.setting)
    roll = chance.random()
    if still and board is not None and roll < 0.5:
        return _frame([board, landmark_box(scene.setting)])
    if still and boxes and roll < 0.8:
        return _frame([chance.choice(boxes)])
    return View() if roll < 0.45 or not boxes else _frame(boxes)


def _boxes(scene: StoryScene, start_s: float, end_s: float) -> list[Box]:
    boxes: list[Box] = []
    for step in range(math.ceil((end_s - start_s) * 2) + 1):
        time_s = min(start_s + step / 2, end_s - 1 / FPS)
        for track in scene.tracks:
            key = position(track, time_s)
            if key is not None:
                half = key.side / ASPECT / 2
                boxes.append((key.x - half, key.y - key.side / 2, key.x + half, key.y + key.side / 2))
    return boxes


def _frame(boxes: Sequence[Box]) -> View:
    """Find the smallest view, not closer than `CLOSEST`, that holds all boxes with a margin."""
    left, top = max(0.0, min(box[0] for box in boxes) - 0.03), max(0.0, min(box[1] for box in boxes) - 0.06)
    right, bottom = min(1.0, max(box[2] for box in boxes) + 0.03), min(1.0, max(box[3] for box in boxes) + 0.04)
    width = min(1.0, max(CLOSEST, right - left, bottom - top))
    middle = (left + right) / 2
    low = min(max(0.0, middle - width / 2), 1 - width)
    return View(round(low, 4), round(min(max(0.0, bottom - width), 1 - width), 4), round(width, 4))


# Draw a story film frame by frame and encode it, streaming.

Placed = tuple[Prop, bool, int, int, int]
"""A thing, mirrored or not, its left and top edge and its side in pixels of the frame."""
BOARD, INK, POST = (246, 240, 222), (28, 28, 34), (96, 70, 48)


def render_story(film: StoryFilm, path: Path, on_frame: OnFrame = lambda number: None, every: int = 1) -> None:
    encode_frames(draw_frames(film, every), path, on_frame, every)


def draw_frames(film: StoryFilm, every: int = 1) -> Iterator[Pixels]:
    """Draw the frames of a film in order, all or one in `every` of its story: uint8 [height, width, 3]."""
    for shot in film.shots:
        first = -(-shot.first_frame // every) * every
        frames = range(first, shot.first_frame + shot.frames, every)
        if shot.card is not None:
            still = np.asarray(draw_card(shot.card, WIDTH_PX, HEIGHT_PX))
            yield from (still for _ in frames)
        elif shot.scene is not None:
            yield from _shot_frames(film.scenes[shot.scene], shot, frames)


def _shot_frames(scene: StoryScene, shot: StoryShot, frames: range) -> Iterator[Pixels]:
    """Draw a shot; where nothing has moved the frame before is shown again."""
    ground = draw_setting(scene.setting, shot.view)
    before: list[Placed] | None = None
    picture: Pixels = np.asarray(ground)
    for frame in frames:
        placed = _placed(scene, frame / FPS, shot.view)
        if placed != before:
            picture, before = _compose(ground, placed, night=scene.setting.night), placed
        yield picture


def _placed(scene: StoryScene, time_s: float, view: View) -> list[Placed]:
    """Place everything on stage in the frame, the farthest first and small things before those who hold them."""
    found: list[tuple[bool, float, Placed]] = []
    for track in scene.tracks:
        key = position(track, time_s)
        if key is None:
            continue
        side = max(3, round(key.side / view.width * HEIGHT_PX))
        left = round((key.x - view.left) / view.width * WIDTH_PX - side / 2)
        top = round((key.y - view.top) / view.width * HEIGHT_PX - side / 2)
        item = key.side <= ITEM_SIDE
        found.append((item, key.y + key.side / 2, (track.prop, track.mirrored, left, top, side)))
    return [placed for _, _, placed in sorted(found, key=lambda each: each[:2])]


def _compose(ground: Image.Image, placed: list[Placed], *, night: bool) -> Pixels:
    canvas = ground.copy()
    for prop, mirrored, left, top, side in placed:
        picture = _sprite(prop, side, night, mirrored)
        canvas.paste(picture, (left, top), picture)
    return np.asarray(canvas)


@lru_cache(maxsize=512)
def _sprite(prop: Prop, side_px: int, night: bool, mirrored: bool) -> Image.Image:
    return sprite(prop.thing, prop.colour, side_px, night=night, mirrored=mirrored)


def draw_setting(setting: Setting, view: View) -> Image.Image:
    """Draw an empty setting, its landmark and sign, as a view shows it."""
    width, height = round(WIDTH_PX / view.width), round(HEIGHT_PX / view.width)
    stage = draw_place(setting.place, setting.night, width, height, Random(setting.seed))
    left, top, _, bottom = landmark_box(setting)
    picture = _sprite(setting.landmark, round((bottom - top) * height), setting.night, False)
    stage.paste(picture, (round(left * width), round(top * height)), picture)
    _draw_sign(stage, setting)
    corner = (round(view.left * width), round(view.top * height))
    return stage.crop((*corner, corner[0] + WIDTH_PX, corner[1] + HEIGHT_PX))


def _draw_sign(stage: Image.Image, setting: Setting) -> None:
    box = sign_box(setting)
    if box is None or setting.sign is None:
        return
    left, top, right, bottom = (round(each * side) for each, side in zip(box, stage.size * 2, strict=True))
    pen, middle = ImageDraw.Draw(stage), (left + right) // 2
    post = max(2, stage.width // 110)
    pen.rectangle((middle - post // 2, bottom, middle + post // 2, round(0.72 * stage.height)), fill=POST)
    pen.rounded_rectangle((left, top, right, bottom), radius=post, fill=BOARD, outline=INK, width=max(1, post // 3))
    font = _font(setting.sign, round((right - left) * 0.88), round((bottom - top) * 0.62))
    pen.text((middle, (top + bottom) // 2), setting.sign, fill=INK, font=font, anchor="mm")


@lru_cache(maxsize=256)
def _font(text: str, width_px: int, height_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    size = height_px
    while size > 6 and ImageFont.load_default(size).getlength(text) > width_px:
        size -= 1
    return ImageFont.load_default(size)


def text_box(setting: Setting, view: View) -> tuple[float, float, float, float] | None:
    """Compute the box of a sign's board in the frame, as fractions; None where it is not wholly in view."""
    box = sign_box(setting)
    return None if box is None else in_view(box, view)


# The plot of one scene: who is there, what they do and in which order, from chance and from the scenes before.

ON_STAGE = 3
SHORTEST_ACT_S = 5.0
CUED_PASS_S = 13.0


@dataclass(slots=True)
class World:
    """State that lasts from scene to scene: the pool of words and things, names, and the thing each actor carries."""

    pool: Pool
    chance: Random
    names: dict[Prop, str]
    introduced: set[Prop] = field(default_factory=set)
    carries: dict[Prop, Prop] = field(default_factory=dict)
    passers: dict[str, list[Prop]] = field(default_factory=dict)

    def item_for(self, actor: Prop, share: float) -> Prop | None:
        """Find what an actor brings: what it had when last seen, a new thing for a share of the others, or nothing."""
        if actor in self.carries:
            return self.carries.pop(actor)
        return self.pool.prop(ITEMS) if self.chance.random() < share else None

    def passer(self, place: str) -> Prop:
        """Choose a thing to pass: a new one, or one that has passed in such a place before.

        A film of two hours may have used up all things of a place before it comes there: then one of another place.
        """
        known = self.passers.setdefault(place, [])
        new = None if known and self.chance.random() < 0.35 else self.pool.prop(PASSERS[place])
        if new is None:
            return self.chance.choice(known or [each for others in self.passers.values() for each in others])
        known.append(new)
        return new


def play_scene(
    setting: Setting, cast: list[Prop], start_s: float, end_s: float, world: World
) -> tuple[StoryScene, Writing]:
    """Play a scene from its first actor's entry to its end; `cast` are those who may come, the first one first."""
    writing = Writing(setting, Stage(), world.chance)
    now = _open(writing, cast[0], start_s + 1.0, world)
    waiting = list(cast[1:])
    while now < end_s - SHORTEST_ACT_S:
        act = _choose(writing, waiting, now, end_s - now - 0.5, world)
        now = (now if act is None else act()) + world.chance.uniform(0.75, 3.5)
    world.carries.update(writing.stage.close(end_s))
    world.carries.update({actor: item for actor, item in writing.carried_off.items() if item and actor in writing.gone})
    scene = StoryScene(setting, (start_s, end_s), tuple(writing.stage.tracks), tuple(writing.events))
    return scene, writing


def _open(writing: Writing, actor: Prop, now: float, world: World) -> float:
    """Let the first actor come on the empty stage, and have its name said if it has not been yet."""
    slot = writing.free_slot()
    assert slot is not None, "the stage is empty"
    there = enter(writing, actor, slot, world.item_for(actor, 0.6), now)
    if actor in world.introduced:
        return there
    world.introduced.add(actor)
    said = (whole_frames(there + 0.25), whole_frames(there + 0.25 + LINE_S))
    words = name_line(world.names[actor], actor, world.chance)
    writing.lines.append(Line(said, words.text, words.speaker, words.fact))
    writing.guards.append((there - 1.0, said[1] + 0.25))
    writing.busy[actor] = said[1] + 0.25
    return said[1] + 0.25


Act = Callable[[], float]


def _choose(writing: Writing, waiting: list[Prop], now: float, left_s: float, world: World) -> Act | None:
    """Choose among the acts that are possible now and end within `left_s`, each by its weight; None if there is none.

    Each option is its weight, the longest that it takes in seconds, and the act.
    """
    stage, chance = writing.stage, world.chance
    here = [actor for actor in stage.at if actor not in stage.put_by and writing.busy.get(actor, 0.0) <= now]
    full = [actor for actor in here if actor in stage.held]
    empty = [actor for actor in here if actor not in stage.held]
    room = sum(actor not in stage.put_by for actor in stage.at) < ON_STAGE and writing.free_slot() is not None
    back = [actor for actor, since in writing.gone.items() if since + 3.0 <= now]
    options: list[tuple[float, float, Act]] = [(1.6, 10.0, lambda: _pass(writing, now, left_s, world))]
    if waiting and room:
        options.append((3.0, 9.0, lambda: _come(writing, waiting.pop(0), now, world)))
    if back and room:
        options.append((2.5, 9.0, lambda: _come_back(writing, chance.choice(back), now, world)))
    if pairs := _pairs(writing, full, empty):
        options.append((4.0, 8.0, lambda: _give(writing, *chance.choice(pairs), now, world)))
    if full and not stage.put_by and (len(here) > 1 or waiting):
        options.append((0.8, 10.0, lambda: put(writing, chance.choice(full), now)))
    if empty and stage.put_by:
        options.append((3.0, 5.5, lambda: take(writing, chance.choice(empty), next(iter(stage.put_by)), now)))
    if len(here) > 1:
        options.append((1.2, 7.0, lambda: leave(writing, chance.choice(here), now)))
    possible = [(weight, act) for weight, seconds, act in options if seconds <= left_s]
    if not possible:
        return None
    return chance.choices([act for _, act in possible], [weight for weight, _ in possible])[0]


def _pairs(writing: Writing, full: list[Prop], empty: list[Prop]) -> list[tuple[Prop, Prop]]:
    """List who could give what it holds to whom: not back to the one it was got from."""
    last_giver = {event.what: event.who for event in writing.events if event.kind == "give"}
    return [(giver, taker) for giver in full for taker in empty if last_giver.get(writing.stage.held[giver]) != taker]


def _pass(writing: Writing, now: float, left_s: float, world: World) -> float:
    has_cue = left_s >= CUED_PASS_S and world.chance.random() < 0.3
    cue = cue_line(world.pool, world.names, world.chance) if has_cue else None
    end = pass_by(writing, world.passer(writing.setting.place), now, cue)
    return end if cue is not None or world.chance.random() < 0.5 else (now + end) / 2


def _come(writing: Writing, actor: Prop, now: float, world: World) -> float:
    slot = writing.free_slot()
    assert slot is not None, "an actor comes only where there is room"
    end = enter(writing, actor, slot, world.item_for(actor, 0.35), now)
    return end if world.chance.random() < 0.5 else (now + end) / 2


def _come_back(writing: Writing, actor: Prop, now: float, world: World) -> float:
    slot = writing.free_slot()
    assert slot is not None, "an actor comes back only where there is room"
    del writing.gone[actor]
    item = writing.carried_off.pop(actor)
    if item is None:
        item = world.item_for(actor, 0.6)
    return enter(writing, actor, slot, item, now, again=True)


def _give(writing: Writing, giver: Prop, taker: Prop, now: float, world: World) -> float:
    words = gift_line(world.pool, world.names[giver], world.chance) if world.chance.random() < 0.55 else None
    return give(writing, giver, taker, now, words)


def as_json(film: StoryFilm) -> dict[str, Any]:
    """Convert a film to plain data; times are those of the screen, in seconds, in the film's own order of shots."""
    return {
        "film": film.film,
        "seed": film.seed,
        "form": film.form,
        "width_px": WIDTH_PX,
        "height_px": HEIGHT_PX,
        "fps": FPS,
        "duration_s": film.duration_s,
        "scenes": [
            {"scene": number, "ranges": _ranges(film.on_screen(scene.time)), **_setting_json(scene.setting)}
            for number, scene in enumerate(film.scenes)
        ],
        "shots": _shots_json(film),
        "events": [_event_json(film, event, scene) for event, scene in film.events()],
        "texts": texts_on_screen(film),
        "spoken": [_line_json(film, index) for index in _spoken_order(film)],
        "names": {name: actor.name for actor, name in film.names.items()},
    }


def subtitles(film: StoryFilm) -> str:
    lines = [(*film.on_screen(film.lines[index].time)[0], film.lines[index].text) for index in _spoken_order(film)]
    return subrip([SpokenLine(*line) for line in lines])


def texts_on_screen(film: StoryFilm) -> list[dict[str, Any]]:
    """List the texts on screen in the order of time: title cards, and signs while wholly in view.

    `box` is left, top, right and bottom of the sign's board as fractions of the frame, None for a card, whose word is
    in the middle. Shots that follow each other and show a text in the same box are one row.
    """
    rows: list[dict[str, Any]] = []
    for shot, start_s in film.starts():
        end_s = start_s + shot.frames / FPS
        if shot.card is not None:
            rows.append({"text": shot.card.word, "kind": "title", **_times(start_s, end_s), "box": None})
        elif shot.scene is not None:
            setting = film.scenes[shot.scene].setting
            box = text_box(setting, shot.view)
            if box is None:
                continue
            row = {"text": setting.sign, "kind": "sign", **_times(start_s, end_s), "box": [round(x, 4) for x in box]}
            last = rows[-1] if rows else None
            if last and all(last[key] == row[key] for key in ("text", "box")) and last["end_s"] == row["start_s"]:
                last["end_s"] = row["end_s"]
            else:
                rows.append(row)
    return rows


def _times(start_s: float, end_s: float) -> dict[str, float]:
    return {"start_s": round(start_s, 4), "end_s": round(end_s, 4)}


def _ranges(ranges: list[Range]) -> list[list[float]]:
    return [[round(low, 4), round(high, 4)] for low, high in ranges]


def _setting_json(setting: Setting) -> dict[str, Any]:
    return {"place": setting.place, "night": setting.night, "landmark": setting.landmark.name, "sign": setting.sign}


def _shots_json(film: StoryFilm) -> list[dict[str, Any]]:
    rows = []
    for shot, start_s in film.starts():
        row: dict[str, Any] = {**_times(start_s, start_s + shot.frames / FPS), "story_start_s": round(shot.time[0], 4)}
        if shot.card is not None:
            rows.append({**row, "title_card": shot.card.word})
        elif shot.scene is not None:
            view = [shot.view.left, shot.view.top, shot.view.width]
            rows.append({**row, "scene": shot.scene, "view": view, **_setting_json(film.scenes[shot.scene].setting)})
    return rows


def _event_json(film: StoryFilm, event: Event, scene: StoryScene) -> dict[str, Any]:
    ranges, back_s = film.on_screen(event.time), event.back_at_s
    return {
        "kind": event.kind,
        "who": event.who.name,
        "what": event.what.name if event.what else None,
        "other": event.other.name if event.other else None,
        "scene": film.scenes.index(scene),
        "start_s": round(ranges[0][0], 4),
        "end_s": round(ranges[-1][1], 4),
        "ranges": _ranges(ranges),
        "moment": _ranges(film.on_screen(event.moment)),
        "back_at_s": None if back_s is None else round(film.on_screen((back_s, back_s + 1 / FPS))[0][0], 4),
    }


def _spoken_order(film: StoryFilm) -> list[int]:
    return sorted(range(len(film.lines)), key=lambda index: film.on_screen(film.lines[index].time)[0])


def _line_json(film: StoryFilm, index: int) -> dict[str, Any]:
    line = film.lines[index]
    (start_s, end_s), *_ = film.on_screen(line.time)
    return {**_times(start_s, end_s), "text": line.text, "speaker": line.speaker}


def shuffle_shots(film: StoryFilm) -> StoryFilm:
    """Return the film with its shots shuffled; the same film gives the same order."""
    chance = Random(f"shuffled/{film.film}/{film.seed}")
    return replace(film, shots=tuple(chance.sample(film.shots, len(film.shots))), form="shuffled")


# Spoken lines: mostly of what no picture shows (names, plans, reasons, code words), sometimes of what one does.
#
# Lines bound to an act are made here and timed by it; free lines are put where nobody speaks.

UNTIMED: Range = (0.0, 0.0)
SHARE_OF_SHOTS = 0.55
"""The share of shots in which a free line is spoken, where there is time."""


def name_line(name: str, actor: Prop, chance: Random) -> Line:
    """Write the line in which an actor, alone on stage, says its name and nothing of its looks."""
    text = chance.choice(("Good to see you. My name is {}.", "They call me {}.", "Hello, {} here, right on time."))
    return Line(UNTIMED, text.format(name), name, ("name", name, actor.name))


def gift_line(pool: Pool, giver: str, chance: Random) -> Line | None:
    """Write what is said at a handover: what the thing, which is not named, is for."""
    purpose = pool.word(PURPOSES)
    if purpose is None:
        return None
    text = chance.choice(("Take this, we need it for {}.", "Keep it safe, it is for {}.", "It is yours until {}."))
    return Line(UNTIMED, text.format(purpose), giver, ("purpose", "", purpose))


def cue_line(pool: Pool, names: Mapping[Prop, str], chance: Random) -> Line | None:
    """Write a line that comes right before something passes, and does not name it."""
    cue = pool.word(CUES)
    if cue is None:
        return None
    return Line(UNTIMED, f"{cue}.", chance.choice(list(names.values())), ("cue", cue, ""))


def free_lines(
    shots: Sequence[StoryShot],
    scenes: Sequence[StoryScene],
    spoken: Sequence[Line],
    names: Mapping[Prop, str],
    pool: Pool,
    chance: Random,
) -> list[Line]:
    lines: list[Line] = []
    used: set[str] = set()
    for shot in shots:
        start, end = shot.time
        free = _gap(start, end, [line.time for line in spoken])
        if shot.scene is not None and free is not None and chance.random() < SHARE_OF_SHOTS:
            speaker = chance.choice(list(names.values()))
            begin = whole_frames(chance.uniform(free[0], free[1] - LINE_S - 0.5))
            landmark = scenes[shot.scene].setting.landmark
            text, fact = _free_text(landmark, names, used, pool, chance)
            lines.append(Line((begin, whole_frames(begin + LINE_S)), text, speaker, fact))
    return lines


def _gap(start: float, end: float, spoken: Sequence[Range]) -> Range | None:
    """Find the longest stretch of a shot in which nobody speaks, if a line fits."""
    inside = sorted(each for each in spoken if each[0] < end and each[1] > start)
    borders = [start, *(time_s for each in inside for time_s in each), end]
    gaps = [(low + 0.25, high) for low, high in zip(borders[::2], borders[1::2], strict=True)]
    low, high = max(gaps, key=lambda gap: gap[1] - gap[0])
    return (low, high) if high - low > LINE_S + 1.0 else None


def _free_text(
    landmark: Prop, names: Mapping[Prop, str], used: set[str], pool: Pool, chance: Random
) -> tuple[str, tuple[str, str, str] | None]:
    """Write a plan, a reason, a code word, a thing that no picture shows, the landmark that one shows, or idle talk."""
    kind = chance.choice(("plan", "reason", "code", "unseen", "shown", "chatter"))
    name = chance.choice(list(names.values()))
    if kind == "plan" and f"plan {name}" not in used and (goal := pool.word(GOALS)):
        used.add(f"plan {name}")
        text = chance.choice(("Next week {} is off to {}.", "{} has always meant to go to {}, and soon it will be."))
        return text.format(name, goal), ("plan", name, goal)
    if kind == "reason" and f"reason {name}" not in used and (reason := pool.word(REASONS)):
        used.add(f"reason {name}")
        text = chance.choice(("{} was late, because {}.", "You know why {} came late: {}."))
        return text.format(name, reason), ("reason", name, reason)
    if kind == "code" and (gate := pool.word(GATES)) and (word := pool.word(CODE_WORDS)):
        text = chance.choice(("Remember, for {} the code word is {}.", "Whoever wants to get into {} has to say {}."))
        return text.format(gate, word), ("code", gate, word)
    if kind == "unseen" and (thing := pool.prop(ITEMS)):
        return f"I used to have {with_article(thing.name)}, long ago.", None
    if kind == "shown":
        return f"Whose is the {landmark.name} back there, anyway?", None
    return chance.choice(CHATTER), None
