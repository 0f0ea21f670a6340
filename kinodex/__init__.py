"""The front door of kinodex: index videos, open a library, search it, ask about it, measure agents on it.

    import kinodex

    kinodex.ingest("films", library="lib", space="builtin")
    library = kinodex.open("lib")
    for hit in library.search("a red boat", k=3):
        print(hit.time_s, library.frame(hit).image)
    print(library.ask("What colour is the boat?", model="gpt-4o").text)

Third parties depend on the names of `kinodex.__all__` and on nothing else: the four rooms behind it (`pipeline`,
`index`, `agent`, `jobs`) may change at any time. Names are loaded when they are first used, so `import kinodex` is
quick and loads neither torch, Ray, a decoder nor Lance.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kinodex.agent.answer import Answer, Evidence
    from kinodex.agent.ask import Task, ask, ask_many
    from kinodex.agent.environment import Environment
    from kinodex.agent.errors import AgentError, ModelError, QuestionsFailed
    from kinodex.agent.limits import Budget, Ledger, StopSignal
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.agent.models.roles import Price, ResponseCache, Role
    from kinodex.agent.models.rules import RuleBasedModel
    from kinodex.agent.protocol import AnswerRules, Question
    from kinodex.agent.trace import ReplayModel
    from kinodex.agent.variants.base import Variant
    from kinodex.frames import Frame, ingest
    from kinodex.index.errors import KinodexError, LibraryError, SpaceError
    from kinodex.index.rows import (
        CaptionRow,
        DetectionRow,
        FrameVectors,
        Hit,
        LibraryFacts,
        ScreenTextRow,
        SegmentRow,
        TranscriptRow,
        VideoRow,
    )
    from kinodex.jobs.duplicates import Duplicate
    from kinodex.jobs.errors import UsageError
    from kinodex.jobs.eval.report import EvalReport
    from kinodex.jobs.eval.run import evaluate as eval
    from kinodex.jobs.export.moments import Moment
    from kinodex.jobs.ground import Grounding
    from kinodex.jobs.ingest.commit import IngestReport
    from kinodex.library import Library, open
    from kinodex.pipeline.errors import PipelineError

__all__ = [
    "AgentError",
    "Answer",
    "AnswerRules",
    "Budget",
    "CaptionRow",
    "DetectionRow",
    "Duplicate",
    "Environment",
    "EvalReport",
    "Evidence",
    "Frame",
    "FrameVectors",
    "Grounding",
    "Hit",
    "IngestReport",
    "KinodexError",
    "Ledger",
    "Library",
    "LibraryError",
    "LibraryFacts",
    "ModelError",
    "Moment",
    "OpenAIModel",
    "PipelineError",
    "Price",
    "Question",
    "QuestionsFailed",
    "ReplayModel",
    "ResponseCache",
    "Role",
    "RuleBasedModel",
    "ScreenTextRow",
    "SegmentRow",
    "SpaceError",
    "StopSignal",
    "Task",
    "TranscriptRow",
    "UsageError",
    "Variant",
    "VideoRow",
    "ask",
    "ask_many",
    "eval",
    "ingest",
    "open",
]

_HOMES = {
    "kinodex.agent.answer": (
        "Answer",
        "Evidence",
    ),
    "kinodex.agent.ask": (
        "Task",
        "ask",
        "ask_many",
    ),
    "kinodex.agent.environment": ("Environment",),
    "kinodex.agent.errors": (
        "AgentError",
        "ModelError",
        "QuestionsFailed",
    ),
    "kinodex.agent.limits": (
        "Budget",
        "Ledger",
        "StopSignal",
    ),
    "kinodex.agent.models.openai_model": ("OpenAIModel",),
    "kinodex.agent.models.roles": (
        "Price",
        "ResponseCache",
        "Role",
    ),
    "kinodex.agent.models.rules": ("RuleBasedModel",),
    "kinodex.agent.protocol": (
        "AnswerRules",
        "Question",
    ),
    "kinodex.agent.trace": ("ReplayModel",),
    "kinodex.agent.variants.base": ("Variant",),
    "kinodex.frames": (
        "Frame",
        "ingest",
    ),
    "kinodex.index.errors": (
        "KinodexError",
        "LibraryError",
        "SpaceError",
    ),
    "kinodex.index.rows": (
        "CaptionRow",
        "DetectionRow",
        "FrameVectors",
        "Hit",
        "LibraryFacts",
        "ScreenTextRow",
        "SegmentRow",
        "TranscriptRow",
        "VideoRow",
    ),
    "kinodex.jobs.duplicates": ("Duplicate",),
    "kinodex.jobs.errors": ("UsageError",),
    "kinodex.jobs.eval.report": ("EvalReport",),
    "kinodex.jobs.eval.run": ("eval",),
    "kinodex.jobs.export.moments": ("Moment",),
    "kinodex.jobs.ground": ("Grounding",),
    "kinodex.jobs.ingest.commit": ("IngestReport",),
    "kinodex.library": (
        "Library",
        "open",
    ),
    "kinodex.pipeline.errors": ("PipelineError",),
}
"""The public names of each module."""

_NAMES_THERE = {"eval": "evaluate"}
"""Public names that are called otherwise in their module."""

_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("kinodex")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'kinodex' has no attribute {name!r}; its names are {', '.join(__all__)}")
    value = getattr(import_module(_MODULE_OF[name]), _NAMES_THERE.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
