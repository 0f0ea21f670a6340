"""Settings of an agent's parameters: their meanings, choices and limits, and values that are set by name."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from kinodex.agent.errors import BadSettings

P = TypeVar("P")
FINITE = ConfigDict(allow_inf_nan=False)
LEAST_LIKENESS = 0.6
"""Of a name that is offered in the place of an unknown one: a slip of the pen, not a name that shares a few letters."""


def with_settings(parameters: P, settings: Mapping[str, Any]) -> P:
    """Set some parameters, from text or values; raises `BadSettings` for unknown names and values that do not fit."""
    kinds = typing.get_type_hints(type(parameters))
    values = {}
    for name, value in settings.items():
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, n=1, cutoff=LEAST_LIKENESS)
            offer = f"did you mean {near[0]!r}?" if near else f"the parameters are {', '.join(sorted(kinds))}"
            raise BadSettings(f"there is no parameter {name!r}; {offer}")
        try:
            values[name] = TypeAdapter(kinds[name], config=FINITE).validate_python(value)
        except ValidationError as error:
            raise BadSettings(f"got {name}={value!r}; {error.errors()[0]['msg']}") from error
    # dataclasses.replace asks for a dataclass, which P cannot say
    whole: dict[str, Any] = {name: getattr(parameters, name) for name in kinds} | values
    return type(parameters)(**whole)


def describe_parameters(parameters: type) -> dict[str, str]:
    """Read the docstring under each field of a dataclass, by the field's name, its base classes' too.

    A field without one is left out, and so are all of a class whose source cannot be read, such as one made in a REPL.
    """
    described: dict[str, str] = {}
    for each in reversed(parameters.__mro__[:-1]):
        described |= _field_docstrings(each)
    return described


def list_choices(parameters: type) -> dict[str, tuple[str, ...]]:
    """List the values that a field may take, by the field's name, for those whose type is a Literal."""
    hints = get_type_hints(parameters)
    return {name: tuple(map(str, get_args(hint))) for name, hint in hints.items() if get_origin(hint) is Literal}


def _field_docstrings(parameters: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(parameters))
    except (OSError, TypeError):
        return {}
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    described = {}
    for field, after in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and (text := _text(after)):
            described[field.target.id] = " ".join(text.split())
    return described


def _text(node: ast.stmt) -> str | None:
    """Return the text that stands as a statement of its own."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None
