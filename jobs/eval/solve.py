"""Items solved by contenders, one at a time. Nothing here knows a target: neither this process nor a worker of Ray."""

from __future__ import annotations

import gzip
import io
import json
import logging
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.ask import ask, spent_until
from kinodex.agent.errors import ENDS_ALL, BadSettings, ModelUnreachable, NeedsLanguage, TraceError, UnknownAgent
from kinodex.agent.evidence import Evidence, evidence_ranges
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.traces.events import Acted, Decided, Event, Exchanged, Expanded, Ranked, Scored
from kinodex.agent.traces.trace import record as trace_line
from kinodex.agent.variants.eea.scores import reward_entropy
from kinodex.agent.videos.environment import Detect, Environment
from kinodex.agent.videos.library_videos import EmbedText
from kinodex.errors import KinodexError
from kinodex.index.library import Library
from kinodex.index.shared_switch import SharedSwitch
from kinodex.index.spaces.thread_pools import thread_pools
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.results import ItemInput, ItemResult, Round, RunContext, Solve, SolvedItem, failed_result
from kinodex.jobs.model_loop import ModelLoop
from kinodex.jobs.models import ModelChoice, ModelsFor, chosen_models
from kinodex.jobs.models_elsewhere import models_in, quick_switches
from kinodex.jobs.telemetry import Watch, spans_to

ENVIRONMENTS = 256
"""Videos whose vectors stay in memory: of hours long ones, one takes some megabytes."""
TEXTS = 4096
"""Texts whose vectors stay in memory."""
PERCENT = 100.0
ENDS_A_RUN = (*ENDS_ALL, BadSettings, ImportError, NeedsLanguage, TraceError, UnknownAgent, UsageError)
"""What every other item would meet too. Any other error is one item's: a result with that error."""

log = logging.getLogger(__name__)
EnvironmentOf = Callable[[tuple[str, ...]], Environment]
"""Gives the environment of some of a library's videos, by their ids."""


@asynccontextmanager
async def open_solver(context: RunContext) -> AsyncIterator[Solve]:
    """Open the library and the models, and give a function that solves items in this process.

    The function raises what every other item would meet too (`ENDS_A_RUN`); any other error is a result, with its cost.
    """
    environment_of = open_environments(context)
    computes_little = context.detector is None and not context.choice.is_local
    with _one_thread.held() if computes_little else nullcontext():
        async with _opened(context.choice) as models_for:
            with spans_to(context.otlp) if context.otlp else nullcontext() as watch:
                limits = context.budget, context.rules
                yield make_solver(environment_of, models_for, *limits, traces=context.traces, watch=watch)


@asynccontextmanager
async def _opened(choice: ModelChoice) -> AsyncIterator[ModelsFor]:
    """Open the models of a choice; those behind endpoints in a loop of their own.

    What an agent does between its calls takes some milliseconds at a time, in which its event loop sends and receives
    nothing. With dozens of calls in flight that adds up; so a reply makes room for the next request at once.
    """
    if not choice.may_use_endpoints:
        async with chosen_models(choice) as models_for:
            yield models_for
        return
    with ModelLoop() as loop, quick_switches.held():
        opened = loop.open(chosen_models(choice))
        yield lambda environment: models_in(loop, opened(environment))


def make_solver(
    environment_of: EnvironmentOf,
    models_for: ModelsFor,
    budget: Budget,
    rules: AnswerRules = USUAL,
    *,
    traces: bool = False,
    watch: Watch | None = None,
) -> Solve:
    """Make the same function for models that are open already."""

    async def solve(contender: Contender, item: ItemInput) -> SolvedItem:
        lines, asked = io.BytesIO(), f"{contender.name} was asked {item.item_id}: {item.question.text[:200]}"
        try:
            environment = environment_of(item.video_ids)
            recorder = SearchRecorder(environment)
            watching = nullcontext() if watch is None else watch(environment.source.uri)
            with gzip.GzipFile(fileobj=lines, mode="wb", mtime=0) as trace, watching as send:

                def on_event(event: Event) -> None:
                    recorder(event)
                    if send is not None:
                        send(event)
                    if traces:
                        trace.write(json.dumps(trace_line(event), ensure_ascii=False).encode() + b"\n")

                answer = await ask(
                    item.question,
                    environment,
                    models_for(environment),
                    agent=contender.find_variant(),
                    parameters=contender.settings,
                    budget=budget,
                    rules=rules,
                    on_event=on_event,
                )
            result = _result(contender, item, answer, recorder)
        except ENDS_A_RUN as error:
            error.add_note(asked)
            raise
        except Exception as error:
            said = str(error)
            if not isinstance(error, KinodexError):  # no sentence for users
                log.warning("%s", asked, exc_info=error)
                last = traceback.extract_tb(error.__traceback__)[-1]
                said = f"{type(error).__name__}: {said} ({last.filename}, line {last.lineno})"
            lost = isinstance(error, ModelUnreachable)
            result = failed_result(contender, item, said, spent_until(error), unreachable=lost)
        return SolvedItem(result, lines.getvalue() if traces else None)

    return solve


def _result(contender: Contender, item: ItemInput, answer: Answer, recorder: SearchRecorder) -> ItemResult:
    return ItemResult(
        contender.name,
        item.item_id,
        answer.status,
        answer.option,
        answer.text,
        answer.reason,
        answer.rounds,
        answer.ledger,
        answer.evidence,
        recorder.visited,
        tuple(recorder.rounds),
        evidence_cited=answer.evidence_cited,
        senseless=answer.senseless,
        supported=answer.supported,
    )


def open_environments(context: RunContext) -> EnvironmentOf:
    """Open the library, and give a function from some of its videos to their environment; the last used stay open."""
    library = Library.open(context.library)
    embed_text = library.text_embedder(context.space)
    detect = None
    if context.detector is not None:
        from kinodex.jobs.detector import detect_with

        detect = detect_with(library, context.detector)
    return environments_of(context, library, _one_by_one(embed_text), detect, ENVIRONMENTS)


def environments_of(
    context: RunContext, library: Library, embed_text: EmbedText, detect: Detect | None, most: int
) -> EnvironmentOf:
    """Give a function from ids of videos of a library to their environment; the `most` last used stay open."""
    rows = {row.video_id: row for row in library.videos()}

    @lru_cache(most)
    def shared(video_ids: tuple[str, ...]) -> Environment:
        videos = [rows[each] for each in video_ids]
        return Environment.of(library, videos, embed_text, detect, hide=context.hide, space=context.space)

    return shared if context.keep_captions else lambda video_ids: shared(video_ids).without_shared_captions()


def _compute_in_one_thread() -> Callable[[], None]:
    """Limit numpy and torch to one thread: with small inputs more wait for each other, at three times the CPU."""
    torch = sys.modules.get("torch")  # a library's text tower runs without it
    threads = 0 if torch is None else torch.get_num_threads()
    limits = thread_pools().limit(limits=1)
    if torch is not None:
        torch.set_num_threads(1)

    def restore() -> None:
        limits.restore_original_limits()
        if torch is not None:
            torch.set_num_threads(threads)

    return restore


_one_thread = SharedSwitch(_compute_in_one_thread)


def _one_by_one(embed_text: EmbedText) -> EmbedText:
    """Embed each text by itself: so its vector is the same to the last bit, whatever else is embedded beside it."""

    @lru_cache(TEXTS)
    def vector_of(text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = embed_text([text])[0]
        return vector

    return lambda texts: np.stack([vector_of(text) for text in texts])


@dataclass(slots=True)
class SearchRecorder:
    """Recorder of an agent's events on one item: the ranges shown, and the rounds for the figures of EEA and VCA."""

    environment: Environment
    rounds: list[Round] = field(default_factory=list)
    """The rounds of a search over a tree: each begins with a segment that is divided."""
    _shown: dict[tuple[str, int], ShownFrame] = field(default_factory=dict)
    _notes: dict[Note, None] = field(default_factory=dict)
    _segments: dict[int, Segment] = field(default_factory=dict)
    _best: int | None = None

    @property
    def visited(self) -> tuple[Evidence, ...]:
        """The ranges that frames and notes showed, by video and in time order."""
        return evidence_ranges(self.environment, (*self._shown.values(), *self._notes), ())

    def __call__(self, event: Event) -> None:
        match event:
            case Exchanged():
                self._shown |= {(frame.video_id, frame.frame_no): frame for frame in event.request.frames}
                self._notes |= dict.fromkeys(getattr(event.request, "notes", ()))
            case Acted():
                self._notes |= dict.fromkeys(event.notes)
            case Ranked():
                self._add_segments(event.segments)
            case Expanded():
                self._add_segments((event.parent, *event.children))
                self.rounds.append(Round(None, None, None, None))
            case Scored() if self.rounds:
                self._add_scores(event)
            case Decided() if self.rounds and event.segment is not None:
                chosen, best = self._range(event.segment), self._range(self._best)
                self.rounds[-1] = replace(self.rounds[-1], chosen=chosen, best=best)

    def _add_segments(self, segments: Iterable[Segment]) -> None:
        self._segments |= {segment.number: segment for segment in segments}

    def _add_scores(self, event: Scored) -> None:
        candidates = event.candidates
        is_fused = event.entropy is not None
        fused = reward_entropy([PERCENT * each.fused for each in candidates]) if is_fused else None
        rewards = [each.reward for each in candidates]
        intrinsic = None if all(reward is None for reward in rewards) else reward_entropy(rewards)
        self.rounds[-1] = replace(self.rounds[-1], intrinsic=intrinsic, fused=fused)
        self._best = max(candidates, key=lambda each: each.fused).number

    def _range(self, number: int | None) -> Evidence | None:
        segment = None if number is None else self._segments[number]
        return None if segment is None else Evidence(segment.video_id, segment.start_s, segment.end_s)
