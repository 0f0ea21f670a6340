"""The front door of kinodex: index videos, open a library, search it, ask about it, measure agents on it.

    import kinodex

    kinodex.ingest("films", library="lib", space="photo")
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

if TYPE_CHECKING:  # for type checkers and editors; `_HOMES` says the same to Python
    from kinodex.agent.answer import Answer as Answer
    from kinodex.agent.answer_rules import AnswerRules as AnswerRules
    from kinodex.agent.ask import ask as ask
    from kinodex.agent.errors import AgentError as AgentError
    from kinodex.agent.errors import ModelError as ModelError
    from kinodex.agent.evidence import Evidence as Evidence
    from kinodex.agent.limits.budget import Budget as Budget
    from kinodex.agent.limits.ledger import Ledger as Ledger
    from kinodex.agent.limits.stop import StopSignal as StopSignal
    from kinodex.agent.models.openai_model import OpenAIModel as OpenAIModel
    from kinodex.agent.models.response_cache import ResponseCache as ResponseCache
    from kinodex.agent.models.roles import Price as Price
    from kinodex.agent.models.roles import Role as Role
    from kinodex.agent.protocol.question import Question as Question
    from kinodex.agent.questions_failed import QuestionsFailed as QuestionsFailed
    from kinodex.agent.similarity.model import SimilarityModel as SimilarityModel
    from kinodex.agent.traces.replay import ReplayModel as ReplayModel
    from kinodex.agent.variants.base import Variant as Variant
    from kinodex.agent.videos.environment import Environment as Environment
    from kinodex.errors import KinodexError as KinodexError
    from kinodex.evaluation import evaluate as _evaluate
    from kinodex.frames import Frame as Frame
    from kinodex.index.errors import LibraryError as LibraryError
    from kinodex.index.errors import SpaceError as SpaceError
    from kinodex.index.flags import Flag as Flag
    from kinodex.index.metadata import Facet as Facet
    from kinodex.index.rows import CaptionRow as CaptionRow
    from kinodex.index.rows import DetectionRow as DetectionRow
    from kinodex.index.rows import FrameVectors as FrameVectors
    from kinodex.index.rows import Hit as Hit
    from kinodex.index.rows import LibraryFacts as LibraryFacts
    from kinodex.index.rows import ScreenTextRow as ScreenTextRow
    from kinodex.index.rows import SegmentRow as SegmentRow
    from kinodex.index.rows import SpeechRow as SpeechRow
    from kinodex.index.rows import VideoRow as VideoRow
    from kinodex.ingestion import ingest as ingest
    from kinodex.jobs.add.run import AddedRows as AddedRows
    from kinodex.jobs.add.run import AddReport as AddReport
    from kinodex.jobs.add.stage import Stage as Stage
    from kinodex.jobs.add.stage import StageWork as StageWork
    from kinodex.jobs.ask_many import Task as Task
    from kinodex.jobs.ask_many import ask_many as ask_many
    from kinodex.jobs.duplicates.search import Duplicate as Duplicate
    from kinodex.jobs.errors import UsageError as UsageError
    from kinodex.jobs.eval.report import EvalReport as EvalReport
    from kinodex.jobs.export.moments import Moment as Moment
    from kinodex.jobs.grounding.result import Grounding as Grounding
    from kinodex.jobs.ingest.reports import IngestReport as IngestReport
    from kinodex.library import Library as Library
    from kinodex.library import open as open
    from kinodex.pipeline.errors import PipelineError as PipelineError

    eval = _evaluate

_HOMES = {
    "kinodex.agent.answer": "Answer",
    "kinodex.agent.answer_rules": "AnswerRules",
    "kinodex.agent.ask": "ask",
    "kinodex.agent.similarity.model": "SimilarityModel",
    "kinodex.agent.errors": "AgentError ModelError",
    "kinodex.agent.evidence": "Evidence",
    "kinodex.agent.limits.budget": "Budget",
    "kinodex.agent.limits.ledger": "Ledger",
    "kinodex.agent.limits.stop": "StopSignal",
    "kinodex.agent.models.openai_model": "OpenAIModel",
    "kinodex.agent.models.response_cache": "ResponseCache",
    "kinodex.agent.models.roles": "Price Role",
    "kinodex.agent.protocol.question": "Question",
    "kinodex.agent.questions_failed": "QuestionsFailed",
    "kinodex.agent.traces.replay": "ReplayModel",
    "kinodex.agent.variants.base": "Variant",
    "kinodex.agent.videos.environment": "Environment",
    "kinodex.errors": "KinodexError",
    "kinodex.evaluation": "eval",
    "kinodex.frames": "Frame",
    "kinodex.index.errors": "LibraryError SpaceError",
    "kinodex.index.flags": "Flag",
    "kinodex.index.metadata": "Facet",
    "kinodex.index.rows": "CaptionRow DetectionRow FrameVectors Hit LibraryFacts ScreenTextRow SegmentRow "
    "SpeechRow VideoRow",
    "kinodex.ingestion": "ingest",
    "kinodex.jobs.add.run": "AddReport AddedRows",
    "kinodex.jobs.add.stage": "Stage StageWork",
    "kinodex.jobs.ask_many": "Task ask_many",
    "kinodex.jobs.duplicates.search": "Duplicate",
    "kinodex.jobs.errors": "UsageError",
    "kinodex.jobs.eval.report": "EvalReport",
    "kinodex.jobs.export.moments": "Moment",
    "kinodex.jobs.grounding.result": "Grounding",
    "kinodex.jobs.ingest.reports": "IngestReport",
    "kinodex.library": "Library open",
    "kinodex.pipeline.errors": "PipelineError",
}
"""The public names of each module, which are loaded at their first use."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
_NAMES_THERE = {"eval": "evaluate"}
"""Public names that are called otherwise in their module."""
__all__ = sorted(_MODULE_OF)


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
    return __all__
