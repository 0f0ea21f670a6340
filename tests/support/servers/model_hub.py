"""A model hub on loopback: it serves the files of a folder the way the hub's client asks for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.support.loopback import Answer, Call, serve

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

    def respond(call: Call) -> Answer:
        model, resolve, rest = unquote(call.path.partition("?")[0]).strip("/").partition("/resolve/")
        path = root / model / rest.partition("/")[2]
        if not resolve:
            return Answer(200, b"{}")
        if not path.is_file():
            return Answer(404, b"{}", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        body = path.read_bytes()
        return Answer(200, body, {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', "X-Repo-Commit": COMMIT})

    with serve(respond) as address:
        yield address
