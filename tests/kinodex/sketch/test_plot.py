"""The plot of a scene: things happen that can happen, until its end."""

from __future__ import annotations

from random import Random

import pytest

from kinodex.sketch.story import ACTORS, Event, Pool, Prop, Setting, World, play_scene

SETTING = Setting("city", False, Prop("house", "red"), 0.3, None, 0.5, 1)


def world(seed: int) -> tuple[World, list[Prop]]:
    chance = Random(seed)
    pool = Pool(chance)
    cast = [actor for _ in range(4) if (actor := pool.prop(ACTORS))]
    return World(pool, chance, {actor: f"Name {number}" for number, actor in enumerate(cast)}), cast


@pytest.mark.parametrize("seed", range(5))
def test_a_scene_keeps_the_rules_of_its_stage(seed: int) -> None:
    state, cast = world(seed)
    scene, writing = play_scene(SETTING, cast, 10.0, 190.0, state)
    assert len(scene.events) > 8
    assert all(10.0 <= event.time[0] < event.time[1] <= 190.0 for event in scene.events)
    assert all(10.0 <= key.time_s <= 190.0 for track in scene.tracks for key in track.keys)
    there: set[Prop] = set()
    held: dict[Prop, Prop | None] = {}
    for event in scene.events:
        _play(event, there, held)
        assert len(there) <= 3
    assert state.carries == {actor: item for actor, item in held.items() if item is not None}
    assert writing.lines[0].fact is not None and writing.lines[0].fact[:2] == ("name", state.names[cast[0]])


def _play(event: Event, there: set[Prop], held: dict[Prop, Prop | None]) -> None:
    """Act an event out on a list of who is there and what each holds, and check that it could happen."""
    if event.kind in ("enter", "return"):
        assert event.who not in there
        there.add(event.who)
        held[event.who] = event.what
    elif event.kind == "pass":
        assert event.who not in there
    else:
        assert event.who in there
    if event.kind == "give":
        assert event.other is not None and held[event.who] == event.what and held[event.other] is None
        held[event.who], held[event.other] = None, event.what
    elif event.kind == "put":
        assert held.pop(event.who) == event.what
        held[event.who] = None
    elif event.kind == "take":
        assert held[event.who] is None
        held[event.who] = event.what
    elif event.kind == "leave":
        there.remove(event.who)


def test_what_is_carried_off_is_carried_when_its_holder_comes_again() -> None:
    state, cast = world(1)
    state.carries[cast[0]] = Prop("key", "white")
    scene, _ = play_scene(SETTING, cast, 0.0, 40.0, state)
    assert scene.events[0].what == Prop("key", "white")
