"""Things in pictures by a local detector: of the labels it was trained on, or of any labels given as words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from pipeline.errors import WrongModel
from pipeline.models.boxes import Box, Detection, best_of_each
from pipeline.models.hub import Loaded, inference, load_model

if TYPE_CHECKING:
    from PIL.Image import Image

SAME_THING = 0.7
"""Two boxes of one label that overlap more than this are one thing found twice."""

SAME_WORD = 0.25
"""Grounding DINO's own least score for a word to be part of what it names."""


class Detector:
    """A loaded detector. Its weights stay fp32: boxes of half precision would be off by pixels.

    On CUDA the arithmetic is fp16 where autocast finds that safe.
    """

    def __init__(self, loaded: Loaded, labels: Collection[str], min_score: float, asks_in_words: bool) -> None:
        self.labels = tuple(labels)
        """What it may find."""
        self.asks_in_words = asks_in_words
        self._loaded = loaded
        self._min_score = min_score

    def looking_for(self, labels: Collection[str]) -> Detector:
        """The same model looking for other labels; only one that is asked in words can."""
        return Detector(self._loaded, labels, self._min_score, self.asks_in_words)

    def detect(self, pictures: Sequence[Image]) -> list[list[Detection]]:
        """What is in each picture, best first, at least `min_score`; all pictures in one batch."""
        if not pictures:
            return []
        sizes = [(picture.height, picture.width) for picture in pictures]
        find = self._open_vocabulary if self.asks_in_words else self._closed_vocabulary
        return [_detections(each, size, self.labels) for each, size in zip(find(pictures, sizes), sizes, strict=True)]

    def _closed_vocabulary(self, pictures: Sequence[Image], sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
        processor = self._loaded.processor
        outputs = self._run(processor(images=list(pictures), return_tensors="pt"))
        found: list[dict[str, Any]] = processor.post_process_object_detection(
            outputs, threshold=self._min_score, target_sizes=sizes
        )
        names = self._loaded.model.config.id2label
        return [{**each, "names": [names[int(number)] for number in each["labels"]]} for each in found]

    def _open_vocabulary(self, pictures: Sequence[Image], sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
        processor = self._loaded.processor
        texts = [list(self.labels)] * len(pictures)
        batch = processor(images=list(pictures), text=texts, padding=True, return_tensors="pt")
        outputs = self._run(batch)
        finish = processor.post_process_grounded_object_detection
        known = {
            "threshold": self._min_score,
            "target_sizes": sizes,
            "text_labels": texts,
            "input_ids": batch.get("input_ids"),
            "text_threshold": min(self._min_score, SAME_WORD),
        }
        found: list[dict[str, Any]] = finish(outputs, **_taken(finish, known))
        return [{**each, "names": each["text_labels"]} for each in found]

    def _run(self, batch: Any) -> Any:
        import torch

        cuda = self._loaded.device.type == "cuda"
        with inference(), torch.autocast("cuda", torch.float16) if cuda else nullcontext():
            return self._loaded.model(**self._loaded.to_input(batch))


def load_detector(name: str, labels: Sequence[str] = (), min_score: float = 0.3, device: str = "auto") -> Detector:
    """The detector `name`, a hub id or a folder; with `labels`, an open-vocabulary one that looks for these.

    Raises ModelMissing, WrongModel or NoSuchDevice.
    """
    if not labels:
        loaded = load_model("ObjectDetection", name, device, half_on_cuda=False)
        return Detector(loaded, loaded.model.config.id2label.values(), min_score, asks_in_words=False)
    loaded = load_model("ZeroShotObjectDetection", name, device, half_on_cuda=False)
    if not hasattr(loaded.processor, "post_process_grounded_object_detection"):
        raise WrongModel(f"{name} cannot be asked for labels in words; give one such as OWLv2 or Grounding DINO")
    return Detector(loaded, labels, min_score, asks_in_words=True)


def _detections(found: dict[str, Any], size: tuple[int, int], labels: Sequence[str]) -> list[Detection]:
    """One picture's results in px as detections in fractions; boxes reach no further than the picture."""
    height_px, width_px = size
    rows = zip(found["names"], found["scores"].tolist(), found["boxes"].tolist(), strict=True)
    inside = [
        Detection(label, score, _fractions(box, width_px, height_px))
        for words, score, box in rows
        if (label := _label(words, labels)) is not None
    ]
    return best_of_each([each for each in inside if _has_area(each.box)], SAME_THING)


def _fractions(box: Sequence[float], width_px: int, height_px: int) -> Box:
    x0, y0, x1, y1 = (
        min(max(value / side, 0.0), 1.0) for value, side in zip(box, (width_px, height_px) * 2, strict=True)
    )
    return x0, y0, x1, y1


def _has_area(box: Box) -> bool:
    return box[2] > box[0] and box[3] > box[1]


def _label(words: str | None, labels: Sequence[str]) -> str | None:
    """The label that a model means: Grounding DINO gives back the words it matched, at times only part of one."""
    if words in labels:
        return words
    given = set((words or "").lower().split())
    shared = {label: len(given & set(label.lower().split())) for label in labels}
    best = max(labels, key=lambda label: shared[label])
    return best if shared[best] else None


def _taken(function: Callable[..., Any], known: dict[str, Any]) -> dict[str, Any]:
    """Those of the arguments that a function has: processors differ in what they need."""
    return {name: value for name, value in known.items() if name in inspect.signature(function).parameters}
