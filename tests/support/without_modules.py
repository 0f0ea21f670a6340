"""`kinodex` in a process where some modules are not installed, as far as imports can tell.

python -m tests.support.without_modules torch,open_clip search LIBRARY "a boat"
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULE = "tests.support.without_modules"


class Hiding:
    """A finder of modules that finds no module of some packages, and else what another finder finds."""

    def __init__(self, finder: Any, packages: Collection[str]) -> None:
        self._finder, self._packages = finder, packages

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in self._packages:
            return None
        spec: ModuleSpec | None = self._finder.find_spec(name, path, target)
        return spec

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


def hide(packages: Collection[str]) -> None:
    """Hide packages for the rest of this process, none of which may have been imported."""
    there = sorted(set(packages).intersection(sys.modules))
    if there:
        raise RuntimeError(f"{', '.join(there)} cannot be hidden: imported already")
    sys.meta_path[:] = [Hiding(finder, packages) for finder in sys.meta_path]


if __name__ == "__main__":
    hide(sys.argv[1].split(","))
    sys.argv[:2] = ["kinodex"]
    from kinodex.cli.main import main

    main()
