"""Frames scaled on a device are those of the host, and PyAV reads what torchcodec cannot."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.errors import NotAVideo
from kinodex.pipeline.gpu import GpuReader, fit_to_input, scale
from kinodex.pipeline.gpu_sampler import GpuSampler
from kinodex.pipeline.images import ModelInput, rgb_scaler
from kinodex.pipeline.sample import Chunk, ChunkSummary, SampledFrame
from tests.support.ffmpeg import READING, needs_decoder, psnr_db, read_whole, whole

torch = pytest.importorskip("torch")


def test_frames_scaled_on_a_device_are_those_of_the_host(media: Path) -> None:
    needs_decoder("torchcodec")
    names = ["clips/torchcodec__nasa_13013.mp4", "awkward/decord__video_90.mov"]
    names += ["awkward/torchcodec__var_fps_video.mp4", "awkward/decord__corrupted.mp4"]
    fits = ModelInput(224, 224, "shortest"), ModelInput(224, 224, "squash"), ModelInput(224, 192, "longest", fill=90)
    for name, model_input in product(names, fits):
        path = media / name
        exact = PyavReader(path, path.name)
        aspect = Fraction(exact.metadata.sample_aspect_ratio).limit_denominator(100_000)
        to_rgb = rgb_scaler(aspect, 320, model_input.side_px)
        host = [(s.number, s.time_s, model_input(to_rgb(s.frame))) for s in exact.samples(1)]
        device = GpuReader(PyavReader(path, path.name), "cpu")
        batches = list(device.batches(1, model_input, 320))
        rows = [row for each in batches for row in zip(each.numbers, each.times_s, each.inputs.numpy(), strict=True)]
        assert [row[:2] for row in rows] == [row[:2] for row in host], path.name
        assert all(row[2].shape == other[2].shape for row, other in zip(rows, host, strict=True)), path.name
        assert min(psnr_db(a[2], b[2]) for a, b in zip(rows, host, strict=True)) >= 37, path.name
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


def test_scaling_by_torch_is_that_of_pil() -> None:
    fits = ModelInput(48, 48, "shortest"), ModelInput(48, 48, "squash"), ModelInput(48, 40, "longest", fill=90)
    for size, model_input in product([(120, 68), (68, 120), (64, 64)], fits):
        down, across = np.mgrid[0 : size[1], 0 : size[0]]
        rgb = np.stack([across * 2, down * 2, (across + down) % 256], axis=2).astype(np.uint8)
        frames = torch.from_numpy(rgb.transpose(2, 0, 1).copy())[None]
        found = fit_to_input(frames, size, model_input)[0].numpy()
        assert found.shape == model_input(rgb).shape, (size, model_input)
        assert psnr_db(found, model_input(rgb)) > 45, (size, model_input)
        assert scale(frames, *size) is frames


def sampled(chunk: Chunk) -> tuple[ChunkSummary, list[SampledFrame]]:
    with closing(GpuSampler("cpu")) as sampler:
        *batches, summary = sampler.sample(chunk, READING)
    assert isinstance(summary, ChunkSummary)
    return summary, [frame for batch in batches if isinstance(batch, list) for frame in batch]


def test_the_sampler_gives_the_frames_and_summary_of_the_host_and_spans_those_of_the_whole(film: Path) -> None:
    expected, reference = read_whole(film)
    summary, frames = sampled(whole(film))
    assert [frame[:2] for frame in frames] == [frame[:2] for frame in reference]
    assert [(frame.width_px, frame.height_px) for frame in frames] == [(128, 64)] * 12
    assert (summary.metadata, summary.start_s, summary.end_s) == (expected.metadata, 0.0, expected.end_s)
    assert set(summary.seconds) == {"decode", "jpeg", "subtitles"}
    for frame, other in zip(frames, reference, strict=True):
        assert isinstance(frame.model_input, torch.Tensor)
        difference = frame.model_input.numpy().astype(int) - other.model_input
        assert np.abs(difference).max() <= (0 if summary.fell_back else 24)
    spans = GpuSampler("cpu").split(whole(film), replace(READING, cut_s=4.0))
    parts = [sampled(Chunk(whole(film).video, span, len(spans), index))[1] for index, span in enumerate(spans)]
    assert len(parts) > 1
    assert [frame[:2] for part in parts for frame in part] == [frame[:2] for frame in frames]


def test_a_file_that_is_no_video_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "words.mp4"
    path.write_text("only words")
    with pytest.raises(NotAVideo, match=r"words\.mp4"):
        sampled(whole(path))
