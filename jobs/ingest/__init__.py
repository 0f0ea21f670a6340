"""Ingest: many sources into one library, on threads of this process or on Ray. `kinodex ingest`.

May import pipeline, index and the modules at the top of jobs; nothing of the other folders. The names below load when
they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.ingest.config import IngestConfig
    from jobs.ingest.manifest import read_manifest
    from jobs.ingest.outcomes import IngestReport, Progress, SourceOutcome
    from jobs.ingest.run import run_ingest

__all__ = ["IngestConfig", "IngestReport", "Progress", "SourceOutcome", "read_manifest", "run_ingest"]

_HOMES = {
    "IngestConfig": "config",
    "Progress": "outcomes",
    "IngestReport": "outcomes",
    "SourceOutcome": "outcomes",
    "read_manifest": "manifest",
    "run_ingest": "run",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; its names are {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
