"""The plot of one scene: who is there, what they do and in which order, from chance and from the scenes before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from jobs.synthetic.story.acts import LINE_S, Writing, enter, give, leave, pass_by, put, take
from jobs.synthetic.story.casting import ITEMS, PASSERS, Pool, Prop
from jobs.synthetic.story.film import Line, Setting, StoryScene, whole_frames
from jobs.synthetic.story.stage import Stage
from jobs.synthetic.story.talk import cue_line, gift_line, name_line

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
        """Choose a thing to pass: a new one, or one that has passed in such a place before."""
        known = self.passers.setdefault(place, [])
        new = None if known and self.chance.random() < 0.35 else self.pool.prop(PASSERS[place])
        if new is None:
            return self.chance.choice(known)
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
