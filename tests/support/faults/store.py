"""The layer of an object store: moto's S3 over real HTTP, of which the n-th request fails: `python -m ...faults.store`.

A process of its own, for trials fork; it prints its address and is told what fails by requests under `CONTROL`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from tests.support.faults.disk import Struck
from tests.support.faults.operations import BASES, Given
from tests.support.faults.trials import in_fork
from tests.support.processes import ending_process
from tests.support.servers.s3_server import environment

CONTROL = "/-faults"
BUCKET = "libraries"
LATE_S, PATIENCE = 2.5, "1s"
"""A request that hangs is answered after so long, and the client waits less."""


@dataclass(frozen=True)
class StoreFault:
    """A reply: its status; or none, after the request was performed or instead, at once or late."""

    reply: str
    performed: bool = False


FAULTS = {
    "412": StoreFault("412 Precondition Failed"),
    "503": StoreFault("503 Slow Down"),
    "time-out": StoreFault("late"),
    "half a reply": StoreFault("half", performed=True),
    "reply lost": StoreFault("none", performed=True),
}


class FaultyStore:
    """moto's application, of which a request fails that was asked for."""

    def __init__(self, store: Callable[[dict[str, Any], Any], Iterable[bytes]]) -> None:
        self._store = store
        self._nth, self._counted, self._fault, self._first = 0, 0, FAULTS["503"], ""

    def __call__(self, request: dict[str, Any], start: Any) -> Iterable[bytes]:
        if request["PATH_INFO"] == CONTROL:
            return self._control(request, start)
        self._counted += 1
        if self._counted != self._nth:
            return self._store(request, start)
        self._first = f"{request['REQUEST_METHOD']} {request['PATH_INFO']}"
        fault = self._fault
        if fault.reply == "late":
            time.sleep(LATE_S)
            return self._store(request, start)
        if fault.performed:
            body = b"".join(self._store(request, start if fault.reply == "half" else lambda *given: None))
            return _cut(body[: len(body) // 2] if fault.reply == "half" else b"")
        request["wsgi.input"].read(int(request.get("CONTENT_LENGTH") or 0))
        code = {"412": "PreconditionFailed", "503": "SlowDown"}[fault.reply[:3]]
        start(fault.reply, [("Content-Type", "application/xml")])
        return [f"<Error><Code>{code}</Code></Error>".encode()]

    def _control(self, request: dict[str, Any], start: Any) -> Iterable[bytes]:
        asked = parse_qs(request["QUERY_STRING"])
        said = json.dumps([self._counted, self._first]).encode()
        if "nth" in asked:
            self._nth, self._counted, self._first = int(asked["nth"][0]), 0, ""
            self._fault = FAULTS[asked["fault"][0]]
        start("200 OK", [("Content-Length", str(len(said)))])
        return [said]


def _cut(part: bytes) -> Iterator[bytes]:
    """A reply that ends before its end, or before it begins."""
    if part:
        yield part
    raise ConnectionAbortedError


class Store:
    """Libraries in the store, each trial's a copy of one that is made once on the disk."""

    def __init__(self, address: str, folder: Path, given: Given) -> None:
        self._address, self._folder, self._given, self._numbers = address, folder, given, count()

    def place(self, base: str | None) -> str:
        """A new place, with a copy of this library."""
        name = f"trial-{next(self._numbers)}"
        if base is not None:
            made = self._folder / "bases" / base
            if not made.exists():
                made.parent.mkdir(exist_ok=True)
                assert in_fork(lambda: BASES[base](self._given, made)) is None, f"the library {base} cannot be made"
            for file in (each for each in made.rglob("*") if each.is_file()):
                where = f"{self._address}/{BUCKET}/{name}/{file.relative_to(made)}"
                send(where.replace("#", "%23"), "PUT", file.read_bytes())
        return f"s3://{BUCKET}/{name}"

    @contextmanager
    def faults(self, uri: str, fault: str | None, nth: int) -> Iterator[Struck]:
        control, struck = f"{self._address}{CONTROL}?", Struck()
        send(control + urlencode({"nth": nth, "fault": fault or "503"}))
        try:
            yield struck
        finally:
            counted, struck.first = json.loads(send(control + urlencode({"nth": 0, "fault": "503"})))
            struck.counted = dict.fromkeys(FAULTS, counted)
            struck.times = int(bool(struck.first))

    def kills(self, fault: str) -> bool:
        return False


def send(address: str, method: str = "GET", body: bytes | None = None) -> bytes:
    request = urllib.request.Request(address, body, {"Content-Type": "text/plain"}, method=method)
    with urllib.request.urlopen(request) as answer:
        held: bytes = answer.read()
    return held


@contextmanager
def running(folder: Path, given: Given) -> Iterator[Store]:
    """Start the store, and tell this process of it as a user would, by the environment."""
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.faults.store"]
    with ending_process(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=plain, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            os.environ.update(environment(address), AWS_TIMEOUT=PATIENCE)
            send(f"{address}/{BUCKET}", "PUT")
            yield Store(address, folder, given)
        finally:
            server.kill()


def main() -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug import serving

    store = FaultyStore(DomainDispatcherApplication(create_backend_app))
    server = serving.make_server("127.0.0.1", 0, store, threaded=True)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
