"""Frames that stay on the device that decodes them: model inputs there, small pictures for JPEGs on the host.

torchcodec decodes (NVDEC on "cuda"), the frames are scaled by antialiased bicubic interpolation, the same kernel
as PIL's, straight from their stored size. Samples, numbers and times are those of `pipeline.decoding.frame_index`. What torchcodec
cannot read goes through PyAV and PIL on the host, and the reason is kept.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.frame_index import BATCH_FRAMES, index_frames
from pipeline.decoding.packet_plan import PlanViolated
from pipeline.decoding.pyav_reader import PyavReader
from pipeline.decoding.select import PickError, unfit
from pipeline.decoding.spans import Span
from pipeline.decoding.torchcodec_backend import frames_at, open_decoder
from pipeline.images.convert import rgb_scaler, working_size
from pipeline.images.preprocess import ModelInput

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class DeviceBatch:
    """Some samples in order: numbers and exact times, lists `[n]`.

    `inputs` are uint8 `[n, 3, height_px, width_px]` on the device, not normalised; `pictures` are RGB
    `[height, width, 3]` on the host, upright with square pixels, at most `jpeg_side_px` on the longest side if they
    were scaled on the device.
    """

    numbers: list[int]
    times_s: list[float]
    inputs: torch.Tensor
    pictures: list[NDArray[np.uint8]]


class DeviceReader:
    """Reads one video onto a device ("cuda", "cuda:1"; "cpu" works too). `fell_back` says why the host took over."""

    def __init__(self, exact: PyavReader, device: str) -> None:
        self._exact, self._device = exact, device
        self.facts, self.start_s, self.decoder = exact.facts, exact.start_s, "nvdec"
        self.end_s, self.decode_errors = exact.end_s, 0
        self.fell_back: str | None = None

    def batches(
        self, fps: float, model_input: ModelInput, jpeg_side_px: int, span: Span | None = None
    ) -> Generator[DeviceBatch, None, None]:
        """The samples of a video, or of a span of it, each once, in order.

        Raises:
            SpanDamaged: a span cannot be read by itself; read the whole video.
        """
        given, self.fell_back = -1, None
        try:
            for batch in self._decoded(fps, model_input, jpeg_side_px, span):
                given = batch.numbers[-1]
                yield batch
            return
        except (PickError, PlanViolated) as error:
            self.fell_back = str(error)
        yield from self._on_host(fps, model_input, jpeg_side_px, span, given)
        self.end_s = self._exact.end_s
        self.decode_errors += self._exact.decode_errors

    def _decoded(
        self, fps: float, model_input: ModelInput, jpeg_side_px: int, span: Span | None
    ) -> Iterator[DeviceBatch]:
        if reason := unfit("torchcodec", self.facts):
            raise PickError(reason)
        picks = index_frames(self._exact, fps, span)
        decoder = open_decoder(self._exact.path, self.facts.stream_index, self._device)
        picks.expect_count(len(decoder))
        aspect = Fraction(self.facts.sample_aspect_ratio).limit_denominator(100_000)
        shown = self._exact.size_px[0] * aspect, Fraction(self._exact.size_px[1])
        picture_px = working_size(*shown, jpeg_side_px, 1)
        working_px = working_size(*shown, jpeg_side_px, model_input.side_px)  # its rounding decides where to cut
        for batch in picks.batches():
            times, frames = frames_at(decoder, batch.indices)
            batch.expect(times, frames.shape[3], frames.shape[2])
            small = scaled(frames, *picture_px).permute(0, 2, 3, 1).cpu().numpy()
            yield DeviceBatch(batch.numbers, batch.times_s, fitted(frames, working_px, model_input), list(small))
        self.end_s = picks.end_s

    def _on_host(
        self, fps: float, model_input: ModelInput, jpeg_side_px: int, span: Span | None, given: int
    ) -> Iterator[DeviceBatch]:
        import torch

        aspect = Fraction(self.facts.sample_aspect_ratio).limit_denominator(100_000)
        to_rgb = rgb_scaler(aspect, jpeg_side_px, model_input.side_px)
        rows = ((s.number, s.time_s, to_rgb(s.frame)) for s in self._exact.samples(fps, span) if s.number > given)
        while batch := list(islice(rows, BATCH_FRAMES)):
            numbers, times_s, pictures = map(list, zip(*batch, strict=True))
            inputs = torch.from_numpy(np.stack([model_input(picture) for picture in pictures]))
            yield DeviceBatch(numbers, times_s, inputs.to(self._device), pictures)


def scaled(frames: torch.Tensor, width_px: int, height_px: int, mode: str = "bicubic") -> torch.Tensor:
    """uint8 `[n, 3, H, W]` to uint8 `[n, 3, height_px, width_px]`, antialiased, on their device."""
    from torch.nn.functional import interpolate

    if frames.shape[2:] == (height_px, width_px):
        return frames
    result = interpolate(frames.float(), (height_px, width_px), mode=mode, antialias=True)
    return result.round_().clamp_(0, 255).byte()


def fitted(frames: torch.Tensor, working_px: tuple[int, int], model_input: ModelInput) -> torch.Tensor:
    """What `model_input` would make of pictures of a width and height in px, straight from the frames."""
    from torch.nn.functional import pad

    width_px, height_px = model_input.scaled_size(*working_px)
    frames = scaled(frames, width_px, height_px, "bilinear" if model_input.is_bilinear else "bicubic")
    wide, high = model_input.width_px - width_px, model_input.height_px - height_px
    filling = [max(0, wide) // 2, max(0, wide) - max(0, wide) // 2, max(0, high) // 2, max(0, high) - max(0, high) // 2]
    frames = pad(frames, filling, value=model_input.fill)
    left, top = round(max(0, -wide) / 2), round(max(0, -high) / 2)
    return frames[:, :, top : top + model_input.height_px, left : left + model_input.width_px]
