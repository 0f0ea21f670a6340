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
    from agent.answer import Answer, Evidence
    from agent.ask_questions import Task, ask, ask_many
    from agent.core.answer_rules import AnswerRules
    from agent.core.budget import Budget, Ledger
    from agent.core.question import Question
    from agent.core.stop_signal import StopSignal
    from agent.environment import Environment
    from agent.errors import AgentError, ModelError, QuestionsFailed
    from agent.models.openai_compatible import OpenAIModel
    from agent.models.response_cache import ResponseCache
    from agent.models.role_config import Price, Role
    from agent.models.rulebased.model import RuleBasedModel
    from agent.trace.replay_model import ReplayModel
    from agent.variants.base import Variant
    from index.errors import KinodexError, LibraryError, SpaceError
    from index.rows import (
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
    from jobs.duplicates.find import Duplicate
    from jobs.errors import UsageError
    from jobs.evaluation.harness import evaluate as eval
    from jobs.evaluation.score.report import EvalReport
    from jobs.export.moments.moment import Moment
    from jobs.ground.ground import Grounding
    from jobs.ingest.outcomes import IngestReport
    from kinodex.corpus import ingest
    from kinodex.frame import Frame
    from kinodex.library import Library, open
    from pipeline.errors import PipelineError

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
    "agent.answer": ("Answer", "Evidence"),
    "agent.ask_questions": ("Task", "ask", "ask_many"),
    "agent.core.answer_rules": ("AnswerRules",),
    "agent.core.budget": ("Budget", "Ledger"),
    "agent.core.question": ("Question",),
    "agent.core.stop_signal": ("StopSignal",),
    "agent.environment": ("Environment",),
    "agent.errors": ("AgentError", "ModelError", "QuestionsFailed"),
    "agent.models.openai_compatible": ("OpenAIModel",),
    "agent.models.response_cache": ("ResponseCache",),
    "agent.models.role_config": ("Price", "Role"),
    "agent.models.rulebased.model": ("RuleBasedModel",),
    "agent.trace.replay_model": ("ReplayModel",),
    "agent.variants.base": ("Variant",),
    "index.errors": ("KinodexError", "LibraryError", "SpaceError"),
    "index.rows": (
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
    "jobs.duplicates.find": ("Duplicate",),
    "jobs.errors": ("UsageError",),
    "jobs.evaluation.harness": ("eval",),
    "jobs.evaluation.score.report": ("EvalReport",),
    "jobs.export.moments.moment": ("Moment",),
    "jobs.ground.ground": ("Grounding",),
    "jobs.ingest.outcomes": ("IngestReport",),
    "kinodex.corpus": ("ingest",),
    "kinodex.frame": ("Frame",),
    "kinodex.library": ("Library", "open"),
    "pipeline.errors": ("PipelineError",),
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
