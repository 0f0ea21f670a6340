"""A server of the Batch API for tests, by its published wire form: files, batches, and replies by a function."""

from __future__ import annotations

import email
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.loopback import Answer, Call, serve

Reply = Callable[[dict], dict]
"""A chat completion's content, as JSON values, for a request's body."""
USAGE = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
OTHERS = 1000
"""Batches of others on a page of an endless list."""
OTHER = {"object": "batch", "endpoint": "/v1/responses", "completion_window": "24h", "created_at": 0}
OTHER |= {"input_file_id": "file-other", "status": "completed"}


@dataclass
class BatchServer:
    """Batches stay in progress until `gate` is set; then each request is answered once, and counted.

    `refuse` gives an error's message for a request that the server does not take; of the first batch, the requests
    beyond `expire_after` expire. `invalid` refuses whole batches; `end_as` is the status of others at their end, and of
    `lost_replies` batches the making is answered with an error, though they are made. `endless` lists say that there is
    more after every page: the "same" page again, or "new" batches for ever.
    """

    reply: Reply
    gate: threading.Event = field(default_factory=threading.Event)
    refuse: Callable[[dict], str | None] = lambda body: None
    expire_after: int | None = None
    invalid: str = ""
    end_as: str = "completed"
    lost_replies: int = 0
    endless: Literal["", "same", "new"] = ""
    pages: int = 0
    """Pages of the list that were sent."""
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    answered: list[str] = field(default_factory=list)
    """Custom ids of all requests that were paid for."""
    online: int = 0
    """Requests to the ordinary endpoint."""
    created: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    base_url: str = ""

    def new_file(self, content: bytes) -> dict[str, Any]:
        file_id = f"file-{len(self.files) + 1}"
        self.files[file_id] = content
        about = {"object": "file", "bytes": len(content), "created_at": 0, "filename": "x", "purpose": "batch"}
        return about | {"id": file_id, "status": "processed"}

    def new_batch(self, asked: dict[str, Any]) -> dict[str, Any]:
        errors = {"object": "list", "data": [{"code": "invalid", "message": self.invalid}]} if self.invalid else None
        status = "failed" if self.invalid else "in_progress"
        batch = {"id": f"batch_{len(self.batches) + 1}", "object": "batch", "created_at": 0, "metadata": None} | asked
        batch |= {"status": status, "errors": errors}
        self.batches[str(batch["id"])] = batch
        self.created.set()
        return batch

    def list_batches(self) -> dict[str, Any]:
        """One page of the list of batches, all of them, and beside them others as `endless` says."""
        self.pages += 1
        others = [
            {"id": f"other_{self.pages if self.endless == 'new' else 1}_{number}", **OTHER} for number in range(OTHERS)
        ]
        found = [*self.batches.values(), *(others if self.endless else ())]
        return {"object": "list", "data": found, "has_more": bool(self.endless)}

    def batch(self, batch_id: str) -> dict[str, Any]:
        """The batch as it is now: at the first look after the gate was opened it is worked on."""
        batch = self.batches[batch_id]
        if batch["status"] == "in_progress" and self.gate.is_set():
            self._work(batch)
        return batch

    def respond(self, call: Call) -> Answer:
        with self.lock:
            match call.method, *call.path.partition("?")[0].removeprefix("/v1/").split("/"):
                case ["GET", "batches"]:
                    return Answer(200, self.list_batches())
                case ["GET", "batches", batch_id]:
                    return Answer(200, self.batch(batch_id))
                case ["GET", "files", file_id, "content"]:
                    return Answer(200, self.files[file_id], {"Content-Type": "application/octet-stream"})
                case ["GET", *_]:
                    return Answer(404, {"error": {"message": f"no {call.path}"}})
                case ["POST", "files"]:
                    return Answer(200, self.new_file(_uploaded(call.headers["content-type"], call.body)))
                case ["POST", "batches"]:
                    batch = self.new_batch(call.json)
                    is_lost = self.lost_replies >= len(self.batches)
                    return Answer(504, {"error": {"message": "gateway timeout"}}) if is_lost else Answer(200, batch)
            self.online += 1
            return Answer(400, {"error": {"message": "only batches here"}})

    def _work(self, batch: dict[str, Any]) -> None:
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        limit = self.expire_after if batch["id"] == "batch_1" else None
        good, bad = [], []
        for number, line in enumerate(lines):
            problem = self.refuse(line["body"])
            if limit is not None and number >= limit:
                bad.append(_line(line, None, {"code": "batch_expired", "message": "This request expired."}))
            elif problem:
                bad.append(_line(line, {"status_code": 400, "body": {"error": {"message": problem}}}, None))
            else:
                self.answered.append(line["custom_id"])
                body = _completion(line["body"], self.reply(line["body"]))
                good.append(_line(line, {"status_code": 200, "request_id": "r", "body": body}, None))
        for name, found in (("output_file_id", good), ("error_file_id", bad)):
            if found:
                lines_of_file = b"".join(json.dumps(each).encode() + b"\n" for each in reversed(found))
                batch[name] = self.new_file(lines_of_file)["id"]
        batch["status"] = "expired" if limit is not None and len(lines) > limit else self.end_as
        batch["request_counts"] = {"total": len(lines), "completed": len(good), "failed": len(bad)}


def _line(line: dict, response: dict | None, error: dict | None) -> dict:
    id_ = line["custom_id"]
    return {"id": f"batch_req_{id_[:8]}", "custom_id": id_, "response": response, "error": error}


def _completion(body: dict, content: dict) -> dict:
    message = {"role": "assistant", "content": json.dumps(content), "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    about = {"id": "chatcmpl-batch", "object": "chat.completion", "created": 0, "model": body["model"]}
    return about | {"choices": [choice], "usage": USAGE}


@contextmanager
def serving(server: BatchServer, port: int = 0) -> Iterator[BatchServer]:
    """Run a server in threads of this process until the block ends."""
    with serve(server.respond, port) as address:
        server.base_url = f"{address}/v1"
        yield server


def _uploaded(content_type: str, body: bytes) -> bytes:
    """The file of a form; its purpose has to be "batch"."""
    form = email.message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    parts = {str(part.get_param("name", header="content-disposition")): part for part in form.walk()}
    assert parts["purpose"].get_payload(decode=True) == b"batch"
    content = parts["file"].get_payload(decode=True)
    assert isinstance(content, bytes)
    return content
