"""Ways of an ingest: those of this machine, and why the others are left out."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from kinodex.bench.gpu import ALL_ON_GPU, CONTROL, EMBEDS_ON_GPU, GPU_CODE_ON_CPU, NO_GPU, REFERENCE, list_ways


def test_without_a_gpu_the_control_and_the_reasons_take_its_place(film: Path) -> None:
    torch = pytest.importorskip("torch")
    has_gpu = torch.cuda.is_available()
    ways = {way.name: way.missing for way in list_ways(film, with_gpu=False)}
    assert list(ways)[:2] == [REFERENCE.name, CONTROL.name]
    assert ways[REFERENCE.name] is ways[CONTROL.name] is None
    why = ways[GPU_CODE_ON_CPU.name]
    has_torchcodec = importlib.util.find_spec("torchcodec") is not None
    assert why is None if has_torchcodec else why is not None and "pip install torchcodec" in why
    assert ways[EMBEDS_ON_GPU.name] == ways[ALL_ON_GPU.name] == "the GPU is not to be used"
    on_gpu = {way.name: way.missing for way in list_ways(film)}
    assert on_gpu[EMBEDS_ON_GPU.name] == (None if has_gpu else NO_GPU)
