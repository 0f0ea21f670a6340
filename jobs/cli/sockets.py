"""Sockets that commands listen on."""

from __future__ import annotations

import socket

from jobs.errors import UsageError


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is a free one. Raises UsageError if it cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}, port {port}: {error.strerror}; give another --host or --port"
        ) from error
