"""Rates of the stages alone: positive, for as long as requested, and honest about who decoded."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from kinodex.bench import gpu
from kinodex.pipeline.images import ModelInput
from kinodex.pipeline.sample import SamplingSettings

SETTINGS = SamplingSettings(1.0, 64, 85, "auto", ModelInput(96, 96, "squash"), batch=8)


@pytest.mark.slow
def test_decoding_is_measured_in_processes_of_their_own(film: Path) -> None:
    rate = gpu.decode_on_cpus([film], SETTINGS, processes=2, work_s=0.1)
    assert rate.frames_a_s > 0
    assert rate.child_mb > 20


def test_the_rate_of_a_decoder_that_pyav_replaced_says_so(film: Path) -> None:
    pytest.importorskip("torch")
    rate = gpu.decode_on_device([film, film], SETTINGS, "cpu", threads=2, work_s=0.1)
    assert rate.frames_a_s > 0
    has_torchcodec = importlib.util.find_spec("torchcodec") is not None
    assert rate.remark == "" if has_torchcodec else "PyAV read" in rate.remark and "torchcodec" in rate.remark


@pytest.mark.parametrize("on_device", [False, True])
def test_embedding_says_with_what_arithmetic(on_device: bool) -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    rate = gpu.embed_on("cpu", "builtin", batch=4, cores=2, work_s=0.05, on_device=on_device)
    assert rate.frames_a_s > 0
    assert "torch" in rate.remark
    assert torch.get_num_threads() == before
