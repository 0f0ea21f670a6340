"""Tools made of functions and requests, with schemas as short as they can be.

An assistant pays for every word of a schema in each conversation. Models read the docstrings of tools: they describe a
tool and its limits, which are those of `kinodex.mcp.replies`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import Field, ValidationError, create_model

from kinodex.errors import KinodexError
from kinodex.mcp.replies import clipped
from kinodex.requests import Request, flags, outside


class PlainTool(Tool):
    """A tool that says in one line which arguments are wrong: pydantic's own text has several, and links."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        try:
            return await super().run(arguments, context, convert_result)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.__cause__.errors())
            taken = ", ".join(map(outside, self.fn_metadata.arg_model.model_fields))
            raise ToolError(clipped(f"{self.name} cannot be called so: {wrong}; it takes {taken}")) from error


def tool_of(function: Callable[..., Any], hints: ToolAnnotations) -> Tool:
    """Make a tool of a function. An unknown argument is an error here, as is NaN; the SDK would take both."""
    tool = PlainTool.from_function(
        with_tool_errors(function), description=" ".join((inspect.getdoc(function) or "").split()), annotations=hints
    )
    lenient = tool.fn_metadata.arg_model
    settings = {"extra": "forbid", "allow_inf_nan": False}
    strict = create_model(lenient.__name__, __base__=lenient, __cls_kwargs__=settings)
    tool.fn_metadata.arg_model = strict
    tool.parameters = _short(strict.model_json_schema(by_alias=True))
    if tool.fn_metadata.output_schema is not None:
        replies_with = _short(tool.fn_metadata.output_schema, without=("title", "default", "required", "description"))
        tool.fn_metadata.output_schema = replies_with
    return tool


def _short(schema: dict[str, Any], without: Sequence[str] = ("title", "minimum", "maximum")) -> dict[str, Any]:
    """Write a schema without what says nothing: an assistant pays for every word of it in each conversation.

    Pydantic repeats names as titles, and describes what may be left out as null besides: replies leave it out, and so
    do calls, though null is still taken for it. Of a docstring the first paragraph stays; parts stand where they are
    used, for each is used once.
    """
    parts = {f"#/$defs/{name}": part for name, part in schema.get("$defs", {}).items()}
    return _shortened(schema, parts, {*without, "$defs"})


def _shortened(schema: dict[str, Any], parts: Mapping[str, dict[str, Any]], without: Collection[str]) -> dict[str, Any]:
    if "$ref" in schema:
        schema = parts[schema["$ref"]] | {name: value for name, value in schema.items() if name != "$ref"}
    kept = {name: value for name, value in schema.items() if name not in without}
    either = [each for each in kept.get("anyOf", ()) if each != {"type": "null"}]
    if len(either) == 1:
        kept = {**either[0], **{name: value for name, value in kept.items() if name != "anyOf"}}
    if kept.get("default", "") in (None, "", [], {}):
        kept.pop("default", None)
    for name, value in kept.items():
        if name == "properties":
            kept[name] = {key: _shortened(each, parts, without) for key, each in value.items()}
        elif name == "description":
            kept[name] = " ".join(value.split("\n\n")[0].split())
        elif isinstance(value, dict):
            kept[name] = _shortened(value, parts, without)
        elif isinstance(value, list):
            kept[name] = [_shortened(each, parts, without) if isinstance(each, dict) else each for each in value]
    return kept


def with_tool_errors(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Turn errors of the tree into tool errors, whose one line the client gets; other exceptions are logged."""

    @wraps(tool)
    async def guarded(**arguments: Any) -> Any:
        try:
            return await tool(**arguments)
        except KinodexError as error:
            raise ToolError(clipped(str(error))) from error  # its message repeats the argument, however long that is

    return guarded


def takes(request: type[Request], *more: inspect.Parameter, without: Collection[str] = ()) -> Callable[[Any], Any]:
    """Give a tool that is called with `**values` the arguments of a request, but those `without`, and `more`."""
    fields = [(name, field, flag) for name, field, flag in flags(request, remote=True) if name not in without]
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.is_required() else field.default,
            annotation=Annotated[
                field.annotation, *_limits(field.metadata), Field(alias=outside(name), description=flag.help)
            ],
        )
        for name, field, flag in fields
    ]

    def with_arguments(function: Any) -> Any:
        returns = inspect.signature(function, eval_str=True).return_annotation
        signature = inspect.Signature([*more, *parameters], return_annotation=returns)
        vars(function)["__signature__"] = signature
        function.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()} | {
            "return": returns
        }
        return function

    return with_arguments


def _limits(metadata: Sequence[Any]) -> list[Any]:
    """Return the checks of a field, without its flag: pydantic would take it for nothing, and keep it."""
    from kinodex.index.flags import Flag

    return [each for each in metadata if not isinstance(each, Flag)]
