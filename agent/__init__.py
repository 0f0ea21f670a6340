"""The agent: typed questions to models over a library that was indexed once; it never opens a video.

May import `index`, and nothing of `pipeline` or `jobs`. The names below load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.answer import Answer, Evidence
    from agent.ask_questions import Task, ask, ask_many
    from agent.core.budget import Budget, Ledger
    from agent.core.protocol import Model
    from agent.core.question import Question
    from agent.environment import Environment
    from agent.errors import AgentError
    from agent.session import Session
    from agent.variants.base import Variant

__all__ = [
    "AgentError",
    "Answer",
    "Budget",
    "Environment",
    "Evidence",
    "Ledger",
    "Model",
    "Question",
    "Session",
    "Task",
    "Variant",
    "ask",
    "ask_many",
]

_MODULES = {
    "agent.answer": ("Answer", "Evidence"),
    "agent.ask_questions": ("Task", "ask", "ask_many"),
    "agent.core.budget": ("Budget", "Ledger"),
    "agent.core.protocol": ("Model",),
    "agent.core.question": ("Question",),
    "agent.environment": ("Environment",),
    "agent.errors": ("AgentError",),
    "agent.session": ("Session",),
    "agent.variants.base": ("Variant",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'agent' has no attribute {name!r}; its names are {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
