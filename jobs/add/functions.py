"""A function of the user's own: found by FILE.py:NAME, and its text, which is kept with what it makes."""

from __future__ import annotations

import hashlib
import inspect
import runpy
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kinodex.jobs.errors import UsageError


def facts_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the name of a function, its text, and a digest of that; raises UsageError where there is none."""
    source = source_of(function)
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    return {"function": name_of(function), "source": source, "source_sha256": digest}


def name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def source_of(function: Callable[..., Any]) -> str:
    """Return the text of a function, or of the class of an object that is called.

    Raises UsageError where there is none.
    """
    if not callable(function):
        raise UsageError(f"got {function!r:.60} for a function; give one")
    try:
        return textwrap.dedent(inspect.getsource(function if inspect.isroutine(function) else type(function)))
    except (OSError, TypeError) as error:
        raise UsageError(
            f"cannot read the text of {name_of(function)}, which is kept with what it makes: {error}; write the "
            "function in a file or a notebook"
        ) from error


def function_of(spec: str) -> Callable[..., Any]:
    """Return the function of a spec FILE.py:NAME; raises UsageError, and any error of the file's own code.

    The file is no module that could be imported, so Ray sends the function itself to its workers.
    """
    file, _, name = spec.rpartition(":")
    path = Path(file).expanduser()
    if not (file.endswith(".py") and path.is_file() and name.isidentifier()):
        raise UsageError(f"got {spec} for a function; write FILE.py:NAME, of a file that is there")
    found = runpy.run_path(str(path))
    if not callable(found.get(name)):
        there = ", ".join(each for each, value in found.items() if inspect.isfunction(value)) or "none"
        raise UsageError(f"got {spec}, and of functions {path} has {there}")
    function: Callable[..., Any] = found[name]
    return function
