"""Questions put to agents, one at a time. Nothing here knows what is true: neither this process nor a worker of Ray."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from agent.ask import ask
from agent.core.budget import Budget, Ledger
from agent.core.protocol import Models
from agent.core.question import Question
from agent.environment import Environment
from agent.errors import AllRejected, ModelRejected
from agent.library_videos import EmbedText
from agent.trace.events import Event
from agent.trace.trace import record as trace_line
from index.library import Library
from jobs.evaluation.run.model_thread import models_on_a_thread
from jobs.evaluation.run.results import SampleResult
from jobs.evaluation.run.search_recorder import SearchRecorder
from jobs.evaluation.run.systems import System
from jobs.model_choice import LOCAL, ModelChoice, ModelsFor
from jobs.open_library import library_space

ENVIRONMENTS = 256
"""Videos whose vectors are kept in memory: of hours long ones, one takes some megabytes."""
TEXTS = 4096
"""Texts whose vectors are kept in memory."""


@dataclass(frozen=True, slots=True)
class SampleInput:
    """A question as it is put to an agent, and the library's videos that it is about."""

    item_id: str
    question: Question
    video_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunContext:
    """What is the same for all questions of a run. Whoever asks needs no more than this, on whatever machine.

    `space` is one of the library's, by name or digest; None is its own.
    """

    library: str
    choice: ModelChoice
    budget: Budget
    detector: str | None = None
    subtitles: bool = True
    keep_captions: bool = True
    traces: bool = False
    space: str | None = None


@dataclass(frozen=True, slots=True)
class SolvedSample:
    """A question's record, and its trace as compressed JSON lines where one is wanted, else None."""

    record: SampleResult
    trace: bytes | None = None


Solve = Callable[[System, SampleInput], Awaitable[SolvedSample]]
EnvironmentOf = Callable[[tuple[str, ...]], Environment]
"""The environment of some of a library's videos, by their ids."""


@asynccontextmanager
async def open_solver(setting: RunContext) -> AsyncIterator[Solve]:
    """Give a function that puts a question to a contender, in this process.

    It raises `ModelError` where the endpoint is gone, lets nobody in without a key or has no such model. A request that
    is refused for what it holds is data: a record with an error.
    """
    environment_of = environments(setting)
    async with models_on_a_thread(setting.choice) as models_for:
        yield make_solver(environment_of, models_for, setting.budget, traces=setting.traces)


def make_solver(environment_of: EnvironmentOf, models_for: ModelsFor, budget: Budget, *, traces: bool = False) -> Solve:
    """The same function for models that are open already."""

    async def ask_one(contender: System, asked: SampleInput) -> SolvedSample:
        environment = environment_of(asked.video_ids)
        watcher, lines = SearchRecorder(environment), io.BytesIO()
        with gzip.GzipFile(fileobj=lines, mode="wb", mtime=0) as trace:

            def tell(event: Event) -> None:
                watcher(event)
                if traces:
                    trace.write(json.dumps(trace_line(event), ensure_ascii=False).encode() + b"\n")

            record = await _record(contender, asked, budget, watcher, models_for(environment), tell)
        return SolvedSample(record, lines.getvalue() if traces else None)

    return ask_one


async def _record(
    contender: System,
    asked: SampleInput,
    budget: Budget,
    watcher: SearchRecorder,
    models: Models,
    tell: Callable[[Event], None],
) -> SampleResult:
    environment = watcher.environment
    try:
        answer = await ask(
            asked.question,
            environment,
            models,
            agent=contender.variant(),
            parameters=contender.settings,
            budget=budget,
            on_event=tell,
        )
    except AllRejected:
        raise
    except ModelRejected as error:
        return failed_result(contender, asked, str(error))
    except Exception as error:
        error.add_note(f"{contender.name} was asked {asked.item_id}: {asked.question.text[:200]}")
        raise
    return SampleResult(
        contender.name,
        asked.item_id,
        answer.status,
        answer.option,
        answer.text,
        answer.reason,
        answer.rounds,
        answer.ledger,
        answer.evidence,
        watcher.visited,
        tuple(watcher.rounds),
    )


def environments(setting: RunContext) -> EnvironmentOf:
    """A function that gives the environment of some of the library's videos; those used last are kept."""
    library = Library.open(setting.library)
    tower = library_space(library, setting.space, "text")
    if setting.detector is None and not setting.choice.model.startswith(LOCAL):
        _use_one_thread()
    rows = {row.video_id: row for row in library.videos()}
    detect = None
    if setting.detector is not None:
        from jobs.annotate.agent_detector import detect_with

        detect = detect_with(library, setting.detector)

    embed_text = _one_by_one(tower.embed_text)

    @lru_cache(ENVIRONMENTS)
    def shared(video_ids: tuple[str, ...]) -> Environment:
        videos = [rows[each] for each in video_ids]
        return Environment.of(library, videos, embed_text, detect, subtitles=setting.subtitles, space=setting.space)

    return shared if setting.keep_captions else lambda video_ids: shared(video_ids).without_shared_captions()


def _use_one_thread() -> None:
    """Let numpy and torch compute in one thread: what they are given is small, and more would only wait for each other.

    Questions about an hour of film take three times the CPU otherwise.
    """
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)


def _one_by_one(embed_text: EmbedText) -> EmbedText:
    """Embeds each text by itself: so its vector is the same to the last bit, whatever else is asked beside it."""

    @lru_cache(TEXTS)
    def vector_of(text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = embed_text([text])[0]
        return vector

    return lambda texts: np.stack([vector_of(text) for text in texts])


def failed_result(contender: System, asked: SampleInput, error: str) -> SampleResult:
    """The record of a question that got no answer at all."""
    line = " ".join(error.split())
    return SampleResult(contender.name, asked.item_id, None, None, None, "", 0, Ledger(), (), error=line)
