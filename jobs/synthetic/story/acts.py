"""Acts of a scene: each moves things on the stage, notes its event, and guards from cuts what must be seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from jobs.synthetic.story.casting import Prop
from jobs.synthetic.story.film import Event, Line, Range, Setting, Track, whole_frames
from jobs.synthetic.story.stage import FACING_LEFT, PASSING, SLOTS, Stage, passer_key

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
        """Keep an event; no cut falls into its guard (its moment, if none is given)."""
        self.events.append(event)
        self.guards.append(guard or event.moment)

    def free_slot(self) -> int | None:
        """Choose a slot where nobody stands and nothing lies."""
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
            writing.events[number] = Event(
                event.kind, actor, event.time, event.moment, event.what, back_at_s=whole_frames(start)
            )
            return


def leave(writing: Writing, actor: Prop, now: float) -> float:
    """Let an actor go off, by the nearer edge or into the distance; returns when it is gone."""
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
    """Let one actor walk to another, hand over what it holds, and walk back; returns when it is back.

    `words` are spoken meanwhile; their range is shifted to the moment.
    """
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
    """Let an actor put down what it holds, and go off."""
    stage = writing.stage
    start = whole_frames(now)
    end = whole_frames(start + 1.25)
    x = stage.at[actor][0]
    item = stage.put_down(actor, start, end, x)
    stage.slot[item] = stage.slot[actor]
    writing.note(Event("put", actor, (start - 0.75, end + 0.75), (start - 0.75, end + 0.75), item))
    return leave(writing, actor, end + 1.0)


def take(writing: Writing, actor: Prop, item: Prop, now: float) -> float:
    """Let an actor walk to an item on the ground and pick it up; it stays there."""
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
