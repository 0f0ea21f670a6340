"""The real server of `kinodex serve` on loopback, in a thread, and a client that sends requests as they are."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kinodex.agent.catalogue import find_variant
from kinodex.agent.limits.budget import Budget
from kinodex.jobs.models import ModelChoice
from kinodex.server.guards import Guard
from kinodex.web.app import Site, make_app
from kinodex.web.inputs import classify_inputs
from kinodex.web.questions import Questions
from kinodex.web.serve_settings import ServeSettings
from kinodex.web.viewer_api import ViewerApi
from tests.support.loopback import serve_in_thread

JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Reply:
    """A response: status, headers by their names in lower case, and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Client:
    """Sends requests to one server; `headers` go with all of them."""

    address: str
    site: Site
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def questions(self) -> Questions:
        assert self.site.questions is not None
        return self.site.questions

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request as it is, whatever its path and headers; an empty `Host` stands for the right one."""
        connection = self.connect()
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        sent = {"host": urlsplit(self.address).netloc, **self.headers, **(headers or {})}
        if body is not None:
            sent.setdefault("content-length", str(len(body)))
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        reply = Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        connection.close()
        return reply

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Reply:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, value: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        body = json.dumps({} if value is None else value).encode()
        return self.send("POST", path, body, JSON | dict(headers or {}))

    def ask(self, question: str, **more: Any) -> str:
        """Begin a question about the first library; its key."""
        reply = self.post("/data/libraries/0/questions", {"question": question, **more})
        assert reply.status == 201, reply.body
        key: str = reply.json["key"]
        return key

    def events(self, key: str, headers: Mapping[str, str] | None = None) -> Generator[Event, None, None]:
        """Events of a question as they come, until the stream ends."""
        fields: dict[str, str] = {}
        with closing(self.connect()) as connection:
            connection.request("GET", f"/data/questions/{key}/events", headers={**self.headers, **(headers or {})})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            for line in response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "event" in fields:
                    yield Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
                    fields = {}

    def wait(self, key: str) -> dict[str, Any]:
        """Wait for the end of a question; the facts of the list."""
        assert list(self.events(key))[-1].data["state"] in ("done", "failed")
        rows = self.get("/data/questions?library=0").json["rows"]
        row: dict[str, Any] = next(row for row in rows if row["key"] == key)
        return row

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=120)


@dataclass(frozen=True)
class Event:
    """A server-sent event."""

    number: int
    kind: str
    data: dict[str, Any]


@contextmanager
def serving(
    libraries: Sequence[object],
    traces: Path,
    choice: ModelChoice | None = None,
    *,
    token: str | None = None,
    agent: str = "eea",
    budget: Budget | None = None,
    **settings: Any,
) -> Iterator[Client]:
    """Serve libraries until the end of the block; `settings` are further ones of `ServeSettings`."""
    inputs = classify_inputs([str(each) for each in libraries])
    chosen = ServeSettings(
        choice or ModelChoice(cache=False), find_variant(agent), traces, budget or Budget(), **settings
    )
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    questions = Questions(inputs.libraries, chosen)
    site = Site(ViewerApi(inputs), questions, Guard("127.0.0.1", port, token))
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    with closing(questions), serve_in_thread(make_app(site), listener) as address:
        try:
            yield Client(address, site, headers)
        finally:
            questions.stop_all()
