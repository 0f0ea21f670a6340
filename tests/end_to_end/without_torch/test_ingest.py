"""Ingest and search by picture in the drawn space where torch is not installed, as `make demo` has it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kinodex.index.library import Library
from kinodex.index.spaces.space import load_space
from tests.support.without_modules import MODULE
from tests.world.drawn_space import DRAWN, DRAWN_BY_TORCH

pytestmark = pytest.mark.slow
NOT_THERE = "torch,torchvision,open_clip,timm,transformers,safetensors,huggingface_hub,onnx,onnxscript,ray"


def output(*arguments: object) -> str:
    command = [sys.executable, "-m", MODULE, NOT_THERE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_built_in_space_is_ingested_and_searched_by_picture(films: Path, library: Path, tmp_path: Path) -> None:
    """The vectors are those that torch makes, to the half precision of the weights and of the vectors."""
    here = tmp_path / "library"
    output("ingest", films / "film-01.mp4", "--library", here, "--space", DRAWN)
    made, expected = Library.open(str(here)), Library.open(str(library))
    (run,) = made.ingest_log.runs()
    assert run.report["arithmetic"].startswith("float32, ONNX Runtime ")
    for video in made.videos():
        ours, theirs = (each.vectors(video.video_id).vectors.astype(np.float32) for each in (made, expected))
        np.testing.assert_allclose(ours, theirs, atol=1e-3)
    frame = made.frames_at(video.video_id, [10.0], mode="nearest")[0]
    (tmp_path / "frame.jpg").write_bytes(frame.jpeg)
    (hit,) = json.loads(output("search", here, "--image", tmp_path / "frame.jpg", "-k", 1, "--json"))
    tower = load_space(DRAWN_BY_TORCH, device="cpu", towers="image")
    picture = np.asarray(Image.open(tmp_path / "frame.jpg"))
    (best,) = expected.search.frames(tower.embed(tower.prepare(picture)[None])[0], k=1)
    assert (hit["video_id"], hit["time_s"]) == (best.video_id, best.time_s)
