"""Responses of servers, which no other site may read or frame, and errors as one line of JSON."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic_core import to_json

from kinodex.agent.errors import TraceError
from kinodex.errors import KinodexError
from kinodex.index.errors import LibraryError, QueryError
from kinodex.pipeline.errors import PipelineError
from kinodex.redaction import redact

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send

T = TypeVar("T")
SAFE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
FORBIDDEN_ELSEWHERE = "default-src 'none'; frame-ancestors 'none'"
CLIENT_LEFT = 499
"""The status that logs know for a client who did not wait; nobody is sent it."""


class Refused(KinodexError):
    """A request that is not answered: with `status`, and `retry_s` where it may be tried again."""

    status = 400
    retry_s: float | None = None


class NotGiven(Refused):
    """A request for something that the server's user did not name."""

    status = 404


def numbered(values: Sequence[T], number: int, kind: str) -> T:
    """Return the value of a number that came with a request; raises NotGiven, which names the `kind` of the values."""
    if not 0 <= number < len(values):
        raise NotGiven(f"got {kind} {number}; there are {len(values)}, counted from 0")
    return values[number]


Handler = Callable[["Request"], "Response | Awaitable[Response]"]


def answering(
    answer: Handler,
    worker: ThreadPoolExecutor | None = None,
    first: Callable[[Request], Awaitable[None]] | None = None,
) -> Callable[[Request], Awaitable[Response]]:
    """Turn errors about missing or wrong inputs into one line of JSON; any other exception is a fault and stays one.

    `first` is awaited before the answer is made, in the thread `worker` if there is one.
    """

    async def respond(request: Request) -> Response:
        try:
            if first is not None:
                await first(request)
            if worker is not None:
                work: Any = asyncio.get_running_loop().run_in_executor(worker, answer, request)
                return await unless_left(request, work)
            made = answer(request)
            return await made if inspect.isawaitable(made) else made
        except KinodexError as error:
            return say_when(error, json_response({"error": redact(str(error))}, status=_status(error)))

    return respond


def _status(error: Exception) -> int:
    """HTTP status of an error about a request: its own, 404 for what is not there, else 400."""
    if isinstance(error, Refused):
        return error.status
    unknown = isinstance(error, TraceError | LibraryError | PipelineError) and not isinstance(error, QueryError)
    return 404 if unknown else 400


def say_when(error: Exception, response: Response) -> Response:
    """Add to a response when to try again, if a limit was reached."""
    if isinstance(error, Refused) and error.retry_s is not None:
        response.headers["retry-after"] = str(int(error.retry_s) + 1)
    return response


async def unless_left(request: Request, work: Awaitable[Response]) -> Response:
    """Do the work of a request whose body was read; it is cancelled when its client goes, who reads no answer."""
    from starlette.responses import Response

    doing, left = asyncio.ensure_future(work), asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait([doing, left], return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return await doing
    finally:
        left.cancel()
        doing.cancel()
    await asyncio.wait([doing])
    left.result()  # raises if its body was too large instead
    return Response(status_code=CLIENT_LEFT)


async def disconnected(request: Request) -> None:
    """Wait until the client of a request whose body was read has gone."""
    message: Any = {}
    while message.get("type") != "http.disconnect":
        message = await request.receive()


def numbered_route(path: str, answer: Any, **more: Any) -> Route:
    """Return a route with numbers in its path, `{library:number}`.

    Nothing has longer ones, and Python may not read them.
    """
    from starlette.convertors import IntegerConvertor, register_url_convertor
    from starlette.routing import Route

    class Number(IntegerConvertor):
        regex = "[0-9]{1,9}"

    register_url_convertor("number", Number())
    return Route(path, answer, **more)


def json_response(value: Any, status: int = 200) -> Response:
    """Return a response of dataclasses, pydantic's own types and JSON values."""
    return response(to_json(value, inf_nan_mode="null"), "application/json", status=status)


def streamed(
    pieces: AsyncGenerator[bytes],
    headers: Mapping[str, str],
    status: int = 200,
    first: bytes = b"",
    on_end: Callable[[], None] | None = None,
) -> Response:
    """Yield a response of `first` and these pieces, which are closed when it ends, however it does.

    Then `on_end` is called.

    So a file, a child or a question ends with it, and no garbage collector decides when.
    """
    from starlette.responses import StreamingResponse

    async def body() -> AsyncGenerator[bytes]:
        if first:
            yield first
        async for piece in pieces:
            yield piece

    class Streamed(StreamingResponse):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            try:
                async with aclosing(pieces):
                    await super().__call__(scope, receive, send)
            finally:
                if on_end is not None:
                    on_end()

    return Streamed(body(), status, headers)


def response(content: bytes, kind: str, policy: str = FORBIDDEN_ELSEWHERE, status: int = 200) -> Response:
    """Return a response of these bytes, which no other site may read or frame."""
    from starlette.responses import Response

    headers = SAFE | {"content-security-policy": policy}
    return Response(content, status, headers, media_type=kind)
