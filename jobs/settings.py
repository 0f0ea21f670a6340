"""Which settings an ingest runs with: what the user asked for, else the library's own, else the defaults."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from index.library import Library
from index.spaces import DEFAULT_SPACE
from jobs.errors import UsageError
from pipeline.ingest import IngestSettings


def ingest_plan(uri: str, fps: float | None, jpeg_side_px: int | None, space: str | None) -> tuple[IngestSettings, str]:
    """Settings and the name of the space for one ingest into the library at `uri`, which need not exist yet.

    An existing library refuses settings other than its own when it is opened; asked for nothing, it keeps its own.
    """
    wanted: dict[str, Any] = {"fps": fps, "jpeg_side_px": jpeg_side_px}
    settings, name = {}, DEFAULT_SPACE
    if Library.exists(uri):
        held = Library.open(uri)
        settings, name = dict(held.settings), held.space_name
    settings |= {key: value for key, value in wanted.items() if value is not None}
    return checked_settings(**settings), space or name


def checked_settings(**settings: Any) -> IngestSettings:
    """IngestSettings, or a UsageError that says which value is out of range."""
    try:
        return IngestSettings(**settings)
    except ValueError as error:
        raise UsageError(str(error)) from error


def library_settings(settings: IngestSettings) -> dict[str, Any]:
    """The settings that a library's rows depend on; how many frames are embedded at a time is not one of them."""
    return {key: value for key, value in asdict(settings).items() if key != "batch_size"}
