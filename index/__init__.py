"""The library: Lance tables, embedding spaces and search.

It imports none of the other rooms, and knows no video codec, no Ray and no language model. The names below load on
first use, so that `import index` alone loads neither Lance nor torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from index.errors import KinodexError, LibraryError, SpaceError
    from index.library import Library
    from index.library_reader import LibraryReader
    from index.rows import (
        CaptionRow,
        ClipRow,
        DetectionRow,
        FailureRow,
        FrameVectors,
        Hit,
        LibraryFacts,
        RunRow,
        Scope,
        SegmentRow,
        SourceRow,
        StoredFrame,
        TranscriptRow,
        VideoRow,
    )

__all__ = [
    "CaptionRow",
    "ClipRow",
    "DetectionRow",
    "FailureRow",
    "FrameVectors",
    "Hit",
    "KinodexError",
    "Library",
    "LibraryError",
    "LibraryFacts",
    "LibraryReader",
    "RunRow",
    "Scope",
    "SegmentRow",
    "SourceRow",
    "SpaceError",
    "StoredFrame",
    "TranscriptRow",
    "VideoRow",
]

_MODULES = {
    "Library": "index.library",
    "LibraryReader": "index.library_reader",
    "KinodexError": "index.errors",
    "LibraryError": "index.errors",
    "SpaceError": "index.errors",
}
"""Modules of the names that are not rows."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, "index.rows")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
