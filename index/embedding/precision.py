"""Choose the arithmetic that embeds images fastest on this machine without changing the vectors' meaning."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

MIN_CPU_SPEEDUP = 1.5
"""On a CPU bf16 must be this much quicker to be taken: it wins 3 to 7 times or loses, so noise does not decide."""
MIN_CUDA_SPEEDUP = 1.1
"""On CUDA another layout or a compiled tower must be this much quicker."""
MIN_COSINE = 0.9995
SMALL_TOWER_PARAMETERS = 20_000_000
"""Towers below this stay in fp32: they are quick anyway, and so give the same vectors on every machine."""
MANY_CONVOLUTIONS = 3
"""A tower with so many convolutions is made of them; a transformer has one, which cuts a picture into patches."""
TRIAL_IMAGES = 4
LONG_RUN_BATCHES = 500
"""A run that has come so far goes on for long enough that the minute which compiling takes comes back."""


def quick_tower(tower: torch.nn.Module, images: torch.Tensor) -> torch.nn.Module:
    """Return the fp32 `tower`, or a copy in half precision where that is faster here and gives the same vectors.

    Measured on the first of `images` (float32 [n, 3, h, w]); whether bf16 pays on a CPU depends on the processor's
    instructions, which its name does not tell. The faster of two runs counts, so the first may warm up. On CUDA half
    precision always pays, and the layout of convolutions is chosen too. On a CPU a tower of convolutions has its
    channels last, which is 1.4 times as quick (docs/measured.md) and changes no vector by more than rounding.
    """
    import torch

    on_cuda = images.is_cuda
    if images.device.type == "cpu" and _convolutions(tower) >= MANY_CONVOLUTIONS:
        last: Any = tower  # its weights are laid out otherwise in place, so that none is held twice
        tower = last.to(memory_format=torch.channels_last)
    if sum(parameter.numel() for parameter in tower.parameters()) < SMALL_TOWER_PARAMETERS:
        return tower
    if not on_cuda and images.device.type != "cpu":
        return tower
    half = torch.float16 if on_cuda and not torch.cuda.is_bf16_supported() else torch.bfloat16
    trial = images[:TRIAL_IMAGES]
    low = copy.deepcopy(tower).to(half)
    full_s, full = _timed(tower, trial)
    low_s, rounded = _timed(low, trial)
    cosine = torch.nn.functional.cosine_similarity(full, rounded.float(), dim=-1).min()
    if cosine < MIN_COSINE or not (on_cuda or full_s > MIN_CPU_SPEEDUP * low_s):
        return tower
    return _in_quicker_layout(low, images) if on_cuda else low


def compiled_tower(tower: torch.nn.Module, images: torch.Tensor) -> torch.nn.Module:
    """Compile the `tower` on CUDA for batches like `images`, and return the faster of the two."""
    if not images.is_cuda:
        return tower
    compiled = copy.copy(tower)  # of the same weights
    compiled.compile()
    try:
        compiled_s, _ = _timed(compiled, images)
    except Exception:  # a compiler that is missing, or that fails on this model, says so in a hundred ways
        return tower
    plain_s, _ = _timed(tower, images)
    return compiled if plain_s > MIN_CUDA_SPEEDUP * compiled_s else tower


def features_of(tower: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Compute the features of `images` by an open_clip image tower, in the tower's own number format."""
    features = tower(images.to(next(tower.parameters(), images).dtype))
    pooled: torch.Tensor = features[0] if isinstance(features, tuple) else features  # CoCa also gives its tokens
    return pooled


def arithmetic_of(tower: torch.nn.Module) -> str:
    """Describe the arithmetic of a tower: number format, layout if it is not the usual one, version of torch."""
    import torch

    weights = list(tower.parameters())
    format_name = str(next(iter(weights), torch.empty(0)).dtype).removeprefix("torch.")
    is_last = any(each.dim() == 4 and not each.is_contiguous() for each in weights)
    layout = ["channels_last"] if is_last else []
    return ", ".join([format_name, *layout, f"torch {torch.__version__}"])


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Compute with so many threads of torch within this block; they are the process's own number, for all models."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _convolutions(tower: torch.nn.Module) -> int:
    import torch

    return sum(isinstance(each, torch.nn.Conv2d) for each in tower.modules())


def _in_quicker_layout(tower: torch.nn.Module, images: torch.Tensor) -> torch.nn.Module:
    import torch

    channels_last: Any = copy.deepcopy(tower)
    channels_last.to(memory_format=torch.channels_last)
    plain_s, _ = _timed(tower, images)
    last_s, _ = _timed(channels_last, images)
    quickest: torch.nn.Module = channels_last if plain_s > MIN_CUDA_SPEEDUP * last_s else tower
    return quickest


def _timed(tower: torch.nn.Module, images: torch.Tensor) -> tuple[float, torch.Tensor]:
    import torch

    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        features = features_of(tower, images)
        if images.is_cuda:
            torch.cuda.synchronize(images.device)
        seconds.append(time.perf_counter() - began)
    return min(seconds), features
