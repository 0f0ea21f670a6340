"""Where the CPU time of a short ingest goes: `python -m tests.bench.first_ingest FILM SPACE_FOLDER`.

The first table is the export of a space's towers, which the first ingest on a machine waits for, step by step; the
second an ingest after it, by what is imported (from `-X importtime`, in an own run) and the rest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

RUN = "from kinodex.cli.main import main; main()"
NAMED = (
    "kinodex",
    "lance",
    "pyarrow",
    "numpy",
    "onnxruntime",
    "av",
    "pydantic",
    "pydantic_core",
    "typer",
    "rich",
    "PIL",
)


def cpu_s() -> float:
    own = os.times()
    return own.user + own.system


def export_steps(space: str) -> Iterator[tuple[str, float]]:
    """Export both towers in this process, as the child of an ingest does; gives CPU seconds by step."""
    from kinodex.index.spaces import export_image
    from kinodex.index.spaces.export_text import export_text_tower
    from kinodex.index.spaces.image_tower import PIXELS, VECTORS, ImageTower
    from kinodex.index.spaces.import_torch import import_open_clip
    from kinodex.index.spaces.onnx_graphs import cut, halved, trace, weights_of
    from kinodex.index.spaces.space import load_space

    began = cpu_s()

    def step(name: str) -> tuple[str, float]:
        nonlocal began
        spent, began = cpu_s() - began, cpu_s()
        return name, spent

    import torch

    torch.set_num_threads(1)
    yield step("import torch")
    import_open_clip()
    yield step("import open_clip, torchvision and transformers with it")
    loaded = load_space(f"local-dir:{space}", device="cpu")
    yield step("read the model")
    with tempfile.TemporaryDirectory() as folder:
        module, pictures, file = (
            export_image._embedding_module(loaded),
            export_image.check_pictures(loaded),
            Path(folder) / "i.onnx",
        )
        values, axes = {PIXELS: torch.from_numpy(pictures[:2])}, {PIXELS: {0: "n"}, VECTORS: {0: "n"}}
        graph = trace("the image tower", module, values, VECTORS, axes)
        yield step("trace the image tower")
        export_image._timed(export_image._by_torch(module), pictures)
        yield step("check: pictures by torch")
        (part,) = cut(graph, halved(weights_of(module, graph)))
        file.write_bytes(part.graph)
        yield step("write the graph")
        export_image._timed(ImageTower(loaded.fingerprint, file, 1).embed, pictures)
        yield step("check: open the graph, pictures by ONNX Runtime")
        export_text_tower(loaded, Path(folder))
        yield step("export and check the text tower")


def ingest(film: str, space: str, *options: str) -> tuple[float, str]:
    """Run an ingest into a new library; gives its CPU seconds and what it said on stderr."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *options, "-c", RUN, "ingest", film, "--library", folder, "--device", "cpu"]
        before = os.times()
        done = subprocess.run([*command, "--space", f"local-dir:{space}"], check=True, capture_output=True, text=True)
        after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, done.stderr


def imports_s(said: str) -> dict[str, float]:
    """Seconds on the wall by package, each module without those that it imports."""
    spent: dict[str, float] = defaultdict(float)
    for own, name in re.findall(r"^import time: +(\d+) \| +\d+ \| +(\S+)$", said, re.MULTILINE):
        package = name.partition(".")[0]
        spent[package if package in NAMED else "others"] += int(own) / 1e6
    return spent


def main(film: str, space: str) -> None:
    print("| the first ingest's export | CPU s |\n|---|---:|")
    steps = list(export_steps(space))
    for name, spent in [*steps, ("all", sum(spent for _, spent in steps))]:
        print(f"| {name} | {spent:.1f} |")
    ingest(film, space)
    whole, _ = ingest(film, space)
    _, said = ingest(film, space, "-X", "importtime")
    print("\n| the next library | s |\n|---|---:|")
    for name, spent in sorted(imports_s(said).items(), key=lambda each: -each[1]):
        print(f"| import {name} | {spent:.2f} |")
    print(f"| the whole process, CPU s | {whole:.2f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
