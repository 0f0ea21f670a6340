"""The geometry of the stage, and the tracks of things that move on it.

The stage is as wide as 16:9; `x` runs from 0 to 1, `distance` from 0 (at the front) to 1 (at the horizon).
"""

from __future__ import annotations

from jobs.synthetic.story.casting import Prop
from jobs.synthetic.story.film import Key, Track, whole_frames
from jobs.synthetic.world.sprites import FLYING

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
    """The size of a thing at a distance, as a fraction of that at the front."""
    return 1 - 0.88 * distance


def feet(distance: float) -> float:
    """The height of the ground at a distance."""
    return FEET - (FEET - HORIZON) * distance


def actor_key(prop: Prop, time_s: float, x: float, distance: float) -> Key:
    """Place an actor on the ground."""
    side = ACTOR_SIDE.get(prop.thing, SIDE) * scale(distance)
    return Key(time_s, x, feet(distance) - side / 2, side)


def passer_key(prop: Prop, time_s: float, x: float, distance: float) -> Key:
    """Place a thing that passes: on the ground, or in the sky if it flies."""
    side = (SMALL_SIDE if prop.thing in SMALL_PASSERS else PASSER_SIDE) * scale(distance) / scale(PASSING)
    if prop.thing in FLYING:
        return Key(time_s, x, 0.15 + 0.25 * max(0.0, distance - PASSING), side * 0.8)
    return Key(time_s, x, feet(distance) - side / 2, side)


def item_key(time_s: float, x: float, distance: float, *, held: bool) -> Key:
    """Place an item: held before an actor's body, or standing on the ground."""
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
        """Let an actor come on stage at a place, carrying an item or nothing, facing the x that it goes to."""
        self.at[actor] = (x, distance)
        self._side[actor] = 1 if toward >= x else -1
        self._mirrored[actor] = (toward < x) != (actor.thing in FACING_LEFT)
        self._keys[actor] = []
        if item is not None:
            self.held[actor] = item
            self._keys[item] = []
        self._mark(actor, time_s)

    def move(self, actor: Prop, start_s: float, end_s: float, x: float, distance: float = 0.0) -> None:
        """Let an actor go to a place, with what it carries."""
        self._mark(actor, start_s)
        self.at[actor] = (x, distance)
        self._mark(actor, end_s)

    def exit(self, actor: Prop, time_s: float) -> Prop | None:
        """Take an actor off the stage, with its item, which is returned."""
        self._mark(actor, time_s)
        self._close(actor)
        item = self.held.pop(actor, None)
        if item is not None:
            self._close(item)
        del self.at[actor]
        self.slot.pop(actor, None)
        return item

    def hand_over(self, giver: Prop, taker: Prop, start_s: float, end_s: float) -> Prop:
        """Move the giver's item into the taker's hands."""
        item = self.held.pop(giver)
        self._mark_item(item, giver, start_s)
        giver_x, taker_x = self.at[giver][0], self.at[taker][0]
        self._side[taker] = -1 if giver_x >= taker_x else 1  # away from the giver, so that it is seen who has it
        self.held[taker] = item
        self._mark_item(item, taker, end_s)
        return item

    def put_down(self, actor: Prop, start_s: float, end_s: float, x: float) -> Prop:
        """Let an actor set its item on the ground."""
        item = self.held.pop(actor)
        self._mark_item(item, actor, start_s)
        self._keys[item].append(item_key(end_s, x, 0.0, held=False))
        self.put_by[item] = actor
        self.at[item] = (x, 0.0)
        return item

    def pick_up(self, actor: Prop, item: Prop, start_s: float, end_s: float) -> None:
        """Let an actor take an item from the ground."""
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
    """Find where a track's thing is at a time; None while it is not there."""
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
