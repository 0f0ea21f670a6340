"""A model hub on loopback: it serves the files of a folder the way the hub's client asks for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.support.loopback import serve_handler

COMMIT = "0" * 40
NOBODY_THERE = "http://127.0.0.1:9"


@contextmanager
def hub_at(address: str) -> Iterator[None]:
    """Send every request to the hub that this process, or a child of it, makes within this block to `address`.

    HF_ENDPOINT is read once, at import, and two objects keep the address that they were made with: the `api` of
    huggingface_hub, and the one that transformers makes at its first request. A test that changes the address alone
    would leave it to all tests that follow, if the second object is made while it runs.
    """
    import huggingface_hub.hf_api
    import transformers.utils.hub

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", address)
        patch.setattr("huggingface_hub.constants.ENDPOINT", address)
        patch.setattr(huggingface_hub.hf_api.api, "endpoint", address)
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        patch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.setattr(transformers.utils.hub, "_hf_api", None, raising=False)
        yield


@contextmanager
def hub_of(root: Path) -> Iterator[str]:
    """Serve `root`/ORGANISATION/MODEL/FILE as that model's files; gives the address, for HF_ENDPOINT."""

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, with_body: bool) -> None:
            model, resolve, rest = unquote(self.path.partition("?")[0]).strip("/").partition("/resolve/")
            path = root / model / rest.partition("/")[2]
            found = bool(resolve) and path.is_file()
            body = path.read_bytes() if found else b"{}"
            self.send_response(200 if found or not resolve else 404)
            self.send_header("Content-Length", str(len(body)))
            if found:
                self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
                self.send_header("X-Repo-Commit", COMMIT)
            elif resolve:
                self.send_header("X-Error-Code", "EntryNotFound")
                self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, *said: Any) -> None:
            """Nothing: pytest's output is for what fails."""

    with serve_handler(Hub) as address:
        yield address
