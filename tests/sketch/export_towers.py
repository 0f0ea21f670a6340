"""Export both towers of the built-in space beside its weights: `python -m tests.sketch.export_towers`.

That of pictures is written twice, for ONNX Runtime and for numpy alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.cpu import IMAGE_MIN_COSINE, PICTURES, check_pictures
from kinodex.index.spaces.resnet import IMAGE_ARRAYS, RESNET, Floats, ResNetSettings, image_features, read_weights
from kinodex.index.spaces.space import LOCAL, Space
from kinodex.index.spaces.towers import (
    BUILTIN,
    TOWERS,
    SpaceTowers,
    TowerFacts,
    tower_facts,
    write_arrays,
    write_towers,
)


def export_towers(folder: Path) -> SpaceTowers:
    """Export the towers of the model in `folder` to its `towers` folder, under the name of the built-in space.

    Raises ExportRefused if one cannot be exported, ModuleNotFoundError without torch, open_clip or onnx.
    """
    from kinodex.index.spaces.cpu import export_image_tower
    from kinodex.index.spaces.export_text import export_text_tower
    from kinodex.index.spaces.space import load_space

    place, name = folder / TOWERS, f"{LOCAL}{folder.absolute()}"
    place.mkdir(exist_ok=True)
    text_space, image_space = (load_space(name, device="cpu", towers=each) for each in ("text", "image"))
    builtin = replace(text_space.fingerprint, name="builtin")
    text, graph = export_text_tower(text_space, place), export_image_tower(image_space, place)
    towers = SpaceTowers(builtin, text, export_resnet(image_space, place, graph))
    write_towers(place, towers)
    return towers


# Export of an image tower that is a ResNet of CLIP's to arrays that numpy computes with.
Arrays = dict[str, Floats]


def export_resnet(space: Space, folder: Path, graph: TowerFacts) -> TowerFacts:
    """Write the image tower of a space, loaded on the CPU, into `folder` beside its ONNX graph, in half precision.

    The norms after convolutions are folded into them. Returns the facts of both together, the cosine the lesser of the
    two. Raises ExportRefused for a tower that is no ResNet of CLIP's, or vectors below a cosine of 0.9999.
    """
    parts = space.image_parts()
    tower: Any = parts[0]
    if type(tower).__name__ != "ModifiedResNet":
        raise ExportRefused(f"the image tower of {space.name} is a {type(tower).__name__}, and numpy knows a ResNet")
    blocks = tuple(len(each) for each in _stages(tower))
    settings = ResNetSettings(blocks, tower.attnpool.num_heads, *(tuple(map(float, each)) for each in parts[1:]))
    write_arrays(folder / IMAGE_ARRAYS, arrays_of(tower), "F16")
    weights = read_weights(folder / IMAGE_ARRAYS)
    least = round(min(_least_cosine(tower, weights, settings, each) for each in check_pictures(space)), 7)
    if least < IMAGE_MIN_COSINE:
        (folder / IMAGE_ARRAYS).unlink()
        raise ExportRefused(f"the ResNet of {space.name} in numpy has a cosine of only {least} on one of {PICTURES}")
    described = {**graph.settings, RESNET: asdict(settings)}
    return tower_facts(folder, [*graph.files, IMAGE_ARRAYS], described, PICTURES, min(least, graph.least_cosine))


def _least_cosine(tower: Any, weights: Arrays, settings: ResNetSettings, pictures: NDArray[np.uint8]) -> float:
    """Compare the features of pictures [n, 3, h, w] by torch's tower with numpy's."""
    import torch

    from kinodex.index.spaces.space import features_of

    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (settings.mean, settings.std))
    with torch.inference_mode():
        theirs = _array(features_of(tower, (torch.from_numpy(pictures).float() / 255 - mean) / std))
    ours = image_features(weights, settings, pictures)
    theirs, ours = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (theirs, ours))
    return float((theirs * ours).sum(1).min())


def arrays_of(tower: Any) -> Arrays:
    """Make the weights of torch's module those that `image_features` takes."""
    stem = ((tower.conv1, tower.bn1), (tower.conv2, tower.bn2), (tower.conv3, tower.bn3))
    arrays = _all(_folded(f"stem.{number}", *each) for number, each in enumerate(stem))
    for stage, blocks in enumerate(_stages(tower)):
        for number, block in enumerate(blocks):
            arrays |= _block(f"stages.{stage}.{number}.", block)
    pool = tower.attnpool
    layers = {"query": pool.q_proj, "keys": pool.k_proj, "values": pool.v_proj, "out": pool.c_proj}
    arrays |= _all(
        {f"pool.{name}.weight": _array(each.weight).T, f"pool.{name}.bias": _array(each.bias)}
        for name, each in layers.items()
    )
    return arrays | {"pool.positions": _array(pool.positional_embedding)}


def _stages(tower: Any) -> list[Any]:
    return [tower.layer1, tower.layer2, tower.layer3, tower.layer4]


def _block(name: str, block: Any) -> Arrays:
    parts = [
        _folded(f"{name}narrow", block.conv1, block.bn1),
        _folded(f"{name}middle", block.conv2, block.bn2),
        _folded(f"{name}wide", block.conv3, block.bn3),
    ]
    if block.downsample is not None:
        _, convolution, norm = block.downsample
        parts.append(_folded(f"{name}beside", convolution, norm))
    return _all(parts)


def _folded(name: str, convolution: Any, norm: Any) -> Arrays:
    """Fold a norm, as it is after training, into the convolution before it: a matrix [row, column, channel; out]."""
    scale = _array(norm.weight) / np.sqrt(_array(norm.running_var) + np.float32(norm.eps))
    kernels = _array(convolution.weight) * scale[:, None, None, None]
    matrix = np.ascontiguousarray(kernels.transpose(2, 3, 1, 0).reshape(-1, len(kernels)))
    return {f"{name}.weight": matrix, f"{name}.bias": _array(norm.bias) - _array(norm.running_mean) * scale}


def _all(parts: Iterable[Arrays]) -> Arrays:
    return dict(chain.from_iterable(part.items() for part in parts))


def _array(value: Any) -> Floats:
    numbers: Floats = value.detach().cpu().float().numpy()
    return numbers


def main(folder: Annotated[Path, typer.Argument(help="Folder of the model.")] = BUILTIN) -> None:
    """Export both towers of the model in a folder, and print how near they come to it."""
    towers = export_towers(folder)
    for kind, tower in (("text", towers.text), ("image", towers.image)):
        if tower is not None:
            print(f"{kind} tower: {tower.bytes:,} bytes, least cosine {tower.least_cosine} of {tower.samples}")


if __name__ == "__main__":
    typer.run(main)
