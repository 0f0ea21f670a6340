"""Sockets of the servers that commands start, the time limit of a request, and the address that users see."""

from __future__ import annotations

import asyncio
import socket

from kinodex.jobs.errors import UsageError

REQUEST_S = 120.0
"""In which a request has to come: 32 MiB at 2 Mbit a second."""


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
