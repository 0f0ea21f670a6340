"""Detect objects in images with a local model: of the labels it was trained on, or of any labels in words."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from kinodex.pipeline.errors import WrongModel
from kinodex.pipeline.models.boxes import Box, Detection, has_area, suppress_overlaps
from kinodex.pipeline.models.hub import Loaded, inference, load_model

if TYPE_CHECKING:
    from PIL.Image import Image

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
