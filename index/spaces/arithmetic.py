"""The arithmetic that embeds images fastest on this machine without changing the vectors' meaning."""

from __future__ import annotations

import copy
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
"""A tower with this many convolutions is made of them; a transformer has one, which cuts a picture into patches."""
TRIAL_IMAGES = 4


def quick_tower(tower: torch.nn.Module, images: torch.Tensor) -> torch.nn.Module:
    """Return the fp32 `tower`, or a copy in half precision where that is faster here and gives the same vectors.

    On a CPU that depends on the processor: the faster of two runs counts. On CUDA half precision always pays, and the
    layout of convolutions is chosen too. On a CPU a tower of convolutions has its channels last, which is quicker.
    """
    import torch

    on_cuda, convolutions = images.is_cuda, sum(isinstance(each, torch.nn.Conv2d) for each in tower.modules())
    if images.device.type == "cpu" and convolutions >= MANY_CONVOLUTIONS:
        last: Any = tower  # its weights are laid out otherwise in place, so that none is held twice
        tower = last.to(memory_format=torch.channels_last)
    if sum(parameter.numel() for parameter in tower.parameters()) < SMALL_TOWER_PARAMETERS:
        return tower
    if not on_cuda and (images.device.type != "cpu" or not computes_bf16()):
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


def computes_bf16() -> bool:
    """Return True if the processor may have instructions for bfloat16; without them it was never quicker."""
    flags = processor_facts()[1]
    return not flags or bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})


def processor_facts() -> tuple[str, frozenset[str]]:
    """Read the processor's name and its flags; where Linux does not say them, what Python knows, and no flags."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = frozenset((facts.get("flags") or facts.get("Features") or "").split())
    return facts.get("model name") or platform.processor() or platform.machine(), flags


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
    """Compute with this many threads of torch within this block; they are the process's own number, for all models."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
