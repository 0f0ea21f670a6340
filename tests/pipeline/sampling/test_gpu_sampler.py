"""The sampler in this process gives the frames of the sandbox, with the model's inputs on its device."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.errors import NotAVideo
from kinodex.pipeline.gpu import GpuSampler
from kinodex.pipeline.sample import Chunk, ChunkSummary, SampledFrame
from tests.support.ffmpeg import READING, read_whole, whole

torch = pytest.importorskip("torch")


def sampled(chunk: Chunk) -> tuple[ChunkSummary, list[SampledFrame]]:
    with closing(GpuSampler("cpu")) as sampler:
        *batches, summary = sampler.sample(chunk, READING)
    assert isinstance(summary, ChunkSummary)
    return summary, [frame for batch in batches if isinstance(batch, list) for frame in batch]


def test_frames_and_summary_are_those_of_the_host(film: Path) -> None:
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


def test_spans_are_those_of_the_whole(film: Path) -> None:
    sampler, settings = GpuSampler("cpu"), replace(READING, cut_s=4.0)
    spans = sampler.split(whole(film), settings)
    parts = [sampled(Chunk(whole(film).video, span, len(spans), index))[1] for index, span in enumerate(spans)]
    assert len(parts) > 1
    assert [frame[:2] for part in parts for frame in part] == [frame[:2] for frame in sampled(whole(film))[1]]


def test_a_file_that_is_no_video_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "words.mp4"
    path.write_text("only words")
    with pytest.raises(NotAVideo, match=r"words\.mp4"):
        sampled(whole(path))
