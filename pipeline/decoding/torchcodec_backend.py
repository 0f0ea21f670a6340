"""torchcodec as a list of frames: on the CPU, or decoded by NVDEC and copied to the host.

It loads the machine's own FFmpeg libraries. Its index is exact: it reads all packets when it opens a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.base import PickError

if TYPE_CHECKING:
    import torch
    from torchcodec.decoders import VideoDecoder

# Raised for files that it cannot read; its own faults look no different.
FAILURES = (RuntimeError, ValueError, IndexError, NotImplementedError)


def open_decoder(path: Path, stream_index: int, device: str) -> VideoDecoder:
    """Open a decoder of one stream onto `device` ("cpu", "cuda", "cuda:1"), frames `[n, 3, height, width]`.

    Raises:
        PickError: torchcodec is missing or cannot read the file.
    """
    try:
        from torchcodec import decoders
    except (ImportError, OSError, RuntimeError) as error:
        raise PickError("torchcodec does not load; pip install torchcodec, and FFmpeg's libraries") from error
    if device != "cpu" and hasattr(decoders, "set_nvdec_cache_capacity"):
        decoders.set_nvdec_cache_capacity(0)  # decoders used again after a change of size mis-crop: torchcodec#1704
    try:
        return decoders.VideoDecoder(
            str(path), stream_index=stream_index, device=device, seek_mode="exact", num_ffmpeg_threads=1
        )
    except FAILURES as error:
        raise PickError(f"torchcodec opens nothing ({_first_line(error)})") from error


def frames_at(decoder: VideoDecoder, indices: Sequence[int]) -> tuple[NDArray[np.float64], torch.Tensor]:
    """Decode frames: times `[n]` in seconds after the first frame, RGB `[n, 3, height, width]` uint8 on the device.

    Raises:
        PickError: it cannot.
    """
    try:
        batch = decoder.get_frames_at(list(indices))
    except FAILURES as error:
        raise PickError(f"torchcodec stops ({_first_line(error)})") from error
    start_s = decoder.metadata.begin_stream_seconds or 0.0
    return np.asarray(batch.pts_seconds.cpu().numpy(), np.float64) - start_s, batch.data


class TorchcodecFrames:
    """A `FrameSource`."""

    def __init__(self, path: Path, stream_index: int, device: str) -> None:
        self._decoder = open_decoder(path, stream_index, device)

    def __len__(self) -> int:
        return len(self._decoder)

    def __call__(self, indices: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """See `FrameSource`."""
        times, images = frames_at(self._decoder, indices)
        return times, np.asarray(images.permute(0, 2, 3, 1).contiguous().cpu().numpy(), np.uint8)


def _first_line(error: Exception) -> str:
    """Shorten a message that may go on for pages."""
    return str(error).strip().split("\n", 1)[0][:200]
