"""Measure the arithmetic of image towers on one core: `python -m tests.bench.towers`.

Each tower embeds the same pictures by torch in float32, with its channels last, in bf16, in both, and by ONNX Runtime,
in turn, round by round. The cheapest round of each counts, in seconds of CPU: other work on the machine can only add to
them. Every one has the whole work: bytes in, unit vectors out.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from kinodex.index.errors import ExportRefused
from kinodex.jobs.errors import UsageError
from tests.support.say import say

if TYPE_CHECKING:
    from kinodex.index.spaces.space import Space

MOST_PICTURES = 64
FLOAT32 = "torch float32"
CHANNELS_LAST = "torch float32, channels last"
BF16 = "torch bf16"
BF16_LAST = "torch bf16, channels last"
ONNX_RUNTIME = "ONNX Runtime float32"
Embed = Callable[[], NDArray[np.float64]]
"""Embeds the pictures of a measurement as unit vectors [n, dim]."""


@dataclass(frozen=True, slots=True)
class TowerFigures:
    """One image tower in one arithmetic, on one core."""

    space: str
    million_parameters: float
    arithmetic: str
    pictures_s: float
    """Pictures a second of CPU time."""
    ratio: float
    """Times as quick as torch's float32."""
    least_cosine: float
    """Least cosine of a picture's vector to that of torch's float32."""


def bench_towers(
    spaces: Sequence[str], rounds: int, batch: int = 16, report: Callable[[str], None] = lambda line: None
) -> list[TowerFigures]:
    """Measure the image towers of spaces; what cannot be measured is reported in a line.

    Raises UsageError for a batch of more than 64 pictures, or a SpaceError if a model cannot be loaded.
    """
    if batch > MOST_PICTURES:
        raise UsageError(f"got --batch {batch}; give 1 to {MOST_PICTURES}")
    return [figures for name in spaces for figures in _bench_tower(name, rounds, batch, report)]


def table(figures: Sequence[TowerFigures]) -> str:
    """Write the figures as a table in Markdown."""
    head = ["space", "million parameters", "arithmetic", "pictures a second", "ratio", "least cosine"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for each in figures:
        cells = [each.space, f"{each.million_parameters:.1f}", each.arithmetic, f"{each.pictures_s:.1f}"]
        rows.append(f"| {' | '.join([*cells, f'{each.ratio:.2f}', f'{each.least_cosine:.7f}'])} |")
    return "\n".join(rows)


def _bench_tower(name: str, rounds: int, batch: int, report: Callable[[str], None]) -> list[TowerFigures]:
    from kinodex.index.spaces.cpu import check_pictures
    from kinodex.index.spaces.space import load_space

    space = load_space(name, device="cpu", towers="image")
    parameters = sum(each.numel() for each in space.image_parts()[0].parameters())
    pictures = np.concatenate(check_pictures(space))[:batch]
    with space.threads(1), _ways(space, pictures, report) as ways:
        seconds, vectors = _measure(ways, rounds)
    cosines = {way: float((made * vectors[FLOAT32]).sum(1).min()) for way, made in vectors.items()}
    return [
        TowerFigures(name, parameters / 1e6, way, batch / took_s, seconds[FLOAT32] / took_s, cosines[way])
        for way, took_s in seconds.items()
    ]


def _measure(ways: dict[str, Embed], rounds: int) -> tuple[dict[str, float], dict[str, NDArray[np.float64]]]:
    """Run the ways in turn; return the least CPU seconds of each, and its vectors. The first round is not counted."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    vectors = {}
    for _ in range(rounds + 1):
        for way, embed in ways.items():
            began = time.process_time()
            vectors[way] = embed()
            seconds[way].append(time.process_time() - began)
    return {way: min(times[1:]) for way, times in seconds.items()}, vectors


@contextmanager
def _ways(space: Space, pictures: NDArray[np.uint8], report: Callable[[str], None]) -> Iterator[dict[str, Embed]]:
    """Make the ways to embed the pictures, by their names."""
    import torch

    tower: Any = space.image_parts()[0]
    half = copy.deepcopy(tower).to(torch.bfloat16)
    towers = {
        FLOAT32: tower,
        CHANNELS_LAST: copy.deepcopy(tower).to(memory_format=torch.channels_last),
        BF16: half,
        BF16_LAST: copy.deepcopy(half).to(memory_format=torch.channels_last),
    }
    ways: dict[str, Embed] = {way: _by_torch(each, space, pictures) for way, each in towers.items()}
    with TemporaryDirectory() as scratch:
        try:
            ways[ONNX_RUNTIME] = _by_onnx_runtime(_graph(space, Path(scratch)), pictures)
        except (ExportRefused, ModuleNotFoundError) as error:
            report(f"{space.name} by ONNX Runtime was left out: {error}")
        yield ways


def _by_torch(tower: Any, space: Space, pictures: NDArray[np.uint8]) -> Embed:
    import torch

    from kinodex.index.spaces.space import features_of

    _, *scale = space.image_parts()
    mean, deviation = (torch.tensor(each).view(3, 1, 1) for each in scale)

    def embed() -> NDArray[np.float64]:
        with torch.inference_mode():
            images = (torch.from_numpy(pictures).float() / 255 - mean) / deviation
            return _units(features_of(tower, images).double().numpy())

    return embed


def _by_onnx_runtime(graph: Path, pictures: NDArray[np.uint8]) -> Embed:
    from kinodex.index.spaces.cpu import PIXELS, VECTORS, open_session

    session = open_session(graph, 1)
    return lambda: _units(session.run([VECTORS], {PIXELS: pictures})[0].astype(np.float64))


def _units(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    units: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units


def _graph(space: Space, scratch: Path) -> Path:
    """Find the tower's graph beside the built-in space's weights or in the user's cache, else export it."""
    from kinodex.index.spaces.cpu import IMAGE_ONNX, export_image_tower
    from kinodex.index.spaces.towers import BUILTIN_TOWERS, cached_place, is_whole
    from kinodex.index.store.carried_towers import builtin_tower

    digest = space.fingerprint.digest
    if builtin_tower(digest, "image"):
        return BUILTIN_TOWERS / IMAGE_ONNX
    if is_whole(cached_place(digest, "image"), "image"):
        return cached_place(digest, "image") / IMAGE_ONNX
    export_image_tower(space, scratch)
    return scratch / IMAGE_ONNX


def main(
    space: Annotated[list[str] | None, typer.Option(help="Embedding space; may be repeated. Default: builtin.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the cheapest counts.")] = 3,
    batch: Annotated[int, typer.Option(min=1, help="Pictures at once, at most 64.")] = 16,
) -> None:
    """Measure the arithmetic of image towers on one core: pictures a second, and the cosine to torch's float32."""
    print(table(bench_towers(space or ["builtin"], rounds, batch, say)))


if __name__ == "__main__":
    typer.run(main)
