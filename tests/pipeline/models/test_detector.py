"""Detections by local models, boxes in fractions of the picture, and tracks of them against truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kinodex.pipeline.errors import WrongModel
from kinodex.pipeline.models.boxes import Box, Detection
from kinodex.pipeline.models.detector import load_detector
from kinodex.pipeline.models.tracks import find_tracks
from tests.support.models import stage_models as stage_kit
from tests.world.sketch.render import _shift
from tests.world.sketch.scenes import Scene, lay_out
from tests.world.sketch.script import FPS, HEIGHT_PX, WIDTH_PX, Script, write_script

LABELS = ("cat", "red kite")


CASES: dict[str, tuple[Callable[[Path], Path], tuple[str, ...], float]] = {
    "rt_detr": (stage_kit.rt_detr, (), 0.1),
    "owlv2": (stage_kit.owlv2, LABELS, 0.02),
    "grounding_dino": (stage_kit.grounding_dino, LABELS, 0.02),
}


def picture(width_px: int, height_px: int, seed: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 255, (height_px, width_px, 3), dtype=np.uint8))


WIDE, TALL = picture(96, 54, 1), picture(54, 96, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_boxes_are_inside_and_best_comes_first_above_the_least_score(tiny_model, name):
    _, labels, min_score = CASES[name]
    detector = load_detector(str(tiny_model(name)), labels, min_score, "cpu")
    for found in detector.detect([WIDE, picture(96, 54, 3)]):
        assert {each.label for each in found} <= set(labels or ("boat", "kite", "cat"))
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
        assert min_score <= scores[-1] <= scores[0] <= 1
        assert all(0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1 for x0, y0, x1, y1 in (each.box for each in found))
    assert detector.detect([]) == []
    some = detector.detect([WIDE])[0]
    middle = some[len(some) // 2].score - 1e-6
    fewer = load_detector(str(tiny_model(name)), labels, middle, "cpu").detect([WIDE])[0]
    assert [each.box for each in fewer] == [each.box for each in some if each.score >= middle]


@pytest.mark.parametrize("shape", [(96, 54), (54, 96)])
def test_boxes_are_the_models_own_as_fractions(tiny_model, shape):
    """OWLv2 sees each picture in the corner of a square, so its raw boxes are fractions of that square."""
    import torch

    seen = picture(shape[0], shape[1], 4)
    detector = load_detector(str(tiny_model("owlv2")), LABELS, 0.02, "cpu")
    loaded = detector._loaded
    batch = loaded.processor(images=[seen], text=[list(LABELS)], return_tensors="pt")
    with torch.inference_mode():
        raw = loaded.model(**batch)
    best = int(raw.logits[0].amax(-1).argmax())
    middle_x, middle_y, width, height = raw.pred_boxes[0, best].tolist()
    longest = max(shape)
    corners = [middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2]
    expected = [min(max(c * longest / side, 0), 1) for c, side in zip(corners, shape * 2, strict=True)]
    assert detector.detect([seen])[0][0].box == pytest.approx(tuple(expected), abs=1e-4)


def test_words_and_models_must_fit(tiny_model):
    with pytest.raises(WrongModel, match="no model for AutoModelForZeroShotObjectDetection"):
        load_detector(str(tiny_model("rt_detr")), LABELS, device="cpu")
    with pytest.raises(WrongModel, match="no model for AutoModelForObjectDetection"):
        load_detector(str(tiny_model("owlv2")), (), device="cpu")


def square(x: float, y: float = 0.5, side: float = 0.2) -> Box:
    return x - side / 2, y - side / 2, x + side / 2, y + side / 2


def seen(label: str, *box: float) -> Detection:
    return Detection(label, 0.9, square(*box))


def test_a_track_outlives_two_missed_frames_and_no_cut_and_has_one_label():
    for missed, again in ((2, 0), (3, 1)):
        frames = [[seen("cat", 0.5)], *([[]] * missed), [seen("cat", 0.5)]]
        numbers = find_tracks(frames, [float(n) for n in range(len(frames))])
        assert numbers == [[0], *([[]] * missed), [again]]
    frames = [[seen("cat", 0.5)], [seen("dog", 0.5)], [seen("dog", 0.5)], [seen("dog", 0.5)]]
    assert find_tracks(frames, [0.0, 1.0, 2.0, 3.0]) == [[0], [1], [1], [1]]
    assert find_tracks(frames, [0.0, 1.0, 2.0, 3.0], cuts_s=[0.0, 3.0]) == [[0], [1], [1], [2]]
    assert find_tracks([], []) == [] and find_tracks([[], []], [0.0, 1.0]) == [[], []]


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


@pytest.mark.slow
@pytest.mark.parametrize("step_s", [0.5, 1.0, 2.0])
def test_every_thing_of_sketch_films_has_one_track_of_its_own(step_s: float):
    """Five minutes of film, with detections missed by chance and given in any order."""
    chance = np.random.default_rng(7)
    script = write_script("film", 300.0, seed=5)
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
    assert len(identities) > 30
    assert len({number for _, number in pairs}) >= len(pairs) - 2, "a track went over to another thing"
    assert len(pairs) - len(identities) <= 2, "a thing has several tracks"
