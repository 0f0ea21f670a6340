"""Overlap of boxes, and the best of overlapping detections."""

from __future__ import annotations

import numpy as np

from kinodex.pipeline.models.detector import Box, Detection, box_ious, suppress_overlaps


def square(x: float, y: float = 0.5, side: float = 0.2) -> Box:
    return x - side / 2, y - side / 2, x + side / 2, y + side / 2


def seen(label: str, *box: float) -> Detection:
    return Detection(label, 0.9, square(*box))


def test_overlap_of_boxes():
    boxes = [(0.0, 0.0, 0.5, 0.5), (0.25, 0.0, 0.75, 0.5), (0.5, 0.5, 1.0, 1.0), (0.2, 0.2, 0.2, 0.2)]
    expected = np.array([[1, 1 / 3, 0, 0], [1 / 3, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    assert np.allclose(box_ious(boxes, boxes), expected)
    assert box_ious([], boxes).shape == (0, 4)


def test_of_overlapping_detections_the_best_of_each_label_stays():
    found = [seen("cat", 0.5), Detection("cat", 0.95, square(0.51)), seen("dog", 0.5), seen("cat", 0.8)]
    assert suppress_overlaps(found, 0.7) == [found[1], found[2], found[3]]
