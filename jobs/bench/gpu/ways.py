"""Ways of an ingest on this machine: where frames are decoded and embedded, and what a way lacks here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

NO_GPU = "torch sees no GPU here"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ingest: a `decoder` setting and a `device` setting. `missing`: why it is left out here."""

    name: str
    decoder: str
    device: str
    missing: str | None = None


REFERENCE = Way("CPU", "auto", "cpu")
"""The way that the others are compared with."""
CONTROL = Way("CPU, again", "auto", "cpu")
"""What two runs of the same way differ by."""
EMBEDS_ON_GPU = Way("GPU embeds", "auto", "cuda")
ALL_ON_GPU = Way("GPU decodes and embeds", "nvdec", "cuda")
GPU_CODE_ON_CPU = Way("code for the GPU, on the CPU", "nvdec", "cpu")


def list_ways(film: Path, with_gpu: bool = True) -> list[Way]:
    """List the ways, those that are left out here too, the reference first.

    With a GPU that torch sees they are the reference and those on the GPU; without one, or with `with_gpu` false, the
    control and the GPU's code on the CPU take their places. `film` is opened to see whether NVDEC decodes it.
    """
    import torch

    if not with_gpu or not torch.cuda.is_available():
        why = NO_GPU if with_gpu else "the GPU is not to be used"
        on_gpu = [replace(way, missing=why) for way in (EMBEDS_ON_GPU, ALL_ON_GPU)]
        return [REFERENCE, CONTROL, replace(GPU_CODE_ON_CPU, missing=_reason_unread(film, "cpu")), *on_gpu]
    return [REFERENCE, EMBEDS_ON_GPU, replace(ALL_ON_GPU, missing=_reason_unread(film, "cuda"))]


def _reason_unread(film: Path, device: str) -> str | None:
    """Explain why torchcodec does not decode `film` on `device`; None if it does.

    torchcodec decodes on the CPU in silence where NVDEC is missing or does not know the codec: its decoder's
    `cpu_fallback` is true then (torchcodec 0.13, decoders/_video_decoder.py).
    """
    from pipeline.decoding.base import PickError
    from pipeline.decoding.open import probe
    from pipeline.decoding.torchcodec_backend import open_decoder

    try:
        decoder = open_decoder(film, probe(film).stream_index, device)
    except PickError as error:
        return str(error)
    return str(decoder.cpu_fallback) if device != "cpu" and decoder.cpu_fallback else None
