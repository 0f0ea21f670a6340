"""One video in, rows out: sources, decoding, sampling, subtitles, and local models for the optional stages.

Knows video codecs and image models; no database, no cluster, no questions. Imports none of the other rooms. The names
below load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.decoding.open import DECODERS, open_video, probe
    from pipeline.errors import ModelUnusable, PipelineError, SourceError, VideoError
    from pipeline.sampling.sample import (
        Chunk,
        ChunkSummary,
        FrameRow,
        IngestSettings,
        SampledFrame,
        SamplingSettings,
        sample_chunk,
    )
    from pipeline.sources.discover import list_sources
    from pipeline.sources.fetch import FetchedVideo, Source, identify
    from pipeline.subtitles import Line

__all__ = [
    "DECODERS",
    "Chunk",
    "ChunkSummary",
    "FetchedVideo",
    "FrameRow",
    "IngestSettings",
    "Line",
    "ModelUnusable",
    "PipelineError",
    "SampledFrame",
    "SamplingSettings",
    "Source",
    "SourceError",
    "VideoError",
    "identify",
    "list_sources",
    "open_video",
    "probe",
    "sample_chunk",
]

_MODULES = {
    "pipeline.decoding.open": ("DECODERS", "open_video", "probe"),
    "pipeline.errors": ("ModelUnusable", "PipelineError", "SourceError", "VideoError"),
    "pipeline.sampling.sample": (
        "Chunk",
        "ChunkSummary",
        "FrameRow",
        "IngestSettings",
        "SampledFrame",
        "SamplingSettings",
        "sample_chunk",
    ),
    "pipeline.sources.discover": ("list_sources",),
    "pipeline.sources.fetch": ("FetchedVideo", "Source", "identify"),
    "pipeline.subtitles": ("Line",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pipeline' has no attribute {name!r}; its names are {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
