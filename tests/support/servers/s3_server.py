"""An S3 server of the tests' own: moto's, over real HTTP on this machine."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}

_running: list[str] = []


@contextmanager
def s3_server(careless: bool = False) -> Iterator[str]:
    """The address of a server; skips the test where moto is not installed.

    A careless one overwrites objects though asked to make new ones only, as stores without conditional writes do.
    """
    moto = pytest.importorskip("moto.server")
    serving = pytest.importorskip("werkzeug.serving")
    store = moto.DomainDispatcherApplication(moto.create_backend_app)

    def application(request: dict[str, Any], start: Any) -> Any:
        if careless:
            request.pop("HTTP_IF_NONE_MATCH", None)
        return store(request, start)

    server = serving.make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    _running.append(address)
    try:
        yield address
    finally:
        _running.remove(address)
        if not _running:  # all servers of a process share moto's buckets, which outlive them
            send(f"{address}/moto-api/reset", "POST", b"")
        server.shutdown()
        thread.join()
        server.server_close()


def send(address: str, method: str, body: bytes | None = None) -> bytes:
    """One plain request, as `curl` would make it."""
    request = urllib.request.Request(address, body, {"Content-Type": "text/plain"}, method=method)
    with urllib.request.urlopen(request) as answer:
        held: bytes = answer.read()
    return held


def environment(address: str) -> dict[str, str]:
    """The environment variables that a user sets to reach an S3-compatible store."""
    return {"AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_DISABLED": "true", **CREDENTIALS}
