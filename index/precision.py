"""Which arithmetic embeds images fastest on this machine without changing what they mean."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

WORTH_IT = 1.5
"""bf16 must be this much quicker to be taken: it wins 3 to 7 times or loses, so noise does not decide."""
LEAST_COSINE = 0.9995
SMALL_TOWER_PARAMETERS = 20_000_000
"""Towers below this stay in fp32: they are quick anyway, and so give the same vectors on every machine."""
TRIAL_IMAGES = 4


def quick_tower(tower: torch.nn.Module, images: torch.Tensor) -> torch.nn.Module:
    """The fp32 `tower`, or a bf16 copy of it where that is much quicker here and gives the same vectors.

    Measured on the first of `images` (float32 [n, 3, h, w]); whether bf16 pays depends on the processor's
    instructions, which its name does not tell. The faster of two runs counts, so the first may warm up.
    """
    import torch

    if sum(parameter.numel() for parameter in tower.parameters()) < SMALL_TOWER_PARAMETERS:
        return tower
    trial = images[:TRIAL_IMAGES]
    low = copy.deepcopy(tower).to(torch.bfloat16)
    full_s, full = _timed(tower, trial)
    low_s, rounded = _timed(low, trial)
    cosine = torch.nn.functional.cosine_similarity(full, rounded.float(), dim=-1).min()
    return low if full_s > WORTH_IT * low_s and cosine >= LEAST_COSINE else tower


def features_of(tower: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
    """What an open_clip image tower says of `images`, in the tower's own number format."""
    features = tower(images.to(next(tower.parameters()).dtype))
    pooled: torch.Tensor = features[0] if isinstance(features, tuple) else features  # CoCa also gives its tokens
    return pooled


def _timed(tower: torch.nn.Module, images: torch.Tensor) -> tuple[float, torch.Tensor]:
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        features = features_of(tower, images)
        seconds.append(time.perf_counter() - began)
    return min(seconds), features
