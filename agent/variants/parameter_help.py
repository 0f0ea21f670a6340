"""Meanings and choices of an agent's parameters: the docstrings under the fields of its dataclass, and its types."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Literal, get_args, get_origin, get_type_hints


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
    """Text that stands as a statement of its own."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None
