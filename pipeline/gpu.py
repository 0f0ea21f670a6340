"""Decode and scale frames on a GPU: model inputs stay there, small images for JPEGs come to the host.

torchcodec decodes (NVDEC on "cuda"), the frames are scaled by antialiased bicubic interpolation, the same kernel
as PIL's, straight from their stored size. Samples, numbers and times are those of `FrameIndex`.
Where torchcodec cannot read a video, PyAV and PIL read it on the host; `fell_back` gives the reason.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.frame_index import BATCH_FRAMES, index_frames, reason_unfit
from kinodex.pipeline.decoding.packet_plan import PlanViolated
from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.decoding.readers import PickError, Span
from kinodex.pipeline.decoding.torchcodec_reader import frames_at, open_decoder
from kinodex.pipeline.images import ModelInput, rgb_scaler, working_size

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class GpuBatch:
    """A batch of samples in order: numbers and exact times, lists `[n]`.

    `inputs` are uint8 `[n, 3, height_px, width_px]` on the device, not normalised; `images` are RGB
    `[height, width, 3]` on the host, upright with square pixels, at most `jpeg_side_px` on the longest side if they
    were scaled on the device.
    """

    numbers: list[int]
    times_s: list[float]
    inputs: torch.Tensor
    images: list[NDArray[np.uint8]]


class GpuReader:
    """Reader of one video onto a device ("cuda", "cuda:1"; "cpu" works too). `fell_back`: why the host reads it."""

    def __init__(self, exact: PyavReader, device: str) -> None:
        self._exact, self._device = exact, device
        self.metadata, self.start_s, self.decoder = exact.metadata, exact.start_s, "nvdec"
        self.end_s, self.decode_errors = exact.end_s, 0
        self.fell_back: str | None = None

    def batches(
        self, fps: float, model_input: ModelInput, jpeg_side_px: int, span: Span | None = None
    ) -> Generator[GpuBatch, None, None]:
        """Yield the samples of a video, or of a span of it, each once, in order; raises SpanDamaged."""
        last_number, self.fell_back = -1, None
        try:
            for batch in self._device_batches(fps, model_input, jpeg_side_px, span):
                last_number = batch.numbers[-1]
                yield batch
            return
        except (PickError, PlanViolated) as error:
            self.fell_back = str(error)
        yield from self._host_batches(fps, model_input, jpeg_side_px, span, last_number)
        self.end_s = self._exact.end_s
        self.decode_errors += self._exact.decode_errors

    def _device_batches(
        self, fps: float, model_input: ModelInput, jpeg_side_px: int, span: Span | None
    ) -> Iterator[GpuBatch]:
        if reason := reason_unfit("torchcodec", self.metadata):
            raise PickError(reason)
        index = index_frames(self._exact, fps, span)
        decoder = open_decoder(self._exact.path, self.metadata.stream_index, self._device)
        index.check_count(len(decoder))
        aspect = Fraction(self.metadata.sample_aspect_ratio).limit_denominator(100_000)
        shown = self._exact.size_px[0] * aspect, Fraction(self._exact.size_px[1])
        image_px = working_size(*shown, jpeg_side_px, 1)
        working_px = working_size(*shown, jpeg_side_px, model_input.side_px)  # its rounding decides where to cut
        for batch in index.batches():
            times, frames = frames_at(decoder, batch.indices)
            batch.check_frames(times, frames.shape[3], frames.shape[2])
            small = scale(frames, *image_px).permute(0, 2, 3, 1).cpu().numpy()
            yield GpuBatch(batch.numbers, batch.times_s, fit_to_input(frames, working_px, model_input), list(small))
        self.end_s = index.end_s

    def _host_batches(
        self, fps: float, model_input: ModelInput, jpeg_side_px: int, span: Span | None, last_number: int
    ) -> Iterator[GpuBatch]:
        import torch

        aspect = Fraction(self.metadata.sample_aspect_ratio).limit_denominator(100_000)
        to_rgb = rgb_scaler(aspect, jpeg_side_px, model_input.side_px)
        samples = (each for each in self._exact.samples(fps, span) if each.number > last_number)
        rows = ((each.number, each.time_s, to_rgb(each.frame, each.aspect)) for each in samples)
        while batch := list(islice(rows, BATCH_FRAMES)):
            numbers, times_s, images = map(list, zip(*batch, strict=True))
            inputs = torch.from_numpy(np.stack([model_input(image) for image in images]))
            yield GpuBatch(numbers, times_s, inputs.to(self._device), images)


def scale(frames: torch.Tensor, width_px: int, height_px: int, mode: str = "bicubic") -> torch.Tensor:
    """Scale uint8 `[n, 3, H, W]` to uint8 `[n, 3, height_px, width_px]`, antialiased, on their device."""
    from torch.nn.functional import interpolate

    if frames.shape[2:] == (height_px, width_px):
        return frames
    result = interpolate(frames.float(), (height_px, width_px), mode=mode, antialias=True)
    return result.round_().clamp_(0, 255).byte()


def fit_to_input(frames: torch.Tensor, working_px: tuple[int, int], model_input: ModelInput) -> torch.Tensor:
    """Make the inputs that `model_input` makes of images of a width and height in px, straight from the frames."""
    from torch.nn.functional import pad

    width_px, height_px = model_input.scaled_size(*working_px)
    frames = scale(frames, width_px, height_px, "bilinear" if model_input.is_bilinear else "bicubic")
    wide, high = model_input.width_px - width_px, model_input.height_px - height_px
    filling = [max(0, wide) // 2, max(0, wide) - max(0, wide) // 2, max(0, high) // 2, max(0, high) - max(0, high) // 2]
    frames = pad(frames, filling, value=model_input.fill)
    left, top = round(max(0, -wide) / 2), round(max(0, -high) / 2)
    return frames[:, :, top : top + model_input.height_px, left : left + model_input.width_px]
