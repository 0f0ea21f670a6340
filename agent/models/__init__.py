"""Models that answer requests: a language model behind an endpoint or in this process, and a few rules (`rulebased`).

May import `agent.core`, `agent.prompts` and `agent.errors`; the model in this process also `index.embedding`. Agents
know only the protocol `agent.core.protocol.Model`. Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.models.openai_compatible import OpenAIModel, open_models
    from agent.models.response_cache import ResponseCache
    from agent.models.role_config import Price, Role, read_roles
    from agent.models.rulebased.model import RuleBasedModel

__all__ = ["OpenAIModel", "Price", "ResponseCache", "Role", "RuleBasedModel", "open_models", "read_roles"]

_MODULES = {
    "OpenAIModel": "agent.models.openai_compatible",
    "Price": "agent.models.role_config",
    "ResponseCache": "agent.models.response_cache",
    "Role": "agent.models.role_config",
    "RuleBasedModel": "agent.models.rulebased.model",
    "open_models": "agent.models.openai_compatible",
    "read_roles": "agent.models.role_config",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; its names are {', '.join(__all__)}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
