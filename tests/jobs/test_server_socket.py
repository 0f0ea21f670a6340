"""Sockets of servers: free ports, ports in use, and addresses for people."""

from __future__ import annotations

import pytest

from kinodex.guards import http_url, listen
from kinodex.jobs.errors import UsageError


def test_a_free_port_and_a_used_one():
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert http_url(listener, "localhost") == f"http://localhost:{port}/"
        assert http_url(listener, "::1") == f"http://[::1]:{port}/"
        with pytest.raises(
            UsageError, match=f"cannot listen on 127.0.0.1, port {port}: .*give another --host or --port"
        ):
            listen("127.0.0.1", port)


def test_a_host_that_is_none():
    with pytest.raises(UsageError, match=r"cannot listen on no\.such\.host\.invalid"):
        listen("no.such.host.invalid", 0)
