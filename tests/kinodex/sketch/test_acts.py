"""Acts: what each changes on the stage, and the event that it notes."""

from __future__ import annotations

from random import Random

import pytest

from kinodex.sketch.story import Line, Prop, Setting, Stage, Writing, enter, give, leave, pass_by, put, take

CAT, DOG, KEY, BUS = Prop("cat", "red"), Prop("dog", "blue"), Prop("key", "white"), Prop("bus", "green")
WORDS = Line((0.0, 0.0), "It is for the choir.", "Mara", ("purpose", "", "the choir"))
CUE = Line((0.0, 0.0), "Any moment now.", "Mara", ("cue", "Any moment now", ""))


@pytest.fixture
def writing() -> Writing:
    setting = Setting("city", False, Prop("house", "red"), 0.3, None, 0.5, 1)
    return Writing(setting, Stage(), Random(3))


def test_a_thing_is_given_left_and_taken(writing: Writing) -> None:
    now = enter(writing, DOG, 3, None, enter(writing, CAT, 0, KEY, 1.0))
    now = give(writing, CAT, DOG, now + 1, WORDS)
    assert writing.stage.held == {DOG: KEY}
    now = put(writing, DOG, now + 1)
    assert writing.stage.held == {} and DOG not in writing.stage.at
    now = take(writing, CAT, KEY, now + 1)
    assert writing.stage.held == {CAT: KEY}
    assert writing.stage.close(now + 1) == {CAT: KEY}
    told = [(event.kind, event.who, event.what, event.other) for event in writing.events]
    assert told == [
        ("enter", CAT, KEY, None),
        ("enter", DOG, None, None),
        ("give", CAT, KEY, DOG),
        ("put", DOG, KEY, None),
        ("leave", DOG, None, None),
        ("take", CAT, KEY, DOG),
    ]
    gift = writing.events[2]
    (line,) = writing.lines
    assert gift.moment[0] < line.time[0] < gift.moment[1] and line.text == WORDS.text
    assert all(event.time[0] <= event.moment[0] < event.moment[1] for event in writing.events)


def test_who_leaves_and_returns_was_away_from_the_end_of_the_one_to_the_start_of_the_other(writing: Writing) -> None:
    now = enter(writing, CAT, 0, KEY, 1.0)
    gone = leave(writing, CAT, now)
    assert writing.carried_off == {CAT: KEY}
    enter(writing, CAT, 1, KEY, gone + 5, again=True)
    _, left, back = writing.events
    assert (left.kind, back.kind) == ("leave", "return")
    assert left.back_at_s == back.time[0] >= gone + 4.9


@pytest.mark.parametrize("seed", range(6))
def test_a_cue_is_spoken_right_before_something_passes(writing: Writing, seed: int) -> None:
    writing.chance = Random(seed)
    end = pass_by(writing, BUS, 2.0, CUE)
    (line,), (event,), (guard,) = writing.lines, writing.events, writing.guards
    assert line.time[1] == event.time[0] < event.moment[0] < event.moment[1] <= end
    assert guard[0] < line.time[0] and guard[1] >= event.moment[1], "words and picture are in one shot"
    assert event.cue == "Any moment now"
