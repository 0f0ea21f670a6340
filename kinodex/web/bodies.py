"""Bodies of HTTP requests, read into requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from kinodex.jobs.errors import UsageError
from kinodex.requests import Request as Asked
from kinodex.requests import flags, made, outside

if TYPE_CHECKING:
    from starlette.requests import Request

Body = TypeVar("Body", bound=BaseModel)
R = TypeVar("R", bound=Asked)


async def read_body(request: Request, model: type[Body]) -> Body:
    """Read a request's JSON; raises UsageError for another type of content, or values that do not fit."""
    try:
        return model.model_validate_json(await _content(request))
    except ValidationError as error:
        where, message = first_fault(error)
        raise UsageError(f"{where or 'the body'}: {message}") from error


async def read_request(request: Request, kind: type[R]) -> R:
    """Read the body of a request to this server; raises UsageError for a field that clients cannot give."""
    try:
        values = from_json(await _content(request), allow_inf_nan=False)
    except ValueError as error:
        raise UsageError(f"the body: {error}") from error
    if not isinstance(values, dict):
        raise UsageError("the body: give a JSON object")
    return remote(kind, values)


def remote(kind: type[R], values: Mapping[str, Any], without: Collection[str] = ()) -> R:
    """Make a request of values that a client of this server gave; those `without` are filled in later.

    >>> from kinodex.requests import Find
    >>> remote(Find, {"query": "a boat", "in": "frames"}).in_
    'frames'
    """
    names = {outside(name) for name, _, _ in flags(kind, remote=True)} - {*without}
    if other := next((name for name in values if name not in names), None):
        raise UsageError(f"got {other[:40]}, which is not taken here; give some of {', '.join(sorted(names))}")
    return made(kind, {**values, **dict.fromkeys(without, "")})


def first_fault(error: ValidationError) -> tuple[str, str]:
    """Return the place and the message of the first fault of a body."""
    first = error.errors()[0]
    return ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")


async def _content(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        raise UsageError(f"got content of type {kind or 'none'!r}; send application/json")
    return await request.body()
