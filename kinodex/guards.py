"""The guard at the door of every server here, its socket, and the one form of its answers and refusals.

Without a token a server is for this machine alone: it listens on loopback and answers to no other name, so that a
site which points its own name here (DNS rebinding) gets nothing. With one, every request shows it, by header or by a
cookie that no other site's page can have sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import inspect
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic_core import to_json

from kinodex.agent.errors import TraceError
from kinodex.errors import KinodexError
from kinodex.index.errors import LibraryError, QueryError
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.errors import PipelineError
from kinodex.redaction import redact

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

T = TypeVar("T")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SAFE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
FORBIDDEN_ELSEWHERE = "default-src 'none'; frame-ancestors 'none'"
SHORTEST_TOKEN = 16
MIB = 2**20
BODY_BYTES = MIB
LARGER_BODIES = {"/search/picture": 10 * MIB + 1024, "/v1/chat/completions": 32 * MIB, "/v1/responses": 32 * MIB}
"""Ends of paths that take pictures, and the bytes that they take."""
SIMPLE_CONTENT = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
"""Content that a page of any site can send without asking: no route here takes it."""
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?")
REQUEST_S = 120.0
"""In which a request has to come: 32 MiB at 2 Mbit a second."""
TOO_LARGE = "the request is too large; at most {:.1f} MiB are taken here"
CLIENT_LEFT = 499
"""The status that logs know for a client who did not wait; nobody is sent it."""


@dataclass(frozen=True, slots=True)
class Guard:
    """The address that a server listens on, and the token that every request has to show, if any.

    `names` are the hosts that requests may name where there is no token; none: any.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    names: tuple[str, ...] = LOOPBACK

    @property
    def cookie(self) -> str:
        """Name of the cookie: browsers do not keep those of different ports apart."""
        return f"kinodex_{self.port}"

    @property
    def cookie_value(self) -> str:
        """Value that stands for the token, which itself is not left in a browser."""
        return hmac.new((self.token or "").encode(), b"kinodex serve", hashlib.sha256).hexdigest()

    def is_shown_by(self, request: Request) -> bool:
        """True for a request with the token, in its header or as the cookie that stands for it."""
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        is_bearer = scheme.lower() == "bearer" and _same(shown, self.token or "")
        return is_bearer or _same(request.cookies.get(self.cookie, ""), self.cookie_value)


def check_token(token: str) -> None:
    """Raise UsageError for a token that could be guessed, or that no header can carry."""
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"got a token of {len(token)} characters; give {SHORTEST_TOKEN} or more letters, digits and signs without "
            "a space, for example the output of: openssl rand -hex 16"
        )


def check_host(host: str, token: str | None) -> None:
    """Raise UsageError for an address that others reach, without a token to keep them out."""
    if token is None and host not in LOOPBACK:
        raise UsageError(
            f"got --host {host}, which other machines may reach, without a token; set KINODEX_SERVE_TOKEN (or give "
            "--token), or leave --host out"
        )


def guarded_app(app: ASGIApp, guard: Guard) -> ASGIApp:
    """Put a guard before an application: requests that it refuses never reach a route."""
    from starlette.datastructures import MutableHeaders
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
        if scope["type"] != "http":  # nothing here speaks WebSocket
            return
        most, taken = _body_bytes(scope["path"]), 0

        async def counted() -> Message:
            """Refuse a body that grows beyond `most` bytes though its header did not say so."""
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most:
                raise HTTPException(413, TOO_LARGE.format(most / MIB))
            return message

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope)
        refusal = _admission(request, guard) or _refusal(request)
        with suppress(ClientDisconnect):  # it left in the middle of its body, and reads no reply
            await (app if refusal is None else refusal)(scope, counted, safely)

    return guarded


def _admission(request: Request, guard: Guard) -> Response | None:
    """The response to a request that may not come in, or that has come in by the address with the token."""
    from starlette.responses import RedirectResponse

    host = HOST.fullmatch(request.headers.get("host", ""))
    if host is None:
        return _refuse(request, 400, "the header Host is missing, or names no host")
    if guard.token is None:
        if guard.names and host[1].strip("[]").lower() not in guard.names:
            own = "localhost" if guard.host in LOOPBACK else guard.host
            return _refuse(request, 400, f"this server answers to {own} alone; start it with a token for other names")
        return None
    if guard.is_shown_by(request):
        return None
    shown = request.query_params.get("token", "")
    if request.url.path == "/" and request.method == "GET" and _same(shown, guard.token):
        entered = RedirectResponse("/", 303)
        secure = request.scope["scheme"] == "https"
        entered.set_cookie(guard.cookie, guard.cookie_value, httponly=True, samesite="strict", secure=secure)
        return entered
    refusal = _refuse(
        request,
        401,
        "this server wants its token: open /?token=TOKEN in a browser, or send the header Authorization: Bearer",
    )
    refusal.headers["www-authenticate"] = "Bearer"
    return refusal


def _refusal(request: Request) -> Response | None:
    """The response to a request that comes from another site's page, or brings more than is taken."""
    headers = request.headers
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    is_foreign = origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}")
    is_embedded = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
    if is_foreign or is_embedded:
        return _refuse(request, 403, "a page of another site cannot use this server")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method in ("POST", "PUT", "PATCH") and kind in SIMPLE_CONTENT:
        return _refuse(request, 415, f"got content of type {kind or 'none'!r}; send application/json")
    length, most = headers.get("content-length", "0").lstrip("0") or "0", _body_bytes(request.scope["path"])
    if not length.isdecimal() or len(length) > len(str(most)) or int(length) > most:
        return _refuse(request, 413, TOO_LARGE.format(most / MIB))
    return None


def _body_bytes(path: str) -> int:
    return next((most for end, most in LARGER_BODIES.items() if path.endswith(end)), BODY_BYTES)


def _same(got: str, expected: str) -> bool:
    return hmac.compare_digest(got.encode(), expected.encode())


def _refuse(request: Request, status: int, sentence: str) -> Response:
    """Refuse in a sentence; where OpenAI's clients come, in the form that they read."""
    if not request.scope["path"].startswith("/v1/"):
        return json_response({"error": sentence}, status=status)
    code = "invalid_api_key" if status == 401 else None
    said = {"message": sentence, "type": "invalid_request_error", "param": None, "code": code}
    return json_response({"error": said}, status=status)


# Sockets of the servers that commands start, and the address that users see.


def listen(host: str, port: int) -> socket.socket:
    """Open a socket that listens on a host and port; port 0 picks a free one. Raises UsageError if that fails."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
        # Connections inherit it. asyncio sets it only where the protocol was named, and without it the body of each
        # reply waits 40 ms for the client to acknowledge its head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}, port {port}: {error.strerror}; give another --host or --port"
        ) from error


def http_protocol() -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with a limit on the time in which a request comes, head and body; uvicorn has none.

    Half a request holds a connection, so without the limit some hundreds of them keep everybody out, for no token.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class _LimitedProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type] # it is one of two, by what is installed
        _limit: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._begin_request()

        def connection_lost(self, error: Exception | None) -> None:
            self._end_limit()
            super().connection_lost(error)

        def on_response_complete(self) -> None:
            self._begin_request()  # before the next one, which may be here already
            super().on_response_complete()

        def _begin_request(self) -> None:
            self._end_limit()
            self._limit = asyncio.get_running_loop().call_later(REQUEST_S, self._check_request)

        def _end_limit(self) -> None:
            if self._limit is not None:
                self._limit.cancel()

        def _check_request(self) -> None:
            is_here = self.cycle is not None and not self.cycle.more_body
            if not is_here or self.cycle.response_complete:  # of that one; the next has not come
                self.transport.close()

    return _LimitedProtocol


def http_url(listener: socket.socket, host: str) -> str:
    """URL of a server on this socket, under the host that its user named."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/"


# Answers, which no other site may read or frame, and errors as one line of JSON.


class Refused(KinodexError):
    """A request that is not answered: with `status`, and `retry_s` where it may be tried again."""

    status = 400
    retry_s: float | None = None


class NotGiven(Refused):
    """A request for something that the server's user did not name."""

    status = 404


def numbered(values: Sequence[T], number: int, kind: str) -> T:
    """The value of a number that came with a request; raises NotGiven, which names the `kind` of the values."""
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
    """A route with numbers in its path, `{library:number}`: nothing has longer ones, and Python may not read them."""
    from starlette.convertors import IntegerConvertor, register_url_convertor
    from starlette.routing import Route

    class Number(IntegerConvertor):
        regex = "[0-9]{1,9}"

    register_url_convertor("number", Number())
    return Route(path, answer, **more)


def json_response(value: Any, status: int = 200) -> Response:
    """A response of dataclasses, pydantic's own types and JSON values."""
    return response(to_json(value, inf_nan_mode="null"), "application/json", status=status)


def streamed(
    pieces: AsyncGenerator[bytes],
    headers: Mapping[str, str],
    status: int = 200,
    first: bytes = b"",
    on_end: Callable[[], None] | None = None,
) -> Response:
    """A response of `first` and these pieces, which are closed when it ends, however it does; then `on_end` is called.

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
    """A response of these bytes, which no other site may read or frame."""
    from starlette.responses import Response

    headers = SAFE | {"content-security-policy": policy}
    return Response(content, status, headers, media_type=kind)
