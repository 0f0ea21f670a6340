"""Arithmetic is chosen by measuring, and keeps the vectors."""

from __future__ import annotations

import numpy as np
import torch

from kinodex.index.spaces.space import arithmetic_of, compiled_tower, import_open_clip, quick_tower
from tests.support.models.tiny_models import TINY

open_clip = import_open_clip()


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a.astype(np.float64), b.astype(np.float64)
    scaled: np.ndarray = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    return scaled


def test_arithmetic_is_chosen_by_size_and_gives_the_same_vectors():
    torch.manual_seed(0)
    vision = {"image_size": 64, "layers": 4, "width": 768, "patch_size": 16, "head_width": 64}
    tower = open_clip.model.CLIP(**TINY | {"vision_cfg": vision}).eval().visual
    images = torch.randn(4, 3, 64, 64)
    with torch.inference_mode():
        chosen = quick_tower(tower, images)
        exact = tower(images).numpy()
        quick = chosen(images.to(next(chosen.parameters()).dtype)).float().numpy()
    assert cosines(exact, quick).min() >= 0.9995
    small = open_clip.model.CLIP(**TINY).eval().visual
    assert quick_tower(small, images) is small
    assert compiled_tower(small, images) is small  # only on CUDA compiling may pay


def test_convolutions_have_their_channels_last_on_a_cpu():
    torch.manual_seed(0)
    vision = {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8}
    tower = open_clip.model.CLIP(**TINY | {"vision_cfg": vision}).eval().visual
    images = torch.randn(4, 3, 64, 64)
    with torch.inference_mode():
        before, plain = tower(images).numpy(), arithmetic_of(tower)
        chosen = quick_tower(tower, images)
        after = chosen(images).numpy()
    assert cosines(before, after).min() > 0.999999
    assert plain == f"float32, torch {torch.__version__}"
    assert arithmetic_of(chosen) == f"float32, channels_last, torch {torch.__version__}"
    transformer = quick_tower(open_clip.model.CLIP(**TINY).eval().visual, images)
    assert arithmetic_of(transformer) == plain
    assert arithmetic_of(transformer.to(torch.bfloat16)) == f"bfloat16, torch {torch.__version__}"
