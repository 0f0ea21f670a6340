"""The guard at the door of every server here.

Without a token a server is for this machine alone: it listens on loopback and answers to no other name, so that a
site which points its own name here (DNS rebinding) gets nothing. With one, every request shows it, by header or by a
cookie that no other site's page can have sent.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kinodex.jobs.errors import UsageError
from kinodex.server.responses import SAFE, json_response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 16
MIB = 2**20
BODY_BYTES = MIB
LARGER_BODIES = {"/search/picture": 10 * MIB + 1024, "/v1/chat/completions": 32 * MIB, "/v1/responses": 32 * MIB}
"""Ends of paths that take pictures, and the bytes that they take."""
SIMPLE_CONTENT = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
"""Content that a page of any site can send without asking: no route here takes it."""
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?")
TOO_LARGE = "the request is too large; at most {:.1f} MiB are taken here"


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
        """Return True for a request with the token, in its header or as the cookie that stands for it."""
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
    """Return the response to a request that may not come in, or that has come in by the address with the token."""
    from starlette.responses import RedirectResponse

    host = HOST.fullmatch(request.headers.get("host", ""))
    if host is None:
        return _refuse(request, 400, "the header Host is missing, or names no host")
    if guard.token is None:
        if guard.names and host[1].strip("[]").lower() not in guard.names:
            own = "localhost" if guard.host in LOOPBACK else guard.host
            return _refuse(request, 400, f"this server answers only to {own}; start it with a token for other names")
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
    """Return the response to a request that comes from another site's page, or brings more than is taken."""
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
