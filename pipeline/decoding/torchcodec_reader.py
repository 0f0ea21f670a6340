"""torchcodec as a list of frames: on the CPU, or decoded by NVDEC and copied to the host.

It loads the machine's own FFmpeg libraries. Its index is exact: it reads all packets when it opens a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.readers import FrameSource, PickError
from kinodex.pipeline.errors import first_line

if TYPE_CHECKING:
    import torch
    from torchcodec.decoders import VideoDecoder

# Raised for files that it cannot read; its own faults look no different.
FAILURES = (RuntimeError, ValueError, IndexError, NotImplementedError)


def open_decoder(path: Path, stream_index: int, device: str) -> VideoDecoder:
    """Open a decoder of one stream onto `device`, frames `[n, 3, height, width]`; raises PickError if it cannot."""
    try:
        from torchcodec import decoders
    except (ImportError, OSError, RuntimeError) as error:
        raise PickError("torchcodec does not load; pip install torchcodec, and FFmpeg's libraries") from error
    if device != "cpu" and hasattr(decoders, "set_nvdec_cache_capacity"):
        decoders.set_nvdec_cache_capacity(0)  # decoders used again after a change of size mis-crop: torchcodec#1704
    try:
        decoder = decoders.VideoDecoder(
            str(path), stream_index=stream_index, device=device, seek_mode="exact", num_ffmpeg_threads=1
        )
    except FAILURES as error:
        raise PickError(f"torchcodec opens nothing ({first_line(error)})") from error
    # Where NVDEC is missing or does not know the codec, torchcodec would decode on the CPU in silence.
    if device != "cpu" and (fallback := getattr(decoder, "cpu_fallback", None)):
        raise PickError(str(fallback))
    return decoder


def frames_at(decoder: VideoDecoder, indices: Sequence[int]) -> tuple[NDArray[np.float64], torch.Tensor]:
    """Seconds `[n]` after the first frame, RGB `[n, 3, height, width]` uint8 on the device; raises PickError."""
    try:
        batch = decoder.get_frames_at(list(indices))
    except FAILURES as error:
        raise PickError(f"torchcodec stops ({first_line(error)})") from error
    start_s = decoder.metadata.begin_stream_seconds or 0.0
    return np.asarray(batch.pts_seconds.cpu().numpy(), np.float64) - start_s, batch.data


def torchcodec_frames(path: Path, stream_index: int, device: str) -> FrameSource:
    decoder = open_decoder(path, stream_index, device)

    def decode(indices: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        times, images = frames_at(decoder, indices)
        return times, np.asarray(images.permute(0, 2, 3, 1).contiguous().cpu().numpy(), np.uint8)

    return len(decoder), decode
