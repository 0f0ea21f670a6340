"""Evaluation: systems compared on the same samples of a benchmark: their results written, scored and drawn.

`run` plans and solves, `score` makes a report of the results, `report` draws it. May import `jobs.benchmarks`, `agent`
and `index`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.evaluation.harness import Workers, evaluate, run_plan
    from jobs.evaluation.run.make_plan import RunRequest
    from jobs.evaluation.run.run import RunOptions
    from jobs.evaluation.run.run_folder import Run, read_run
    from jobs.evaluation.run.systems import System, parse_systems
    from jobs.evaluation.run.types import RunContext
    from jobs.evaluation.score.report import EvalReport

__all__ = [
    "EvalReport",
    "Run",
    "RunContext",
    "RunOptions",
    "RunRequest",
    "System",
    "Workers",
    "evaluate",
    "parse_systems",
    "read_run",
    "run_plan",
]

_MODULES = {
    "jobs.evaluation.harness": ("Workers", "evaluate", "run_plan"),
    "jobs.evaluation.run.make_plan": ("RunRequest",),
    "jobs.evaluation.run.run": ("RunOptions",),
    "jobs.evaluation.run.run_folder": ("Run", "read_run"),
    "jobs.evaluation.run.systems": ("System", "parse_systems"),
    "jobs.evaluation.run.types": ("RunContext",),
    "jobs.evaluation.score.report": ("EvalReport",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a name of `__all__` when it is first used, so that importing the package stays cheap."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
