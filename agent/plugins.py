"""Plugins: agents from outside this project, a `Variant` in a Python file or in a module that can be imported.

Only the file or module that the user named is executed.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from kinodex.agent.errors import UnknownAgent
from kinodex.agent.variants.base import Variant
from kinodex.index.named_files import read_text

SUFFIX = ".py"
FORMS = "FILE.py, FILE.py:NAME or package.module:NAME"


def plugin_source(spec: str) -> str:
    """Read the text of the file or module of a spec; raises `UnknownAgent` if there is none."""
    place, _ = split_spec(spec)
    path = place if place.endswith(SUFFIX) else _imported(place).__file__
    if path is None:
        raise UnknownAgent(f"got {spec}, and {place} is a package without code; name the module that defines the agent")
    return _read(path)


def split_spec(spec: str) -> tuple[str, str]:
    """Split a spec into its file or module, and the name in it ("" if it has none)."""
    if spec.endswith(SUFFIX):
        return spec, ""
    place, _, name = spec.rpartition(":")
    is_relative = place.startswith(".") and not place.endswith(SUFFIX)
    if not place or is_relative or not name.isidentifier():
        raise UnknownAgent(f"got {spec} for an agent; write {FORMS}")
    return place, name


def plugin_variants(spec: str, source: str | None = None) -> Mapping[str, Variant]:
    """Variants at the top level of the file or module of a spec, by their Python names, with those that it imports.

    `source` is executed instead of the file's present text, so that all processes run the same. Raises `UnknownAgent`
    if there is no such file or module, and any error of its code.
    """
    place, _ = split_spec(spec)
    if not place.endswith(SUFFIX):
        module = _imported(place)
    else:
        module = _executed(place, _read(place) if source is None else source)
    return {name: value for name, value in vars(module).items() if isinstance(value, Variant)}


def _imported(place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise  # the module is there, and something that it imports is not
        raise UnknownAgent(
            f"there is no module {place!r}: {error}; install it or put its folder on PYTHONPATH, or give {FORMS}"
        ) from error


def _read(path: str) -> str:
    try:
        return read_text(Path(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UnknownAgent(f"cannot read {path}: {error}; give a Python file that defines a Variant") from error


@cache
def _executed(path: str, source: str) -> ModuleType:
    module = ModuleType(f"{Path(path).stem}_{hashlib.sha256(source.encode()).hexdigest()[:8]}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses and type hints look names up
    try:
        exec(compile(source, path, "exec"), vars(module))
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module
