"""Frames scaled on a device are those of the host, and PyAV reads what torchcodec cannot."""

from __future__ import annotations

from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.gpu import GpuReader, fit_to_input, scale
from kinodex.pipeline.images import Fit, ModelInput, rgb_scaler
from tests.support.ffmpeg import needs_decoder, psnr_db


@pytest.mark.parametrize("fit", ["shortest", "squash", "longest"])
@pytest.mark.parametrize(
    "name",
    ["clips/torchcodec__nasa_13013.mp4", "awkward/decord__video_90.mov", "awkward/torchcodec__var_fps_video.mp4",
     "awkward/decord__corrupted.mp4"],
)  # fmt: skip
def test_frames_scaled_on_a_device_are_those_of_the_host(media: Path, name: str, fit: Fit) -> None:
    needs_decoder("torchcodec")
    path = media / name
    model_input = ModelInput(224, 192, fit, fill=90) if fit == "longest" else ModelInput(224, 224, fit)
    exact = PyavReader(path, path.name)
    aspect = Fraction(exact.metadata.sample_aspect_ratio).limit_denominator(100_000)
    to_rgb = rgb_scaler(aspect, 320, model_input.side_px)
    host = [(s.number, s.time_s, model_input(to_rgb(s.frame))) for s in exact.samples(1)]
    device = GpuReader(PyavReader(path, path.name), "cpu")
    batches = list(device.batches(1, model_input, 320))
    rows = [row for batch in batches for row in zip(batch.numbers, batch.times_s, batch.inputs.numpy(), strict=True)]
    assert [row[:2] for row in rows] == [row[:2] for row in host]
    assert all(inputs.shape == other.shape for (_, _, inputs), (_, _, other) in zip(rows, host, strict=True))
    assert min(psnr_db(a[2], b[2]) for a, b in zip(rows, host, strict=True)) >= 37
    assert device.end_s == exact.end_s
    assert (device.fell_back is not None) == (path.name == "decord__corrupted.mp4")
    longest = {max(picture.shape[:2]) for batch in batches for picture in batch.images}
    assert longest == {min(320, max(exact.metadata.width_px, exact.metadata.height_px))} or device.fell_back


@pytest.mark.skipif(find_spec("torchcodec") is not None, reason="torchcodec is installed")
def test_without_torchcodec_the_host_reads_and_says_why(film: Path) -> None:
    pytest.importorskip("torch")
    model_input = ModelInput(32, 32)
    reader = GpuReader(PyavReader(film, film.name), "cpu")
    batches = list(reader.batches(2.0, model_input, 64))
    assert [len(batch.numbers) for batch in batches] == [16, 8]
    assert [number for batch in batches for number in batch.numbers] == list(range(24))
    assert {batch.inputs.shape[1:] for batch in batches} == {(3, 32, 32)}
    assert (reader.end_s, reader.decode_errors) == (12.0, 0)
    assert reader.fell_back == "torchcodec does not load; pip install torchcodec, and FFmpeg's libraries"


@pytest.mark.parametrize("fit", ["shortest", "squash", "longest"])
@pytest.mark.parametrize("size", [(120, 68), (68, 120), (64, 64)])
def test_scaling_by_torch_is_that_of_pil(size: tuple[int, int], fit: Fit) -> None:
    torch = pytest.importorskip("torch")
    model_input = ModelInput(48, 40, fit, fill=90) if fit == "longest" else ModelInput(48, 48, fit)
    down, across = np.mgrid[0 : size[1], 0 : size[0]]
    rgb = np.stack([across * 2, down * 2, (across + down) % 256], axis=2).astype(np.uint8)
    frames = torch.from_numpy(rgb.transpose(2, 0, 1).copy())[None]
    found = fit_to_input(frames, size, model_input)[0].numpy()
    assert found.shape == model_input(rgb).shape
    assert psnr_db(found, model_input(rgb)) > 45
    assert scale(frames, *size) is frames
