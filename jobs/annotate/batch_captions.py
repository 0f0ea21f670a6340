"""Captions by the Batch API, at half the price: `kinodex add captions --batch-api`.

The requests are those of an ordinary run, byte for byte, but for replies that the cache holds. They are written to
files while the library is read, sent as jobs, and waited for (`batch_jobs`); then the ordinary run follows, which finds
each reply where it would have asked for it. A reply that cannot be used is asked for once more, by another job. Nothing
is asked for outside of jobs: a segment whose request the server refused, or did not come to, has no caption, and the
next run with --retry-failed sends it again.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.errors import ModelRejected
from agent.models.response_cache import ResponseCache
from index.library import Library
from index.rows import VideoRow
from jobs.annotate.batch_jobs import UNCHANGED, BatchFailed, JobFolder, Limits, NotInBatch, Replies
from jobs.annotate.captions import Captions, uncaptioned
from jobs.annotate.endpoint_captions import describe_all
from jobs.errors import UsageError
from jobs.model_choice import cache_file
from jobs.stored_frames import frames_between

if TYPE_CHECKING:
    import openai

    from agent.models.openai_compatible import OpenAIModel
    from agent.models.role_config import Role

ROUNDS = 3
"""Jobs after jobs: the requests, those for replies that could not be used, and those that expired."""
PRICE_SHARE = 0.5
"""Of the ordinary price (OpenAI's pricing of batches)."""
ID_CHARACTERS = 48


@dataclass(slots=True)
class BatchSender:
    """Gives the replies of jobs in the place of an endpoint; requests without one are collected, and refused."""

    replies: Replies
    missing: dict[str, dict[str, object]] = field(default_factory=dict)

    async def __call__(self, body: dict[str, object]) -> object:
        """Send one request; raises `ModelRejected` if the server refused it, `NotInBatch` if no job has answered it."""
        custom_id = request_id(body)
        if custom_id in self.replies.completions:
            return self.replies.completions[custom_id]
        if custom_id in self.replies.refusals:
            raise ModelRejected(f"the server refused a request of the batch: {self.replies.refusals[custom_id]}")
        self.missing[custom_id] = body
        raise NotInBatch("no batch has answered this request yet; run the same command again")


def request_id(body: dict[str, object]) -> str:
    """The id of a request in its job: a hash of all that is sent."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:ID_CHARACTERS]


@contextmanager
def caption_by_batches(
    library: Library,
    stage: Captions,
    video_ids: Collection[str] | None,
    again: Collection[str],
    report: Callable[[str], object],
    limits: Limits = UNCHANGED,
) -> Iterator[Captions]:
    """Have the captions made by batches, and give the stage that adds them; the notes of the jobs go when it is done.

    They stay if the block ends with an error, and the next run goes on with the same jobs.
    """
    stage.prepare(library)
    lacking = {row.video_id for row in library.additions.pending(stage.name, stage.model)}.union(again)
    chosen = lacking if video_ids is None else lacking.intersection(video_ids)
    videos = [row for row in library.videos() if row.video_id in chosen]
    root = cache_file().parent / "batches"
    with job_folder(root, library, stage.role, stage.frames_a_segment, limits) as folder:
        sender = work_off(folder, stage.role, library, videos, stage.frames_a_segment, report)
        prices = PRICE_SHARE * stage.input_price, PRICE_SHARE * stage.output_price
        yield replace(stage, send=sender, input_price=prices[0], output_price=prices[1])
        shutil.rmtree(folder.path)


@contextmanager
def job_folder(root: Path, library: Library, role: Role, frames_a_segment: int, limits: Limits) -> Iterator[JobFolder]:
    """Open the folder of the jobs that caption a library; raises `UsageError` if another process has it."""
    place = str(Path(library.uri).resolve()) if "://" not in library.uri else library.uri
    task = json.dumps([place, role.model, role.base_url, frames_a_segment])
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
    role: Role,
    library: Library,
    videos: Sequence[VideoRow],
    frames_a_segment: int,
    report: Callable[[str], object],
) -> BatchSender:
    """Have all requests for captions of these videos answered by jobs; gives the sender that knows their replies."""
    with _client(role) as client, _explained(role, folder):
        folder.work(client, report)  # those of a run that was killed
        for _ in range(ROUNDS):
            sender = BatchSender(folder.replies())
            count = folder.add_requests(_missing(sender, role, library, videos, frames_a_segment))
            if not count:
                break
            report(f"{count:,} requests are sent as batches")
            folder.work(client, report)
    return BatchSender(folder.replies())


def _missing(
    sender: BatchSender, role: Role, library: Library, videos: Iterable[VideoRow], frames_a_segment: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The requests of these videos that no job has answered, some at a time: pictures of a library fill no memory.

    Each is there once: copies of a film in other containers have the same, and a job takes an id once alone.
    """
    given: set[str] = set()
    with asyncio.Runner() as runner:
        cache = runner.run(_open_cache())
        model = runner.run(_open(role, sender, cache))
        try:
            for video in videos:
                segments = uncaptioned(library, video, role.model)
                for first in range(0, len(segments), role.at_once):
                    some = segments[first : first + role.at_once]
                    spans_s = [(each.start_s, each.end_s) for each in some]
                    shown = frames_between(library, video, spans_s, frames_a_segment)
                    runner.run(describe_all(model, some, shown))
                    yield from ((each, sender.missing[each]) for each in sender.missing if each not in given)
                    given.update(sender.missing)
                    sender.missing.clear()
        finally:
            runner.run(model.close())
            cache.close()


async def _open_cache() -> ResponseCache:
    return _ReadCache(cache_file())


async def _open(role: Role, sender: BatchSender, cache: ResponseCache) -> OpenAIModel:
    from agent.models.openai_compatible import OpenAIModel

    return OpenAIModel(role, cache=cache, send=sender)


class _ReadCache(ResponseCache):
    """The cache of replies, into which the ordinary run alone writes: it counts what is new as paid."""

    def put(self, key: str, reply: Mapping[str, object], *, instead: Mapping[str, object] | None = None) -> None:
        """Store nothing."""


def _client(role: Role) -> openai.OpenAI:
    import openai

    from agent.models.role_config import api_key

    return openai.OpenAI(base_url=role.base_url, api_key=api_key(role), timeout=role.timeout_s)


@contextmanager
def _explained(role: Role, folder: JobFolder) -> Iterator[None]:
    """Turn errors of the client into errors for the user."""
    import openai

    from agent.models.provider_errors import clip, connection_error, status_error
    from agent.models.refusals import server_message

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
