"""Captions, titles and extracts by the Batch API, at half the price: `--batch-api`.

The requests are those of an ordinary run, byte for byte, but for replies that the cache holds. They are written to
files while the library is read, sent as jobs, and waited for; then the ordinary run follows, which finds
each reply where it would have asked for it. A reply that cannot be used is asked for once more, by another job. Nothing
is asked for outside of jobs: a part whose request the server refused, or did not come to, has no row, and the next run
with --retry-failed sends it again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.agent.attempts import Outcome
from kinodex.agent.errors import ModelRejected
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.batch_jobs import UNCHANGED, BatchFailed, JobFolder, Limits, Replies, Requests
from kinodex.jobs.add.endpoint import open_served
from kinodex.jobs.add.rounds import NotInBatch, Round, run_rounds
from kinodex.jobs.add.run import AddReport, Watch, add, pending_videos
from kinodex.jobs.add.stage import Written
from kinodex.jobs.add.writer import Writer
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import cache_file

if TYPE_CHECKING:
    from kinodex.agent.models.roles import Role


TRANSFER_S, MOST_REPLIES_BYTES = 1800.0, 1 << 30
"""Limits of one transfer: a file goes there, or comes back, whole."""


ROUNDS = 4
"""Jobs after jobs: the requests, those made of their replies (chapters), of replies that could not be used, expired."""
ID_CHARACTERS = 48


def add_by_batches(
    library: Library,
    stage: Written,
    video_ids: Sequence[str] | None,
    watch: Watch,
    report: Callable[[str], object],
    limits: Limits = UNCHANGED,
) -> AddReport:
    """Have what a stage asks answered by batches, and add it; a run that was ended goes on with its jobs."""
    writer = stage.writer(library)
    stage.check(library, stage.key)
    writer.prepare()
    videos = pending_videos(library, stage.key, video_ids, writer.again(), stage.name)
    with job_folder(cache_file().parent / "batches", library, stage, limits) as folder:
        sender = work_off(folder, stage, writer, videos, report)
        prices = {name: stage.price_share * getattr(stage, name) for name in ("input_price", "output_price")}
        added = add(library, stage.model_copy(update={"send": sender, **prices}), video_ids, watch)
        shutil.rmtree(folder.path)
    return added


@contextmanager
def job_folder(root: Path, library: Library, stage: Written, limits: Limits) -> Iterator[JobFolder]:
    """Open the folder of the jobs of an addition to a library; raises `UsageError` if another process has it."""
    place = str(Path(library.uri).resolve()) if "://" not in library.uri else library.uri
    free = ("input_price", "output_price", "max_new_tokens")
    settings = {name: each for name, each in stage.settings.items() if name not in free}
    task = json.dumps([place, stage.name, stage.key, settings], sort_keys=True)
    path = root / hashlib.sha256(task.encode()).hexdigest()[:16]
    path.mkdir(parents=True, exist_ok=True)
    with (path / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another process waits for the batches of {library.uri}; let it end") from error
        yield JobFolder(path, limits)


def work_off(
    folder: JobFolder,
    stage: Written,
    writer: Writer[Any],
    videos: Sequence[VideoRow],
    report: Callable[[str], object],
) -> BatchSender:
    """Have all requests of a stage about these videos answered by jobs; gives the sender that knows their replies."""
    import openai

    from kinodex.agent.models.roles import api_key
    from kinodex.jobs.blocking_http import BlockingClient

    role = stage.role
    timeout_s = max(role.timeout_s, TRANSFER_S)
    http = BlockingClient(most_bytes=MOST_REPLIES_BYTES)
    with (
        openai.OpenAI(base_url=role.base_url, api_key=api_key(role), timeout=timeout_s, http_client=http) as client,
        _explained(role, folder),
    ):
        folder.work(client, report)  # those of a run that was killed
        for _ in range(ROUNDS):
            with folder.requests() as requests:
                _collect(BatchSender(folder.replies(), requests), stage, writer, videos)
            if not requests.count:
                break
            report(f"{requests.count:,} requests are sent as batches")
            folder.work(client, report)
    return BatchSender(folder.replies())


def _collect(sender: BatchSender, stage: Written, writer: Writer[Any], videos: Sequence[VideoRow]) -> None:
    """Go through these videos as a run does, so that the sender gets each request that can be made by now."""

    def answer(asked: Round) -> list[Outcome[Any]]:
        outcomes = served.answer(asked)
        for waits in (each.refused for each in outcomes if isinstance(each.refused, NotInBatch)):
            raise waits  # the next round may depend on its reply
        return outcomes

    with open_served(stage.role, sender, keep=False) as served:
        for video in videos:
            with suppress(NotInBatch):
                run_rounds(writer.rounds(video), answer)


@dataclass(slots=True)
class BatchSender:
    """Gives the replies of jobs in the place of an endpoint; requests without one are written down, and refused."""

    replies: Replies
    missing: Requests | None = None

    async def __call__(self, body: dict[str, object]) -> object:
        """Send one request; raises `ModelRejected` if the server refused it, `NotInBatch` if no job has answered it."""
        custom_id = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:ID_CHARACTERS]
        if custom_id in self.replies.completions:
            return self.replies.completions[custom_id]
        if custom_id in self.replies.refusals:
            raise ModelRejected(f"the server refused a request of the batch: {self.replies.refusals[custom_id]}")
        if self.missing is not None:
            self.missing.add(custom_id, body)
        raise NotInBatch("no batch has answered this request yet; run the same command again")


@contextmanager
def _explained(role: Role, folder: JobFolder) -> Iterator[None]:
    """Turn errors of the client into errors for the user."""
    import openai

    from kinodex.agent.models.provider_errors import clip, connection_error, status_error
    from kinodex.agent.models.refusal_causes import server_message

    try:
        yield
    except openai.NotFoundError as error:
        raise BatchFailed(
            f"{role.place} has no Batch API, or does not know a batch any more ({clip(server_message(error), role)}); "
            f"leave out --batch-api, or delete {folder.path} to have all requests sent and paid again"
        ) from error
    except openai.APIStatusError as error:
        raise status_error(role, error, None) from error
    except openai.APIConnectionError as error:
        raise connection_error(role, error) from error
