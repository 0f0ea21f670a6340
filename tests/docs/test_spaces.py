"""docs/spaces.md: its examples run, and its numbers are those of the code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mktestdocs import check_md_file
from PIL import Image

from kinodex.index.library import Library
from kinodex.index.spaces.arithmetic import MIN_COSINE, MIN_CPU_SPEEDUP, SMALL_TOWER_PARAMETERS
from kinodex.index.spaces.export_image import IMAGE_MIN_COSINE, PICTURES
from kinodex.index.spaces.import_torch import import_open_clip
from kinodex.index.spaces.model_names import DEFAULT_SPACE
from kinodex.jobs.add.stages import Vectors
from kinodex.jobs.ingest.config import CPU_BATCH, GPU_BATCH
from kinodex.jobs.towers.export_process import CHILD_BYTES, CHILD_TIMES, SMALL_BYTES
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.models.tiny_models import TINY, write_model
from tests.world.drawn_space import DRAWN


@pytest.fixture
def page(root: Path) -> Path:
    return root / "docs" / "spaces.md"


@pytest.mark.slow
def test_the_examples_run(page: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    library = library_of(Path("mine"), [tiny_film(tmp_path / "film.mp4", 3, 0)])
    write_model(Path("models/mine"), TINY)
    Image.fromarray(np.zeros((60, 80, 3), np.uint8)).save("boat.jpg")
    check_md_file(page, memory=True)
    assert f"1 videos, {library.videos()[0].frames} vectors; spaces: {DRAWN}" in capsys.readouterr().out
    assert [space.dim for space in Library.open("mine").spaces()] == [256, TINY["embed_dim"]]


def test_the_numbers_are_those_of_the_code(page: Path) -> None:
    text = " ".join(page.read_text().split())
    assert f"| (nothing) | `{DEFAULT_SPACE}` |" in text
    assert f"{SMALL_TOWER_PARAMETERS // 10**6} million parameters or more" in text
    assert f"bf16 is at least {MIN_CPU_SPEEDUP} times as quick, with a cosine of at least {MIN_COSINE}. " in text
    assert f"torch's vectors to a cosine of at least {IMAGE_MIN_COSINE}; " in text
    assert f"less than {SMALL_BYTES // 10**6} MB" in text and PICTURES == 8 and "eight pictures" in text
    assert (CHILD_BYTES, CHILD_TIMES) == (600_000_000, 3) and "0.6 GB and three times the model" in text
    assert f"{CPU_BATCH} frames on a CPU, where more is no quicker, {GPU_BATCH} on a GPU" in text
    assert f"for `add vectors` {Vectors(space=DEFAULT_SPACE).batch}," in text


def test_the_sizes_are_those_of_the_models(page: Path) -> None:
    open_clip = import_open_clip()
    for row in page.read_text().split("### Choice")[1].splitlines():
        cells = [cell.strip() for cell in row.split("|")]
        if len(cells) > 2 and "/" in cells[1]:
            architecture, tag = cells[1].strip("`").split("/")
            assert open_clip.get_pretrained_cfg(architecture, tag)
            assert open_clip.get_model_config(architecture)["embed_dim"] == int(cells[2].replace(",", ""))
