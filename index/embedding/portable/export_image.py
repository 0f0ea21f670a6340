"""Export of a space's image tower to an ONNX graph that takes bytes and gives unit vectors. Needs torch and onnx."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.embedding.portable.image_tower import IMAGE_ONNX, PIXELS, VECTORS, open_session
from index.embedding.portable.tower_files import TowerFacts, tower_facts
from index.embedding.space import Space
from index.errors import ExportRefused

PICTURES = 64
MIN_COSINE = 0.9999
MIN_HALF_COSINE = 0.999999
"""Weights are kept in half precision, half the size, where they give the same vectors to this cosine."""
HALVED_FROM_NUMBERS = 1024
BATCHES = (1, 7, 16)
"""Sizes of the batches of the check: the graph must take any."""
EXPORTERS = ("onnxscript", "onnx_ir", "torch.onnx")
"""Loggers of the packages that export."""
MOST_BYTES = 2_000_000_000
"""A graph in one file cannot be larger (protobuf)."""


def export_image_tower(space: Space, folder: Path) -> TowerFacts:
    """Write the image tower of a space, freshly loaded on the CPU, into `folder`, and check it on 64 pictures.

    Weights are kept in half precision where the vectors stay the same, and are float32 again in memory. Raises
    ExportRefused with the reason if the exporter cannot follow the tower or its vectors differ, and
    ModuleNotFoundError without onnx or onnxscript.
    """
    import onnx

    module, pictures, file = _embedding_module(space), check_pictures(space), folder / IMAGE_ONNX
    graph, expected = _graph(space, module, pictures[1]), _expected(module, pictures)
    for is_half, needed in ((True, MIN_HALF_COSINE), (False, MIN_COSINE)):
        written = _halved(graph) if is_half else graph
        if written.ByteSize() > MOST_BYTES:
            continue
        onnx.save(written, file)
        if (least := float((_embedded(file, pictures) * expected).sum(1).min())) >= needed:
            settings = {"weights": "float16" if is_half else "float32"}
            return tower_facts(folder, [IMAGE_ONNX], settings, PICTURES, round(least, 7))
    file.unlink(missing_ok=True)
    if graph.ByteSize() > MOST_BYTES:
        raise ExportRefused(f"the image tower of {space.name} is larger than the 2 GB that one ONNX file can hold")
    raise ExportRefused(
        f"the exported image tower of {space.name} has a cosine of only {least:.5f} to the original on one of "
        f"{PICTURES} pictures; at least {MIN_COSINE} is needed"
    )


def check_pictures(space: Space) -> list[NDArray[np.uint8]]:
    """Make 64 pictures of the tower's input size, flat to finely grained, in batches [n, 3, h, w] of several sizes."""
    chance = np.random.default_rng(14)
    shape = space.prepare(np.zeros((64, 64, 3), np.uint8)).shape[1:]
    pictures = []
    for number in range(PICTURES):
        cells = min(2 ** (number % 8), *shape)
        grid = chance.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        rows, columns = (np.arange(length) * cells // length for length in shape)
        pictures.append(grid[rows][:, columns].transpose(2, 0, 1))
    bounds = np.cumsum([0, *BATCHES, PICTURES - sum(BATCHES)])
    return [np.stack(pictures[first:end]) for first, end in pairwise(bounds)]


def _graph(space: Space, module: Any, pictures: NDArray[np.uint8]) -> Any:
    """Trace the module as an ONNX model that takes batches of any size."""
    import onnxscript  # noqa: F401  (of the exporter, which without it fails with another error)
    import torch

    try:
        with torch.no_grad(), _silent():
            program: Any = torch.onnx.export(
                module,
                (torch.from_numpy(pictures),),
                input_names=[PIXELS],
                output_names=[VECTORS],
                dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # a tower that the exporter cannot follow says so in a hundred ways
        cause = error.__cause__ or error
        why = f"{type(cause).__name__}: {str(cause).strip()}".splitlines()[0][:200]
        raise ExportRefused(f"torch cannot export the image tower of {space.name}: {why}") from error
    return program.model_proto


def _embedding_module(space: Space) -> Any:
    """Make a module of uint8 pictures [n, 3, h, w] to unit vectors float32 [n, dim]."""
    import torch

    from index.embedding.precision import features_of

    class Embedding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tower, mean, std = space.image_parts()
            self.mean, self.std = (torch.tensor(each).view(3, 1, 1) for each in (mean, std))

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            images = (pixels.float() / 255 - self.mean) / self.std
            return torch.nn.functional.normalize(features_of(self.tower, images), dim=-1)

    return Embedding().eval()


def _expected(module: Any, pictures: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
    import torch

    with torch.inference_mode():
        vectors: NDArray[np.float32] = np.concatenate([module(torch.from_numpy(each)).numpy() for each in pictures])
    return vectors


def _embedded(file: Path, pictures: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
    session = open_session(file, 0)
    return np.concatenate([session.run([VECTORS], {PIXELS: each})[0] for each in pictures])


def _halved(model: Any) -> Any:
    """Copy a model with its large float32 weights in half precision, each cast to float32 where it is used."""
    from onnx import ModelProto, TensorProto, helper, numpy_helper

    copy = ModelProto()
    copy.CopyFrom(model)
    graph, casts = copy.graph, []
    for tensor in graph.initializer:
        numbers = numpy_helper.to_array(tensor)
        largest = np.finfo(np.float16).max
        if numbers.dtype == np.float32 and numbers.size >= HALVED_FROM_NUMBERS and np.abs(numbers).max() < largest:
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(numbers.astype(np.float16), f"{name}.half"))
            casts.append(helper.make_node("Cast", [tensor.name], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return copy


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the exporter's own notes from the terminal, the graph that it prints where it gives up too; errors rise."""
    loggers = [logging.getLogger(name) for name in EXPORTERS]
    levels = [each.level for each in loggers]
    with warnings.catch_warnings(), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        for each in loggers:
            each.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for each, level in zip(loggers, levels, strict=True):
                each.setLevel(level)
