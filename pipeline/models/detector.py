"""Detect objects in images with a local model: of the labels it was trained on, or of any labels in words."""

from __future__ import annotations

import inspect
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.errors import WrongModel
from kinodex.pipeline.models.hub import Loaded, inference, load_model

if TYPE_CHECKING:
    from PIL.Image import Image

DUPLICATE_IOU = 0.7
"""Two boxes of one label that overlap more than this are one object found twice."""

TEXT_THRESHOLD = 0.25
"""Grounding DINO's own least score for a word to be part of a label."""


class Detector:
    """A loaded detector. Its weights stay fp32, for boxes of half precision would be off; on CUDA autocast decides."""

    def __init__(self, loaded: Loaded, labels: Collection[str], min_score: float, open_vocabulary: bool) -> None:
        self.labels = tuple(labels)
        """Labels that it may find."""
        self.open_vocabulary = open_vocabulary
        self._loaded = loaded
        self._min_score = min_score

    def with_labels(self, labels: Collection[str]) -> Detector:
        return Detector(self._loaded, labels, self._min_score, self.open_vocabulary)

    def detect(self, images: Sequence[Image]) -> list[list[Detection]]:
        """Detect objects in each image, best first, of at least `min_score`; all images in one batch."""
        if not images:
            return []
        sizes = [(image.height, image.width) for image in images]
        find = self._find_labels if self.open_vocabulary else self._find_trained
        return [_detections(each, size, self.labels) for each, size in zip(find(images, sizes), sizes, strict=True)]

    def _find_trained(self, images: Sequence[Image], sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
        processor = self._loaded.processor
        outputs = self._run(processor(images=list(images), return_tensors="pt"))
        found: list[dict[str, Any]] = processor.post_process_object_detection(
            outputs, threshold=self._min_score, target_sizes=sizes
        )
        names = self._loaded.model.config.id2label
        return [{**each, "names": [names[int(number)] for number in each["labels"]]} for each in found]

    def _find_labels(self, images: Sequence[Image], sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
        processor = self._loaded.processor
        texts = [list(self.labels)] * len(images)
        batch = processor(images=list(images), text=texts, padding=True, return_tensors="pt")
        outputs = self._run(batch)
        finish = processor.post_process_grounded_object_detection
        arguments = {
            "threshold": self._min_score,
            "target_sizes": sizes,
            "text_labels": texts,
            "input_ids": batch.get("input_ids"),
            "text_threshold": min(self._min_score, TEXT_THRESHOLD),
        }
        taken = inspect.signature(finish).parameters.keys() & arguments.keys()  # processors differ in those they need
        found: list[dict[str, Any]] = finish(outputs, **{name: arguments[name] for name in taken})
        return [{**each, "names": each["text_labels"]} for each in found]

    def _run(self, batch: Any) -> Any:
        import torch

        cuda = self._loaded.device.type == "cuda"
        with inference(), torch.autocast("cuda", torch.float16) if cuda else nullcontext():
            return self._loaded.model(**self._loaded.to_input(batch))


def load_detector(name: str, labels: Sequence[str] = (), min_score: float = 0.3, device: str = "auto") -> Detector:
    """Load a detector, with `labels` an open-vocabulary one; raises ModelMissing, WrongModel or NoSuchDevice."""
    if not labels:
        loaded = load_model("ObjectDetection", name, device, half_on_cuda=False)
        return Detector(loaded, loaded.model.config.id2label.values(), min_score, open_vocabulary=False)
    loaded = load_model("ZeroShotObjectDetection", name, device, half_on_cuda=False)
    if not hasattr(loaded.processor, "post_process_grounded_object_detection"):
        raise WrongModel(f"{name} does not take labels in words; give one such as OWLv2 or Grounding DINO")
    return Detector(loaded, labels, min_score, open_vocabulary=True)


def _detections(found: dict[str, Any], size: tuple[int, int], labels: Sequence[str]) -> list[Detection]:
    """Convert one image's results in px to detections in fractions; boxes are clipped to the image."""
    height_px, width_px = size
    rows = zip(found["names"], found["scores"].tolist(), found["boxes"].tolist(), strict=True)
    inside = [
        Detection(label, score, _fractions(box, width_px, height_px))
        for words, score, box in rows
        if (label := _label(words, labels)) is not None
    ]
    return suppress_overlaps([each for each in inside if has_area(each.box)])


def _fractions(box: Sequence[float], width_px: int, height_px: int) -> Box:
    x0, y0, x1, y1 = (
        min(max(value / side, 0.0), 1.0) for value, side in zip(box, (width_px, height_px) * 2, strict=True)
    )
    return x0, y0, x1, y1


def _label(words: str | None, labels: Sequence[str]) -> str | None:
    """Find the label that a model means: Grounding DINO returns the words it matched, at times only part of a label."""
    if words in labels:
        return words
    matched = set((words or "").lower().split())
    shared = {label: len(matched & set(label.lower().split())) for label in labels}
    best = max(labels, key=lambda label: shared[label])
    return best if shared[best] else None


# Boxes in an image: `x0, y0, x1, y1`, each a fraction of the width or height, 0 to 1.

Box = tuple[float, float, float, float]


class Detection(NamedTuple):
    """One object found in one image; `score` is the model's, 0 to 1."""

    label: str
    score: float
    box: Box


def has_area(box: Box) -> bool:
    return box[2] > box[0] and box[3] > box[1]


def box_ious(some: Sequence[Box], others: Sequence[Box]) -> NDArray[np.float64]:
    """Compute the intersection over union of every pair, `[some, others]`; 0 where both are without area."""
    one = np.asarray(some, np.float64).reshape(-1, 1, 4)
    two = np.asarray(others, np.float64).reshape(1, -1, 4)
    sides = np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2])
    common = sides.clip(0).prod(-1)
    union = (one[..., 2:] - one[..., :2]).prod(-1) + (two[..., 2:] - two[..., :2]).prod(-1) - common
    shared: NDArray[np.float64] = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return shared


def suppress_overlaps(found: Sequence[Detection]) -> list[Detection]:
    """Drop each detection that overlaps a better one of its label by more than `DUPLICATE_IOU`; the best come first.

    Greedy non-maximum suppression, as detectors without a set loss need it (OWLv2, Minderer et al. 2023).
    """
    kept: list[Detection] = []
    for each in sorted(found, key=lambda detection: -detection.score):
        rivals = [other.box for other in kept if other.label == each.label]
        if not (box_ious([each.box], rivals) > DUPLICATE_IOU).any():
            kept.append(each)
    return kept


# Join detections of the same object in the frames of one video to tracks.
#
# After SORT (Bewley et al. 2016, arXiv 1602.00763, section 3): each track's box is moved on at constant velocity,
# the detections of a frame are assigned to tracks so that the sum of overlaps is largest (Hungarian algorithm),
# pairs that overlap too little stay apart, and a track missing for some frames ends. Unlike SORT, the velocity is
# that between the last two sightings instead of a Kalman filter's, since frames are sampled about once a second;
# an object that stopped is found where it was last; labels never mix; and no track continues over a cut.

MIN_OVERLAP = 0.3
MAX_MISSED = 2
"""Frames in a row. Frames, not seconds: of a still picture a library stores only one."""


@dataclass(slots=True)
class _Track:
    """An object that may still be visible: its boxes so far."""

    number: int
    label: str
    sightings: list[tuple[float, Box]] = field(default_factory=list)
    missed: int = 0

    def expected(self, time_s: float) -> Box:
        """Extrapolate the box to a time at the velocity between the last two sightings."""
        (before_s, before), (last_s, last) = self.sightings[-2:] if len(self.sightings) > 1 else self.sightings * 2
        part = (time_s - last_s) / (last_s - before_s) if last_s > before_s else 0.0
        shifts = [part * (_middle(last, axis) - _middle(before, axis)) for axis in (0, 1)]
        return last[0] + shifts[0], last[1] + shifts[1], last[2] + shifts[0], last[3] + shifts[1]


def find_tracks(
    frames: Sequence[Sequence[Detection]],
    times_s: Sequence[float],
    cuts_s: Sequence[float] = (),
) -> list[list[int]]:
    """Number, from 0, the track of every detection of frames in time order; a shot begins at each of `cuts_s`."""
    tracks: list[_Track] = []
    numbers = []
    count, shot = 0, 0
    for found, time_s in zip(frames, times_s, strict=True):
        now = bisect_right(cuts_s, time_s)
        tracks = [track for track in tracks if track.missed <= MAX_MISSED] if now == shot else []
        shot = now
        continued = dict(_match(found, tracks, time_s))
        for each in tracks:
            each.missed += 1
        assigned = []
        for place, detection in enumerate(found):
            track = continued.get(place)
            if track is None:
                track = _Track(count, detection.label)
                tracks.append(track)
                count += 1
            track.sightings.append((time_s, detection.box))
            track.missed = 0
            assigned.append(track.number)
        numbers.append(assigned)
    return numbers


def _match(found: Sequence[Detection], tracks: Sequence[_Track], time_s: float) -> Iterator[tuple[int, _Track]]:
    if not found or not tracks:
        return
    from scipy.optimize import linear_sum_assignment

    fits = _match_scores(found, tracks, time_s)
    fits[fits < MIN_OVERLAP] = 0.0
    for place, number in zip(*linear_sum_assignment(fits, maximize=True), strict=True):
        if fits[place, number] > 0:
            yield int(place), tracks[number]


def _match_scores(found: Sequence[Detection], tracks: Sequence[_Track], time_s: float) -> NDArray[np.float64]:
    """Compute the overlap of every detection with every track `[found, tracks]`: as extrapolated, or as last seen."""
    boxes = [detection.box for detection in found]
    moved = box_ious(boxes, [track.expected(time_s) for track in tracks])
    stayed = box_ious(boxes, [track.sightings[-1][1] for track in tracks])
    same = np.array([[detection.label == track.label for track in tracks] for detection in found])
    return np.where(same, np.maximum(moved, stayed), 0.0)


def _middle(box: Box, axis: int) -> float:
    return (box[axis] + box[axis + 2]) / 2
