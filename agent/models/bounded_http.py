"""The one reader of what servers reply: decoded bytes, what JSON holds and the whole time of a reply have limits.

A client of httpx2 has a limit for each wait and none for all of them, decodes whatever comes, and follows a redirect
with the request's pictures and key. All clients of model servers, rerankers and receivers of notices are made here.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Any

import httpx2

from kinodex.agent.errors import ReplyRefused
from kinodex.index.nesting import json_excess
from kinodex.redaction import redact_uri

MOST_REPLY_BYTES = 32 << 20
"""Of a reply, decoded. The longest that is known is a list of a thousand models, of 2 MB."""
MOST_REDIRECTS = 5
UNLIMITED_S = 600.0
"""Where a request names no limit of its own."""
OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")
USUAL_PORTS = {"http": 80, "https": 443}


class BoundedClient(httpx2.AsyncClient):
    """A client whose replies are read whole, within limits; the time of a reply is the request's limit of a read.

    A redirect is followed to the same server alone. Raises ReplyRefused, or as httpx2 does.
    """

    def __init__(self, *, most_bytes: int = MOST_REPLY_BYTES, **options: Any) -> None:
        super().__init__(follow_redirects=False, limits=httpx2.Limits(max_connections=1000), **options)
        self.headers["accept-encoding"] = "gzip"
        self._most_bytes = most_bytes

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send a request, and read the whole reply."""
        limit_s = (request.extensions.get("timeout") or {}).get("read") or UNLIMITED_S
        options["follow_redirects"] = False
        try:
            async with asyncio.timeout(limit_s):
                return await self._send_on(request, options)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no whole reply within {limit_s:g} s", request=request) from error

    async def _send_on(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        for _ in range(MOST_REDIRECTS):
            response = await super().send(request, stream=True, **options)
            try:
                if response.next_request is None:
                    return _whole(response, await self._content(response))
                _check_same_server(request.url, response.next_request.url)
                request = response.next_request
            finally:
                await response.aclose()
        raise ReplyRefused(f"{_server(request.url)} sends a request on again and again; correct its address")

    async def _content(self, response: httpx2.Response) -> bytes:
        decode, content = _decoder(response), bytearray()
        async for part in response.aiter_raw():
            content += decode(part, self._most_bytes + 1 - len(content))
            if len(content) > self._most_bytes:
                raise ReplyRefused(
                    f"{_server(response.request.url)} sends a reply of more than {self._most_bytes:,} bytes; give the "
                    "address of another server"
                )
        if (excess := json_excess(bytes(content))) is not None:
            raise ReplyRefused(
                f"{_server(response.request.url)} sends JSON {excess}; give the address of another server"
            )
        return bytes(content)


def _decoder(response: httpx2.Response) -> Callable[[bytes, int], bytes]:
    """Return a function that decodes a part of a reply, to some more bytes than fit the limit at most."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return lambda part, most: part
    if encoding not in ("gzip", "x-gzip"):
        raise ReplyRefused(
            f"{_server(response.request.url)} sends its reply as {encoding[:40]!r}, which was not asked for; update it"
        )
    inflate = zlib.decompressobj(wbits=31)

    def decode(part: bytes, most: int) -> bytes:
        try:
            return inflate.decompress(part, most)
        except zlib.error as error:
            raise httpx2.DecodingError(str(error), request=response.request) from error

    return decode


def _whole(response: httpx2.Response, content: bytes) -> httpx2.Response:
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in OF_THE_WIRE]
    return httpx2.Response(
        response.status_code,
        headers=headers,
        content=content,
        request=response.request,
        extensions={name: value for name, value in response.extensions.items() if name != "network_stream"},
    )


def _check_same_server(here: httpx2.URL, there: httpx2.URL) -> None:
    is_secured = (here.scheme, there.scheme, here.port, there.port) == ("http", "https", None, None)
    if here.host != there.host or not (is_secured or _port(here) == _port(there)):
        raise ReplyRefused(
            f"{_server(here)} sends the request on to {_server(there)}, another server, which would get its pictures "
            "and its key; give that address if it is the right one"
        )


def _port(url: httpx2.URL) -> int | None:
    return url.port or USUAL_PORTS.get(url.scheme)


def _server(url: httpx2.URL) -> str:
    return redact_uri(f"{url.scheme}://{url.host}" + (f":{url.port}" if url.port else ""))
