"""The model's input is made without torch, to the same bytes as open_clip makes it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from index.embedding.space import import_open_clip
from pipeline.images.preprocess import ModelInput

open_clip = import_open_clip()

SHAPES = [(288, 512), (512, 288), (97, 511), (144, 193), (31, 30), (64, 64), (40, 300), (1, 7), (224, 224), (225, 224)]
SETTINGS: list[dict[str, Any]] = [
    {"size": size, "resize_mode": mode, "interpolation": interpolation, "fill_color": fill}
    for size in (224, 37, (64, 96), [96, 65])
    for mode, interpolation, fill in [
        ("shortest", "bicubic", 0),
        ("shortest", "bilinear", 0),
        ("longest", "bicubic", 0),
        ("longest", "bilinear", 128),
        ("squash", "bicubic", 0),
        ("squash", "bilinear", 0),
        (None, None, 0),
    ]
]


def noise(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(shape).integers(0, 256, (*shape, 3), dtype=np.uint8)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(str(value) for value in s.values()))
def test_the_same_bytes_as_open_clips_transform(settings: dict[str, Any]) -> None:
    theirs = open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(**settings), is_train=False)
    ours = ModelInput.from_json(json.dumps(settings))
    for shape in SHAPES:
        rgb = noise(shape)
        picture = Image.fromarray(rgb)
        if settings["resize_mode"] == "longest" and min(shape) / max(shape) < 0.1:
            continue  # a picture so thin has no line left, which open_clip's transform refuses
        for step in theirs.transforms[:-2]:
            picture = step(picture)
        made = ours(rgb)
        np.testing.assert_array_equal(made, np.asarray(picture).transpose(2, 0, 1), err_msg=str(shape))
        assert made.flags.c_contiguous


def test_the_preprocessing_of_every_model_that_open_clip_knows() -> None:
    known = {
        json.dumps(open_clip.get_pretrained_cfg(model, tag) | {"url": ""}, default=list, sort_keys=True)
        for model, tag in open_clip.list_pretrained()
    }
    assert len(known) > 5
    for each in known:
        settings = {name: value for name, value in json.loads(each).items() if name in ("interpolation", "resize_mode")}
        made = ModelInput.from_json(json.dumps({"size": 64} | settings))
        assert made(noise((50, 70))).shape == (3, 64, 64)


def test_what_a_thin_picture_gives() -> None:
    made = ModelInput(64, 64, "longest", fill=7)(noise((1, 700)))
    assert (made[:, 0] == 7).all()
    assert ModelInput(64, 64)(noise((1, 700))).shape == (3, 64, 64)


def test_it_travels_and_needs_no_torch(root: Path) -> None:
    made = ModelInput.from_json('{"size": [64, 96], "resize_mode": "squash"}')
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.side_px == 96
    script = "import sys, pipeline.images.preprocess; print([name for name in sys.modules if 'torch' in name])"
    done = subprocess.run([sys.executable, "-c", script], cwd=root, check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
