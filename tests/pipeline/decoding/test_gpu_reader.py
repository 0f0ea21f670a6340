"""Frames scaled on a device are those of the host, and PyAV reads what torchcodec cannot."""

from __future__ import annotations

import importlib
from fractions import Fraction
from pathlib import Path

import pytest

from pipeline.decoding.gpu_reader import GpuReader
from pipeline.decoding.pyav_reader import PyavReader
from pipeline.images.convert import rgb_scaler
from pipeline.images.preprocess import Fit, ModelInput
from tests.support.ffmpeg import psnr_db

# Where each gives way to PyAV, and why.
FALLS_BACK = {
    "decord": {
        "clipvideoencode__vid2.mp4": "179 frames where the packets hold 134",
        "decord__corrupted.mp4": "decord stops",
        "mediabunny__annex-b.mp4": "damaged",
        "mediabunny__av1-aac.avi": "opens nothing",
        "mediabunny__edit-list-discard.mp4": "50 frames where the packets hold 49",
        "mediabunny__hevc-aac.avi": "without presentation times",
        "mediabunny__hevc.ts": "transport stream",
        "mediabunny__no-initial-keyframe.ts": "transport stream",
        "mediabunny__whatdoesitdo.mp4": "open groups",
        "moviepy__no_duration.webm": "opens nothing",
        "simpl__tears_of_steel_av1.webm": "opens nothing",
        "simpl__track_audiosprites_video.webm": "double",
        "torchcodec__h265_video.mp4": "open groups",
    },
    "torchcodec": {
        "clipvideoencode__vid2.mp4": "other times",
        "decord__corrupted.mp4": "torchcodec stops",
        "mediabunny__annex-b.mp4": "damaged",
        "mediabunny__hevc-aac.avi": "without presentation times",
        "mediabunny__hevc.ts": "other times",
        "mediabunny__no-initial-keyframe.ts": "does not begin",
        "mediabunny__whatdoesitdo.mp4": "0 frames where the packets hold 2",
        "simpl__track_audiosprites_video.webm": "double",
    },
}


def needs(decoder: str) -> None:
    """Skips the test where a decoder cannot be imported."""
    try:
        importlib.import_module(decoder)
    except (ImportError, OSError, RuntimeError):
        pytest.skip(f"{decoder} cannot be imported")


@pytest.mark.parametrize("fit", ["shortest", "squash", "longest"])
@pytest.mark.parametrize(
    "name",
    ["clips/torchcodec__nasa_13013.mp4", "awkward/decord__video_90.mov", "awkward/torchcodec__var_fps_video.mp4",
     "awkward/decord__corrupted.mp4"],
)  # fmt: skip
def test_frames_scaled_on_a_device_are_those_of_the_host(media: Path, name: str, fit: Fit) -> None:
    needs("torchcodec")
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
    assert (device.fell_back is not None) == (path.name in FALLS_BACK["torchcodec"])
    longest = {max(picture.shape[:2]) for batch in batches for picture in batch.images}
    assert longest == {min(320, max(exact.metadata.width_px, exact.metadata.height_px))} or device.fell_back
