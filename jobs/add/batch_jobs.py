"""Jobs of the Batch API: a file of requests is uploaded, worked on within a day at half the price, and fetched.

The wire form is OpenAI's (platform.openai.com/docs/guides/batch): one JSON line a request with a `custom_id`, at most
50,000 lines and 200 MB a file; the replies come as a file of lines in any order, errors as another.

What was sent is noted in a folder before it is sent, and each job carries a name of its own as metadata. So a process
that is killed at any moment goes on with the same job, which it finds in the server's list if it did not hear its id,
and no request is paid for twice.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kinodex.index.nesting import parse_json
from kinodex.jobs.json_files import write_whole
from kinodex.pipeline.errors import PipelineError

if TYPE_CHECKING:
    import openai
    from openai.types import Batch

ENDPOINT: Final = "/v1/chat/completions"
WINDOW: Final = "24h"
NAME = "kinodex"
"""The key of a job's own name in the metadata of a batch."""
ENDED = ("completed", "expired", "cancelled", "failed")
AT_WORK = ("validating", "in_progress", "finalizing", "cancelling", "queued", "pending", "created", "running")
"""Statuses of a batch that is still to be waited for; the last four are of servers other than OpenAI's."""
STATE = "jobs.json"
MOST_LISTED = 10_000
"""Batches in a server's list, of which each is looked at."""
AGAIN = (408, 409, 429, 500, 502, 503, 504)
"""Statuses of a request that may succeed in another job."""
MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000
POLL_S = 30.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one file, and the seconds between two looks at a job."""

    requests: int = MOST_REQUESTS
    bytes: int = MOST_BYTES
    poll_s: float = POLL_S


UNCHANGED = Limits()


@dataclass(frozen=True, slots=True)
class Job:
    """One file of requests, by its name; ids are empty until the server gave them, `status` until the job ended."""

    name: str
    file_id: str = ""
    batch_id: str = ""
    status: str = ""


@dataclass(slots=True)
class Replies:
    """Replies by custom id: completions as the server wrote them, and the reasons of requests that it refused."""

    completions: dict[str, dict[str, Any]] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)


class JobFolder:
    """The folder of the jobs of one task, which one process at a time may use."""

    def __init__(self, path: Path, limits: Limits = UNCHANGED) -> None:
        self.path, self.limits = path, limits
        path.mkdir(parents=True, exist_ok=True)

    @property
    def jobs(self) -> list[Job]:
        """All jobs that were begun, in order."""
        state = self.path / STATE
        return [Job(**each) for each in json.loads(state.read_text())] if state.exists() else []

    @contextmanager
    def requests(self) -> Iterator[Requests]:
        """Take requests, which are written to the files of as many new jobs as they need."""
        new: list[Job] = []

        def write(lines: Sequence[bytes]) -> None:
            new.append(Job(uuid.uuid4().hex))
            self._file(new[-1], "requests").write_bytes(b"".join(lines))

        requests = Requests(self.limits, write)
        yield requests
        requests.write_lines()
        self._write([*self.jobs, *new])

    def work(self, client: openai.OpenAI, report: Callable[[str], object]) -> None:
        """Send the jobs that were not sent, and wait until all have ended and their replies are here."""
        for job in [each for each in self.jobs if not each.status]:  # all are sent before the first is waited for
            self._send(job, client)
        for job in [each for each in self.jobs if not each.status]:
            self._finish(job, client, report)

    def replies(self) -> Replies:
        """Read the replies of all jobs that have ended; a request without one may be sent again."""
        replies = Replies()
        for job in self.jobs:
            for path in (self._file(job, "replies"), self._file(job, "errors")):
                for line in path.read_bytes().split(b"\n") if path.exists() else ():
                    if line.strip():
                        _read_line(parse_json(line), replies)
        return replies

    def _send(self, job: Job, client: openai.OpenAI) -> None:
        if job.batch_id:
            return
        known = _named(job, client)
        if known is None:
            with self._file(job, "requests").open("rb") as file:
                job = replace(job, file_id=client.files.create(file=file, purpose="batch").id)
            known = _create(job, client)
        self._keep(replace(job, batch_id=known.id))

    def _finish(self, job: Job, client: openai.OpenAI, report: Callable[[str], object]) -> None:
        """Wait for the end of a job and fetch its replies; raises `BatchFailed` if there are none to fetch."""
        batch = client.batches.retrieve(job.batch_id)
        while batch.status in AT_WORK:
            time.sleep(self.limits.poll_s)
            batch = client.batches.retrieve(job.batch_id)
            done = batch.request_counts
            report(f"{batch.id}: {batch.status}" + (f", {done.completed} of {done.total}" if done else ""))
        if batch.status not in ENDED:
            known = ", ".join((*AT_WORK, *ENDED))
            raise BatchFailed(
                f"{batch.id} has the status {batch.status!r}, which is none of {known}; look at the server"
            )
        for file_id, what in ((batch.output_file_id, "replies"), (batch.error_file_id, "errors")):
            if file_id:
                write_whole(self._file(job, what), client.files.content(file_id).content)
        self._keep(replace(job, status=batch.status))
        if batch.status == "failed":
            reasons = "; ".join(str(each.message) for each in (batch.errors.data if batch.errors else None) or ())
            raise BatchFailed(f"the server took nothing of {batch.id}: {reasons or 'no reason given'}")
        if batch.status == "cancelled":
            raise BatchFailed(
                f"{batch.id} was cancelled; the same command goes on with its replies, and sends the others again"
            )

    def _keep(self, job: Job) -> None:
        self._write([job if each.name == job.name else each for each in self.jobs])

    def _write(self, jobs: list[Job]) -> None:
        write_whole(self.path / STATE, json.dumps([asdict(each) for each in jobs], indent=1).encode())

    def _file(self, job: Job, what: str) -> Path:
        return self.path / f"{job.name}.{what}.jsonl"


class BatchFailed(PipelineError):
    """A batch that the server refused as a whole: the file, the account or the model."""


def _named(job: Job, client: openai.OpenAI) -> Batch | None:
    """Find the batch of a job in the server's list by the name that it carries.

    A list that begins again is at its end: some servers do not know how to go on after a batch.
    """
    passed: set[str] = set()
    for each in client.batches.list():
        if (each.metadata or {}).get(NAME) == job.name:
            return each
        if each.id in passed:
            return None
        passed.add(each.id)
        if len(passed) > MOST_LISTED:
            raise BatchFailed(
                f"{client.base_url} lists more than {MOST_LISTED:,} batches, and none of them is the one to go on "
                "with; if its list does not end, leave out --batch-api"
            )
    return None


def _create(job: Job, client: openai.OpenAI) -> Batch:
    """Make the batch of a job, at most once: it is not tried again, as the client would, if only its reply was lost."""
    import openai

    try:
        return client.with_options(max_retries=0).batches.create(
            input_file_id=job.file_id, endpoint=ENDPOINT, completion_window=WINDOW, metadata={NAME: job.name}
        )
    except (openai.APIConnectionError, openai.InternalServerError):
        known = _named(job, client)
        if known is None:
            raise
        return known


@dataclass(slots=True)
class Requests:
    """Requests for jobs, each once, written in portions that one file may hold: pictures fill no memory."""

    limits: Limits
    write: Callable[[Sequence[bytes]], object]
    given: set[str] = field(default_factory=set)
    lines: list[bytes] = field(default_factory=list)
    bytes: int = 0

    @property
    def count(self) -> int:
        return len(self.given)

    def add(self, custom_id: str, body: Mapping[str, object]) -> None:
        if custom_id in self.given:
            return
        self.given.add(custom_id)
        entry = {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": body}
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        if len(self.lines) == self.limits.requests or self.bytes + len(line) > self.limits.bytes:
            self.write_lines()
        self.lines.append(line)
        self.bytes += len(line)

    def write_lines(self) -> None:
        if self.lines:
            self.write(self.lines)
        self.lines, self.bytes = [], 0


def _read_line(line: dict[str, Any], replies: Replies) -> None:
    """Sort one line of a job's files: a completion, a refusal, or nothing, if the request may be sent again."""
    response, error = line.get("response") or {}, line.get("error")
    status, body = response.get("status_code", 0), response.get("body")
    if status == 200 and isinstance(body, dict):
        replies.completions[line["custom_id"]] = body
    elif status and status != 200 and status not in AGAIN:
        said = (body.get("error") if isinstance(body, dict) else body) or error or f"status {status}"
        reason = (said.get("message") if isinstance(said, dict) else said) or f"status {status}"
        replies.refusals[line["custom_id"]] = str(reason)
