"""Things on stage: who holds what, and where each is at a time."""

from __future__ import annotations

from kinodex.sketch.story import FEET, HAND, Prop, Stage, Track, actor_key, item_key, passer_key, position

CAT, DOG, KEY = Prop("cat", "red"), Prop("dog", "blue"), Prop("key", "white")


def on(stage: Stage, prop: Prop, time_s: float) -> float | None:
    """The x of a thing at a time."""
    found = [key for track in stage.tracks if track.prop == prop and (key := position(track, time_s))]
    assert len(found) < 2
    return found[0].x if found else None


def test_an_item_goes_with_its_holder_and_changes_hands() -> None:
    stage = Stage()
    stage.enter(CAT, 0.0, 0.0, 0.0, KEY, 0.4)
    stage.move(CAT, 0.0, 4.0, 0.4)
    stage.enter(DOG, 0.0, 1.0, 0.0, None, 0.6)
    stage.move(DOG, 0.0, 4.0, 0.6)
    assert stage.hand_over(CAT, DOG, 5.0, 6.0) == KEY
    assert stage.held == {DOG: KEY}
    stage.move(DOG, 7.0, 9.0, 0.8)
    assert stage.close(10.0) == {DOG: KEY}
    assert on(stage, CAT, 2.0) == 0.2 and on(stage, KEY, 2.0) == 0.2 + HAND
    held = on(stage, KEY, 9.5)
    assert held is not None and abs(held - (0.8 + HAND)) < 1e-9, "held away from the giver"
    assert on(stage, CAT, 10.0) is None


def test_an_item_stays_where_it_is_put_until_somebody_picks_it_up() -> None:
    stage = Stage()
    stage.enter(CAT, 0.0, 0.5, 0.0, KEY, 0.6)
    stage.put_down(CAT, 1.0, 2.0, 0.5)
    assert stage.exit(CAT, 3.0) is None and stage.put_by == {KEY: CAT}
    stage.enter(DOG, 4.0, 0.6, 0.0, None, 0.5)
    stage.pick_up(DOG, KEY, 5.0, 6.0)
    assert stage.close(8.0) == {DOG: KEY}
    assert on(stage, KEY, 4.0) == 0.5 and stage.put_by == {}


def test_what_is_far_away_is_small_and_high() -> None:
    near, far = actor_key(CAT, 0.0, 0.5, 0.0), actor_key(CAT, 0.0, 0.5, 1.0)
    assert far.side < near.side / 5 and far.y < near.y
    assert abs(near.y + near.side / 2 - FEET) < 1e-9
    plane, car = passer_key(Prop("plane", "red"), 0.0, 0.5, 0.3), passer_key(Prop("car", "red"), 0.0, 0.5, 0.3)
    assert plane.y < 0.3 < car.y
    assert item_key(0.0, 0.5, 0.0, held=True).y < item_key(0.0, 0.5, 0.0, held=False).y


def test_positions_are_between_keys() -> None:
    track = Track(CAT, (actor_key(CAT, 1.0, 0.0, 0.0), actor_key(CAT, 3.0, 1.0, 0.0)))
    assert position(track, 0.9) is None and position(track, 3.0) is None
    middle = position(track, 2.0)
    assert middle is not None and (middle.x, middle.time_s) == (0.5, 2.0)
