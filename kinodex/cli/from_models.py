"""Options of commands made from requests, settings and groups of options.

A parameter of a command whose type is a request (`kinodex.requests`), a budget or a dataclass of options becomes the
options of its fields. May import nothing heavy: the help of most commands imports this file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from kinodex.index.flags import Flag, flag_of
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from kinodex.requests import Request


MORE = "More"
"""Panel of `--help` with the options that few need."""
EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class _Option:
    """One parameter of a command: its name, its type for Typer, and its default."""

    name: str
    kind: Any
    default: Any = EMPTY


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, in place of each parameter whose type is a request or a group, the options of its fields.

    Their defaults are those of the parameter's own default, if it has one.
    """
    own = inspect.signature(command, eval_str=True).parameters
    groups = {name: _group_of(each) for name, each in own.items() if _is_group(each.annotation)}

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            given = {each.name: values.pop(each.name) for each in group.options}
            values[name] = group.made(given)
        command(**values)

    parameters = []
    for name, parameter in own.items():
        found = groups[name].options if name in groups else [_Option(name, parameter.annotation, parameter.default)]
        parameters += [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, annotation=each.kind, default=each.default)
            for each in found
        ]
    del run.__wrapped__
    run.__annotations__ = {}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


@dataclass(frozen=True, slots=True)
class _Group:
    """The options of a parameter, and how their values become it."""

    options: list[_Option]
    made: Callable[[Mapping[str, Any]], Any]


def _is_group(kind: Any) -> bool:
    return is_dataclass(kind) or hasattr(kind, "model_fields")


def _group_of(parameter: inspect.Parameter) -> _Group:
    kind = parameter.annotation
    if is_dataclass(kind):
        preset = vars_of(parameter.default) if is_dataclass(parameter.default) else {}
        return _dataclass_group(kind, preset)
    return _request_group(kind)


def vars_of(group: Any) -> dict[str, Any]:
    """Return the fields of a dataclass with their values."""
    return {each.name: getattr(group, each.name) for each in fields(group)}


def _dataclass_group(group: Any, preset: Mapping[str, Any]) -> _Group:
    kinds = get_type_hints(group, include_extras=True)
    options = []
    for each in fields(group):
        default = preset.get(each.name, each.default)
        kind = kinds[each.name]
        flag = flag_of(list(getattr(kind, "__metadata__", ())))
        kind = kind if flag is None else option_of(each.name, get_args(kind)[0], flag)
        options.append(_Option(each.name, kind, EMPTY if default is MISSING else default))
    return _Group(options, lambda values: group(**values))


def _request_group(request: type[Request]) -> _Group:
    """Return the options of a request; for one that is None the field has its default."""
    from kinodex.requests import flags, made, outside

    options: list[_Option] = []
    inner_groups: dict[str, _Group] = {}
    spellings = {}
    for name, field, flag in flags(request):
        if is_dataclass(field.annotation):
            inner = _dataclass_group(field.annotation, {})
            named = [_Option(f"{name}_{each.name}", each.kind, each.default) for each in inner.options]
            inner_groups[name] = inner
            options += named
            continue
        spellings[outside(name)] = flag.name or (name.upper() if flag.is_argument else f"--{dashed(name)}")
        usual = field.default if _is_shown(field.default) and flag.parse is None else None
        default = EMPTY if field.is_required() and flag.is_argument else "" if flag.is_argument else usual
        kind = option_of(name, field.annotation, flag, field.default, show_default=usual is not None)
        options.append(_Option(name, kind, default))

    def make(values: Mapping[str, Any]) -> Any:
        given = {name: value for name, value in values.items() if value is not None and name in request.model_fields}
        for name, group in inner_groups.items():
            given[name] = group.made({each.name: values[f"{name}_{each.name}"] for each in group.options})
        if isinstance(given.get("settings"), list):
            given["settings"] = pairs(given["settings"])
        return made(request, given, spellings=spellings)

    return _Group(options, make)


def option_of(name: str, kind: Any, flag: Flag, default: Any = None, **more: Any) -> Any:
    """Return the Typer annotation of a field with a flag; what is on by `default` can be turned off."""
    kind = _plain(kind) if flag.parse is None else str
    if flag.is_argument:
        return Annotated[str, typer.Argument(help=flag.help, metavar=flag.metavar)]
    spellings = (flag.name or f"--{dashed(name)}").split()
    if kind is bool and default is True:
        spellings = [f"--{dashed(name)}/--no-{dashed(name)}"]
    more = {"show_default": False, "metavar": flag.metavar, **more}
    if flag.parse is not None:
        more["parser"] = flag.parse
    panel = MORE if flag.is_rare else None
    return Annotated[kind | None, typer.Option(*spellings, help=flag.help, rich_help_panel=panel, **more)]


def _is_shown(default: Any) -> bool:
    """Return True for a default that `--help` shows: not that there is none."""
    return isinstance(default, str | int | float) and default not in (0, "")


def _plain(kind: Any) -> Any:
    """Return the type that Typer reads for the type of a field."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    others = [each for each in get_args(kind) if each is not type(None)]
    if type(None) in get_args(kind):
        return _plain(others[0])
    if get_origin(kind) is Literal:
        return str  # the model's own message names the nearest choice
    if get_origin(kind) is tuple or _is_mapping(kind):
        return list[str]
    return kind


def _is_mapping(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def dashed(name: str) -> str:
    """Spell the name of a field as an option: `min_gap_s` is `min-gap-s`."""
    return name.rstrip("_").replace("_", "-")


def pairs(given: list[str]) -> dict[str, str]:
    """Read settings given as NAME=VALUE; raises UsageError for one without a value."""
    return dict(_pair(each) for each in given)


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise UsageError(f"got --set {text}; write it as NAME=VALUE (`kinodex agents` shows the names)")
    return name.strip().replace("-", "_"), value.strip()


def flag_options(model: type[BaseModel], common: frozenset[str]) -> Iterator[inspect.Parameter]:
    """Iterate over the options of a settings model whose fields have a flag; None stands for one that is not given.

    Those that are not in `common` are rare.
    """
    for name, field, flag in _flagged(model):
        shown = flag if name in common else replace(flag, is_rare=True)
        kind = option_of(name, field.annotation, shown)
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def stage_options(model: type[BaseModel]) -> Iterator[inspect.Parameter]:
    """Iterate over the same, with their defaults and limits; those that the settings cannot do without are required."""
    for name, field, flag in _flagged(model):
        bounds = {"min": "ge", "max": "le"}
        limits = {
            each: next((getattr(it, bound) for it in field.metadata if hasattr(it, bound)), None)
            for each, bound in bounds.items()
        }
        kind = option_of(name, field.annotation, flag, field.default, show_default=True, **limits)
        default = field.default if isinstance(field.default, bool | int | float) else field.default or None
        required = EMPTY if field.is_required() else default
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=required, annotation=kind)


def _flagged(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo, Flag]]:
    for name, field in model.model_fields.items():
        flag = flag_of(field.metadata)
        if flag is not None:
            yield name, field, flag


COMMON_SETTINGS = frozenset({"space", "fps", "device", "ray", "workers", "retry_failed"})
"""Settings whose options are not rare."""


def with_setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """Put an option for each setting that has a `Flag` in the place of a command's `**settings`.

    In `--help` they stand after the command's positional parameters and before its keyword-only ones.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    before = [each for each in own if each.kind is each.POSITIONAL_OR_KEYWORD]
    after = [each for each in own if each.kind is each.KEYWORD_ONLY]
    from kinodex.jobs.ingest.config import IngestConfig

    settings = flag_options(IngestConfig, COMMON_SETTINGS)
    vars(command)["__signature__"] = inspect.Signature([*before, *settings, *after])
    return command
