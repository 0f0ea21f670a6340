"""Detections by local models, of labels they know and of labels in words: boxes in fractions of the picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kinodex.pipeline.errors import WrongModel
from kinodex.pipeline.models.detector import load_detector
from tests.support.models import stage_models as stage_kit

LABELS = ("cat", "red kite")
CASES: dict[str, tuple[Callable[[Path], Path], tuple[str, ...], float]] = {
    "rt_detr": (stage_kit.rt_detr, (), 0.1),
    "owlv2": (stage_kit.owlv2, LABELS, 0.02),
    "grounding_dino": (stage_kit.grounding_dino, LABELS, 0.02),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {name: make(folder / name) for name, (make, _, _) in CASES.items()}


def picture(width_px: int, height_px: int, seed: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 255, (height_px, width_px, 3), dtype=np.uint8))


WIDE, TALL = picture(96, 54, 1), picture(54, 96, 2)


@pytest.mark.parametrize("name", CASES)
def test_boxes_are_inside_and_best_comes_first(models, name):
    _, labels, min_score = CASES[name]
    detector = load_detector(str(models[name]), labels, min_score, "cpu")
    for found in detector.detect([WIDE, picture(96, 54, 3)]):
        assert found
        assert {each.label for each in found} <= set(labels or ("boat", "kite", "cat"))
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
        assert min_score <= scores[-1] <= scores[0] <= 1
        for x0, y0, x1, y1 in (each.box for each in found):
            assert 0 <= x0 < x1 <= 1
            assert 0 <= y0 < y1 <= 1
    assert detector.detect([]) == []


@pytest.mark.parametrize("name", CASES)
def test_a_higher_least_score_keeps_fewer_and_the_same(models, name):
    _, labels, min_score = CASES[name]
    some = load_detector(str(models[name]), labels, min_score, "cpu").detect([WIDE])[0]
    middle = some[len(some) // 2].score - 1e-6
    fewer = load_detector(str(models[name]), labels, middle, "cpu").detect([WIDE])[0]
    assert [each.box for each in fewer] == [each.box for each in some if each.score >= middle]


@pytest.mark.parametrize("shape", [(96, 54), (54, 96)])
def test_boxes_are_the_models_own_as_fractions(models, shape):
    """OWLv2 sees each picture in the corner of a square, so its raw boxes are fractions of that square."""
    import torch

    seen = picture(shape[0], shape[1], 4)
    detector = load_detector(str(models["owlv2"]), LABELS, 0.02, "cpu")
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


def test_pictures_of_other_shapes_in_one_batch(models):
    detector = load_detector(str(models["rt_detr"]), (), 0.1, "cpu")
    together, alone = detector.detect([WIDE, TALL]), [detector.detect([each])[0] for each in (WIDE, TALL)]
    for some, others in zip(together, alone, strict=True):
        assert np.allclose([each.box for each in some], [each.box for each in others], atol=1e-4)


def test_words_and_models_must_fit(models):
    with pytest.raises(WrongModel, match="no model for AutoModelForZeroShotObjectDetection"):
        load_detector(str(models["rt_detr"]), LABELS, device="cpu")
    with pytest.raises(WrongModel, match="no model for AutoModelForObjectDetection"):
        load_detector(str(models["owlv2"]), (), device="cpu")


def test_what_grounding_dino_gives_back_in_part_is_the_label_it_means():
    from kinodex.pipeline.models.detector import _label

    assert _label("red kite", LABELS) == "red kite"
    assert _label("kite", LABELS) == "red kite"
    assert _label("dog", LABELS) is None
    assert _label("", LABELS) is None
