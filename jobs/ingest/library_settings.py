"""Which settings a library's rows depend on, and those that it has."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from index.library import Library
from pipeline.sampling.settings import IngestSettings


def held_settings(uri: str | None) -> dict[str, Any]:
    """What the library at `uri` was made with, for whoever adds to it without asking for anything else; {} if none."""
    if uri is None or not Library.exists(uri):
        return {}
    held = Library.open(uri)
    return dict(held.settings) | {"space": held.space_name}


def library_settings(settings: IngestSettings) -> dict[str, Any]:
    """The settings that a library's rows depend on."""
    return asdict(settings)
