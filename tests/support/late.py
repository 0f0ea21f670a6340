"""Modules that take seconds to import, brought in where a test first uses them: each process collects all tests."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class _Late:
    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:
        # pytest looks for such names in every name of a module of tests
        if (name.startswith("__") and name != "__version__") or name == "_mock_name":
            raise AttributeError(name)
        return getattr(self._load(), name)


def late(module: str | Callable[[], Any]) -> Any:
    """Stand for a module by its name, or for what a function imports."""
    return _Late((lambda: import_module(module)) if isinstance(module, str) else module)
