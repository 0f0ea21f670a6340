"""Tracks against truth: boxes made by hand, and the sketch world, whose things move as its scripts say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kinodex.pipeline.models.detector import Box, Detection, box_ious, find_tracks
from kinodex.sketch.scenes import Scene, lay_out
from kinodex.sketch.script import FPS, HEIGHT_PX, WIDTH_PX, Script, _shift, write_script


def square(x: float, y: float = 0.5, side: float = 0.2) -> Box:
    return x - side / 2, y - side / 2, x + side / 2, y + side / 2


def seen(label: str, *box: float) -> Detection:
    return Detection(label, 0.9, square(*box))


def test_things_that_pass_each_other_keep_their_tracks():
    places = [(0.1 + 0.1 * step, 0.9 - 0.1 * step) for step in range(9)]
    frames = [[seen("car", right, 0.45), seen("car", left, 0.55)] for right, left in places]
    assert find_tracks(frames, [float(n) for n in range(9)]) == [[0, 1]] * 9


def test_a_fast_thing_is_met_where_it_is_going():
    """From the third frame on its boxes do not touch the ones before; standing still it would be lost."""
    xs = [0.1, 0.2, 0.45, 0.7]
    times_s = [0.0, 1.0, 3.5, 6.0]
    frames = [[seen("ball", x)] for x in xs]
    assert all(not box_ious([square(a)], [square(b)]).any() for a, b in pairwise(xs[1:]))
    assert find_tracks(frames, times_s) == [[0]] * 4


def test_the_best_sum_of_overlaps_wins_over_the_best_single_one():
    """Greedily, the first thing would take the box between both and leave the other without one."""
    before = [seen("cat", 0.30), seen("cat", 0.42)]
    now = [seen("cat", 0.36), seen("cat", 0.22)]
    assert find_tracks([before, now], [0.0, 1.0]) == [[0, 1], [1, 0]]


@pytest.mark.parametrize(("missed", "again"), [(2, 0), (3, 1)])
def test_a_track_outlives_two_missed_frames(missed: int, again: int):
    frames = [[seen("cat", 0.5)], *([[]] * missed), [seen("cat", 0.5)]]
    numbers = find_tracks(frames, [float(n) for n in range(len(frames))])
    assert numbers == [[0], *([[]] * missed), [again]]


def test_labels_do_not_mix_and_cuts_end_tracks():
    frames = [[seen("cat", 0.5)], [seen("dog", 0.5)], [seen("dog", 0.5)], [seen("dog", 0.5)]]
    assert find_tracks(frames, [0.0, 1.0, 2.0, 3.0]) == [[0], [1], [1], [1]]
    assert find_tracks(frames, [0.0, 1.0, 2.0, 3.0], cuts_s=[0.0, 3.0]) == [[0], [1], [1], [2]]


def test_nothing_seen():
    assert find_tracks([], []) == []
    assert find_tracks([[], []], [0.0, 1.0]) == [[], []]


def true_things(script: Script, time_s: float) -> list[tuple[tuple[int, int], Detection]]:
    """Everything on screen, each with what it is: its shot and its place in it."""
    frame = round(time_s * FPS)
    number, shot = next((n, s) for n, s in enumerate(script.shots) if s.first_frame <= frame < s.first_frame + s.frames)
    if not isinstance(shot.scene, Scene):
        return []
    dx, dy = _shift(shot, frame - shot.first_frame)
    things = [group.thing for group in shot.scene.groups for _ in range(group.count)]
    items = lay_out(shot.scene, WIDTH_PX, HEIGHT_PX)
    return [
        ((number, place), Detection(thing, 0.9, box_of(item.x + dx, item.y + dy, item.picture.size)))
        for place, (thing, item) in enumerate(zip(things, items, strict=True))
    ]


def box_of(x: float, y: float, size_px: tuple[int, int]) -> Box:
    half = size_px[0] / WIDTH_PX / 2, size_px[1] / HEIGHT_PX / 2
    return x - half[0], y - half[1], x + half[0], y + half[1]


@pytest.mark.parametrize("step_s", [0.5, 1.0, 2.0])
def test_every_thing_of_sketch_films_has_one_track_of_its_own(step_s: float):
    """Ten minutes of film, with detections missed by chance and given in any order."""
    chance = np.random.default_rng(7)
    script = write_script("film", 600.0, seed=5)
    times_s = [float(t) for t in np.arange(0.0, script.duration_s, step_s)]
    truth = [true_things(script, time_s) for time_s in times_s]
    truth = [[each for each in things if chance.random() > 0.02] for things in truth]
    truth = [[things[place] for place in chance.permutation(len(things))] for things in truth]
    frames = [[detection for _, detection in things] for things in truth]
    numbers = find_tracks(frames, times_s, cuts_s=[shot.start_s for shot in script.shots])
    pairs = {
        (identity, number)
        for things, given in zip(truth, numbers, strict=True)
        for (identity, _), number in zip(things, given, strict=True)
    }
    identities = {identity for identity, _ in pairs}
    assert len(identities) > 60
    assert len({number for _, number in pairs}) >= len(pairs) - 2, "a track went over to another thing"
    assert len(pairs) - len(identities) <= 2, "a thing has several tracks"
