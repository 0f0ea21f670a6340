"""Export of an image tower to an ONNX graph that takes bytes and gives unit vectors. Needs torch and onnx."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.arithmetic import MIN_COSINE, MIN_CPU_SPEEDUP, computes_bf16, features_of, processor_facts
from kinodex.index.spaces.image_tower import IMAGE_ONNX, PIXELS, VECTORS, ImageTower
from kinodex.index.spaces.onnx_graphs import cut, halved, trace, weights_of
from kinodex.index.spaces.towers import TowerFacts, tower_facts
from kinodex.index.spaces.trial import TRIAL_JSON, Trial, write_json

if TYPE_CHECKING:
    from kinodex.index.spaces.space import Space

PICTURES, FIRST_BATCH = 8, 1
"""Pictures of the check, and of its first batch, which is not timed: the graph must take any number."""
IMAGE_MIN_COSINE = 0.9999
MIN_HALF_COSINE = 0.999999
"""Weights are kept in half precision, half the size, where they give the same vectors to this cosine."""
MOST_BYTES = 2_000_000_000
"""A graph in one file cannot be larger (protobuf)."""


def export_image_tower(space: Space, folder: Path) -> TowerFacts:
    """Write the image tower of a space, freshly loaded on the CPU, into `folder`, checked and timed against torch.

    Weights are kept in half precision where the vectors stay the same. Raises ExportRefused with the reason if the
    exporter cannot follow the tower or its vectors differ.
    """
    import torch

    module, pictures, file = _embedding_module(space), check_pictures(space), folder / IMAGE_ONNX
    traced, axes = {PIXELS: torch.from_numpy(pictures[:2])}, {PIXELS: {0: "n"}, VECTORS: {0: "n"}}
    graph = trace(f"the image tower of {space.name}", module, traced, VECTORS, axes)
    weights = weights_of(module, graph)
    torch_s, expected = _timed(_by_torch(module), pictures)
    least: float | None = None
    for is_half, needed in ((True, MIN_HALF_COSINE), (False, IMAGE_MIN_COSINE)):
        if sum(each.nbytes for each in weights.values()) / (2 if is_half else 1) > MOST_BYTES:
            continue
        (part,) = cut(graph, halved(weights) if is_half else weights)
        file.write_bytes(part.graph)
        onnx_s, found = _timed(ImageTower(space.fingerprint, file, 1).embed, pictures)
        if (least := _least_cosine(found, expected)) >= needed:
            write_json(folder / TRIAL_JSON, asdict(_trial(space, pictures, expected, torch_s, onnx_s)))
            settings = {"weights": "float16" if is_half else "float32"}
            return tower_facts(folder, [IMAGE_ONNX], settings, PICTURES, round(least, 7))
    file.unlink(missing_ok=True)
    if least is None:
        raise ExportRefused(f"the image tower of {space.name} is larger than the 2 GB that one ONNX file can hold")
    raise ExportRefused(
        f"the exported image tower of {space.name} has a cosine of only {least:.5f} to the original on one of "
        f"{PICTURES} pictures; at least {IMAGE_MIN_COSINE} is needed"
    )


def check_pictures(space: Space) -> NDArray[np.uint8]:
    """Make pictures of the tower's input size, flat to finely grained: uint8 [n, 3, h, w]."""
    chance = np.random.default_rng(14)
    shape = space.prepare(np.zeros((64, 64, 3), np.uint8)).shape[1:]
    pictures = []
    for number in range(PICTURES):
        cells = min(2**number, *shape)
        grid = chance.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        rows, columns = (np.arange(length) * cells // length for length in shape)
        pictures.append(grid[rows][:, columns].transpose(2, 0, 1))
    return np.stack(pictures)


def _trial(space: Space, pictures: NDArray[np.uint8], expected: NDArray[Any], torch_s: float, onnx_s: float) -> Trial:
    """Judge the exported tower: its start without torch pays, unless torch in bf16 is much quicker here."""
    cpu, runtime = processor_facts()[0], f"float32, ONNX Runtime {version('onnxruntime')}"
    seconds = {f"float32, torch {version('torch')}": round(torch_s, 5), runtime: round(onnx_s, 5)}
    if computes_bf16():
        low_s, found = _timed(space.embed, pictures)
        if not space.arithmetic.startswith("float32"):
            seconds[space.arithmetic] = round(low_s, 5)
            if low_s * MIN_CPU_SPEEDUP < onnx_s and _least_cosine(found, expected) >= MIN_COSINE:
                return Trial(False, f"{space.arithmetic} takes {low_s / onnx_s:.2f} of its time", cpu, seconds)
    why = f"{onnx_s / torch_s:.2f} of the time of float32 by torch, and no torch to import"
    return Trial(True, why, cpu, seconds)


def _timed(
    embed: Callable[[NDArray[np.uint8]], NDArray[Any]], pictures: NDArray[np.uint8]
) -> tuple[float, NDArray[Any]]:
    """Embed in two batches; returns the CPU seconds a picture of the second, and the vectors of both."""
    first = embed(pictures[:FIRST_BATCH])
    began = time.process_time()
    second = embed(pictures[FIRST_BATCH:])
    return (time.process_time() - began) / (PICTURES - FIRST_BATCH), np.concatenate([first, second])


def _least_cosine(found: NDArray[Any], expected: NDArray[Any]) -> float:
    ours, theirs = (
        each.astype(np.float64) / np.linalg.norm(each.astype(np.float64), axis=1, keepdims=True)
        for each in (found, expected)
    )
    return float(np.nan_to_num((ours * theirs).sum(1), nan=0.0).min())


def _embedding_module(space: Space) -> Any:
    """Make a module of uint8 pictures [n, 3, h, w] to unit vectors float32 [n, dim]."""
    import torch

    class Embedding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tower, mean, std = space.image_parts()
            self.mean, self.std = (torch.tensor(each).view(3, 1, 1) for each in (mean, std))

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            images = (pixels.float() / 255 - self.mean) / self.std
            return torch.nn.functional.normalize(features_of(self.tower, images), dim=-1)

    return Embedding().eval()


def _by_torch(module: Any) -> Callable[[NDArray[np.uint8]], NDArray[Any]]:
    import torch

    def embed(batch: NDArray[np.uint8]) -> NDArray[Any]:
        with torch.inference_mode():
            vectors: NDArray[Any] = module(torch.from_numpy(batch)).numpy()
        return vectors

    return embed
