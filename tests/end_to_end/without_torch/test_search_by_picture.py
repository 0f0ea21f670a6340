"""`search --image` without torch, in a library whose model is not on this machine.

`ingest --with-image-tower` keeps the tower with the library; ONNX Runtime computes it, the only package beyond the base
install that this needs.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from kinodex.cli.main import main
from kinodex.index.library import Library
from kinodex.index.spaces.space import load_space
from tests.support.without_modules import MODULE

pytestmark = pytest.mark.slow
NOT_THERE = "torch,torchvision,open_clip,timm,transformers,safetensors,huggingface_hub,onnx,onnxscript,av,ray"
NO_RUNTIME = f"{NOT_THERE},onnxruntime"


class Made(NamedTuple):
    """A library that carries its image tower, a picture of one of its frames, and what the torch tower finds by it."""

    uri: str
    picture: Path
    best: tuple[str, float]


@pytest.fixture(scope="module")
def made(films: Path, tiny_model: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("elsewhere")
    model = shutil.copytree(tiny_model("space"), folder / "model")
    space = f"local-dir:{model}"
    options = ["--library", str(folder / "library"), "--space", space, "--fps", "0.5", "--with-image-tower"]
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stderr(io.StringIO()) as said,
        pytest.raises(SystemExit, match="0"),
    ):
        patch.setattr(sys, "argv", ["kinodex", "ingest", str(films), *options])
        main()
    assert f"image tower of {space}: carried, " in said.getvalue()
    library = Library.open(str(folder / "library"))
    frame = library.frames_at(library.videos()[0].video_id, [10.0], mode="nearest")[0]
    (folder / "frame.jpg").write_bytes(frame.jpeg)
    tower = load_space(space, device="cpu", towers="image")
    vector = tower.embed(tower.prepare(np.asarray(Image.open(folder / "frame.jpg")))[None])[0]
    (best,) = library.search.frames(vector, k=1)
    shutil.rmtree(model)
    return Made(library.uri, folder / "frame.jpg", (best.video_id, best.time_s))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def search(packages: str, library: object, picture: Path) -> subprocess.CompletedProcess[str]:
    """Search by a picture in a process where some packages are not there."""
    arguments = ["search", str(library), "--image", str(picture), "-k", "1", "--json"]
    return run("-m", MODULE, packages, *arguments)


def test_a_carried_tower_finds_what_torch_finds(made: Made) -> None:
    ran = search(NOT_THERE, made.uri, made.picture)
    assert ran.returncode == 0, ran.stderr
    (hit,) = json.loads(ran.stdout)
    assert (hit["video_id"], hit["time_s"]) == made.best


def test_without_onnx_runtime_its_extra_is_named(made: Made) -> None:
    ran = search(NO_RUNTIME, made.uri, made.picture)
    assert ran.returncode == 2
    assert f"the image tower that {made.uri} carries needs ONNX Runtime" in ran.stderr
    assert "`pip install 'kinodex[onnx]'` brings it" in ran.stderr


def test_without_a_tower_the_way_to_one_is_said(made: Made, tmp_path: Path) -> None:
    bare = shutil.copytree(made.uri, tmp_path / "bare")
    shutil.rmtree(bare / "towers")
    ran = search(NOT_THERE, bare, made.picture)
    assert ran.returncode == 2
    assert f"run `kinodex add text-tower {bare} --with-image-tower` where the model is" in ran.stderr
