"""Spoken lines: of what no picture shows, each fact once, where there is time."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from kinodex.sketch.story import (
    CUES,
    PURPOSES,
    Line,
    Pool,
    Prop,
    Setting,
    StoryScene,
    StoryShot,
    cue_line,
    free_lines,
    gift_line,
    name_line,
)

CAT = Prop("cat", "red")
NAMES = {CAT: "Mara", Prop("dog", "blue"): "Otto"}
HOUSE = Prop("house", "green")
SCENE = StoryScene(Setting("city", False, HOUSE, 0.3, None, 0.5, 1), (0.0, 600.0), (), ())


def test_lines_bound_to_acts_name_no_thing() -> None:
    pool, chance = Pool(Random(1)), Random(1)
    lines = [gift_line(pool, "Mara", chance) for _ in PURPOSES] + [cue_line(pool, NAMES, chance) for _ in CUES]
    texts = [line.text for line in lines if line is not None]
    assert len(texts) == len(set(texts)) == len(PURPOSES) + len(CUES)
    assert gift_line(pool, "Mara", chance) is None and cue_line(pool, NAMES, chance) is None
    named = name_line("Mara", CAT, chance)
    assert "Mara" in named.text and "cat" not in named.text


def test_free_lines_do_not_interrupt_and_say_each_fact_once() -> None:
    shots = [StoryShot(number * 120, 120, 0) for number in range(60)]
    spoken = [Line((3.0, 5.75), "Stay where you are.", "Otto")]
    lines = free_lines(shots, [SCENE], spoken, NAMES, Pool(Random(2)), Random(2))
    times = sorted(line.time for line in [*lines, *spoken])
    assert all(first[1] <= second[0] for first, second in pairwise(times))
    assert all(any(shot.time[0] <= line.time[0] and line.time[1] <= shot.time[1] for shot in shots) for line in lines)
    facts = [line.fact for line in lines if line.fact is not None]
    assert len({fact[:2] for fact in facts}) == len({fact[2] for fact in facts}) == len(facts) > 5
    assert any(HOUSE.name in line.text for line in lines), "some name what is shown"
