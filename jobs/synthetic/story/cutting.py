"""The shots of a scene: where cuts fall and what part of the stage each shows.

Cuts fall anywhere but into what must be seen in one piece, so most movements begin in one shot and end in the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from jobs.synthetic.story.film import Range, Setting, StoryScene, StoryShot, View
from jobs.synthetic.story.stage import ASPECT, LANDMARK_FEET, LANDMARK_SIDE, position
from jobs.synthetic.world.script import FPS

SHOT_S = (5.0, 12.0)
SHORTEST_S = 3.5
CLOSEST = 0.58
"""The least part of the stage's width that a shot shows."""
SIGN_WIDTH, SIGN_TOP, SIGN_BOTTOM = 0.21, 0.3, 0.43
Box = tuple[float, float, float, float]
"""Left, top, right and bottom, as fractions."""


def cut_scene(number: int, scene: StoryScene, guards: Sequence[Range], chance: Random) -> list[StoryShot]:
    """Cut a scene into shots of about `SHOT_S` seconds."""
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
    """Move a cut forward until no wall holds it."""
    for low, high in sorted(walls):
        if low < frame < high:
            frame = high
    return frame


def sign_box(setting: Setting) -> Box | None:
    """Compute the box of the sign's board on the stage, None without a sign."""
    if setting.sign is None:
        return None
    return (setting.sign_x - SIGN_WIDTH / 2, SIGN_TOP, setting.sign_x + SIGN_WIDTH / 2, SIGN_BOTTOM)


def landmark_box(setting: Setting) -> Box:
    """Compute the box of the landmark on the stage."""
    half = LANDMARK_SIDE / ASPECT / 2
    x = setting.landmark_x
    return (x - half, LANDMARK_FEET - LANDMARK_SIDE, x + half, LANDMARK_FEET)


def in_view(box: Box, view: View) -> Box | None:
    """Compute a box of the stage in a view, None if the view does not hold all of it."""
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
    """List the boxes of everything on stage during a shot, at every half second."""
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
