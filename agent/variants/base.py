"""A variant: an agent with its algorithm, its parameters, its needs, and its words for the page."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import textwrap
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from kinodex.agent.answer import Answer
from kinodex.agent.errors import BadSettings
from kinodex.agent.protocol import Request
from kinodex.agent.session import Session
from kinodex.index.kinds import KindName
from kinodex.index.times import clock

P = TypeVar("P")
FINITE = ConfigDict(allow_inf_nan=False)
Step = Mapping[str, Any]
"""An `Acted` as a trace has it, with its `action`, `arguments` and `notes`."""


PAPER_FORM: Mapping[str, Mapping[str, Any]] = {"the paper's form": {"form": "paper"}}
"""An ablation of all that is ours at once: so tables have a row of it."""
THOUGHT = "Nothing that is known so far shows it clearly; a closer look at the next part may."
"""A thought of usual length, for `Variant.assumes`."""


@dataclass(frozen=True, slots=True)
class Variant:
    """An agent under its name. `run` takes parameters of the class that `parameters` makes.

    `parameters` returns the defaults for a longest video of so many seconds: a frozen dataclass with, at least,
    `rounds`, the paper's own limit of rounds or steps. `uses` names the kinds that the agent reads besides
    frames; there may be none. `ablations` are settings of its parameters, by the name of the part
    that they switch off.
    """

    name: str
    line: str
    run: Callable[[Session, Any], Awaitable[Answer]]
    parameters: Callable[[float], Any]
    roles: tuple[str, ...]
    uses: tuple[KindName, ...] = ()
    ablations: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    needs_language: bool = False
    """True if it reasons in words, so that the built-in model cannot be its policy."""
    needs_pictures: bool = False
    """True if it cannot work with words about a video alone."""
    sees_video: bool = True
    """False for an agent that never receives anything of the video."""
    plain: str = ""
    """One or two sentences for somebody who reads no papers, beside `line` on the page."""
    words: Mapping[str, Callable[[Step], str]] = dataclasses.field(default_factory=dict)
    """Its steps (`Acted`) in the sentences of the page, by their action: "skimmed 0:10 to 2:00 for “a dog”". Each is a
    clause without a subject; "" for a step that another event tells about. A step without words has its own name."""
    assumes: Callable[[Request[Any]], Mapping[str, Any] | str | None] = lambda request: None
    """What a dry run takes for the reply to one of its requests, so that the agent goes on as long as it may. None: the
    request's own example."""


def check_at_least(parameters: Any, **least: float) -> None:
    """Raise `BadSettings` for the first of these parameters that is below its minimum."""
    for name, low in least.items():
        if getattr(parameters, name) < low:
            raise BadSettings(f"got {name}={getattr(parameters, name)}; it is at least {low}")


def restore_paper(parameters: Any, settings: Mapping[str, object]) -> None:
    """Give parameters of `form=paper` the values that the paper says, whatever else was set."""
    for name, value in settings.items() if parameters.form == "paper" else ():
        object.__setattr__(parameters, name, value)


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


# Meanings and choices of an agent's parameters: the docstrings under the fields of its dataclass, and its types.


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


# Texts, times and ranges in the words of a page, for `Variant.words`.

QUOTED = 3
LONGEST = 80


def quoted(texts: Sequence[str]) -> str:
    """The first few of some texts in quotation marks, with the count of the others."""
    shown = [f"“{_short(each)}”" for each in texts[:QUOTED]]
    rest = len(texts) - QUOTED
    return joined([*shown, f"{rest} more"] if rest > 0 else shown)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def for_query(step: Step) -> str:
    """The query of a step, " for “a dog”"; "" without one."""
    query = step["arguments"].get("query")
    return f" for {quoted([query])}" if query else ""


def counted_frames(step: Step, more: str = "") -> str:
    """The number of frames of a step: "1 frame", "4 more frames"."""
    count = step["arguments"]["frames"]
    return f"{count} {more}frame{'' if count == 1 else 's'}"


def no_step(step: Step) -> str:
    return "got no step from its model that could be taken"


def span(part: Mapping[str, Any]) -> str:
    """Range of a segment, a note, or a tool's arguments, in words; "" without a start."""
    start_s, end_s = part.get("start_s"), part.get("end_s")
    if start_s is None:
        return ""
    return clock(start_s) if end_s is None else f"{clock(start_s)} to {clock(end_s)}"


def joined(parts: Sequence[str]) -> str:
    """Clauses as one list: "a", "a and b", "a, b, and c"."""
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"
