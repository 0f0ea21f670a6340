"""The tool `ask` of the MCP server: an agent answers a question, with evidence and costs.

The command that starts the server names the models: a client that could name an endpoint could have frames and keys
sent there.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from agent.answer import Answer
from agent.ask_questions import ask as run
from agent.core.budget import Budget
from agent.core.question import Question
from agent.environment import Environment
from agent.trace.events import Exchanged
from agent.variants.base import Variant
from agent.variants.registry import VARIANTS, variant_named
from jobs.mcp.replies import EVIDENCE, AskReply, EvidenceLine, first_fitting, tool_result
from jobs.mcp.tools import VideoNames
from jobs.model_choice import ModelsFor

EnvironmentOf = Callable[[list[str] | None], Awaitable[Environment]]
"""An environment of some videos by name, or of all."""
Watch = Callable[[int, bool], None]
"""Takes each event of a run: its round, and if it is a model's reply."""
Titles = Mapping[str, str]
BEAT_S = 10.0
"""Seconds between reports of progress: some clients give up after a minute without one."""
AGENTS = ", ".join(each.name for each in VARIANTS)


@dataclass(frozen=True, slots=True)
class AskCall:
    """One question of a client, within the limits of the server; no `videos` are all of them."""

    question: Question
    videos: Sequence[str]
    agent: Variant
    settings: Mapping[str, str | int | float | bool]
    budget: Budget


Answering = Callable[[AskCall, Watch], Awaitable[tuple[Answer, Titles]]]
"""Answers a call; gives the titles of the answer's videos too."""


@dataclass(frozen=True, slots=True)
class AskOptions:
    """Models, agent and limits of answers; a call may choose another agent, and spend less than `budget`, not more.

    Without `models` the server has to be made with something that answers (`Answering`).
    """

    models: ModelsFor | None
    model_names: Mapping[str, str]
    agent: Variant
    budget: Budget
    beat_s: float = BEAT_S


def answer_here(environment_of: EnvironmentOf, models: ModelsFor) -> Answering:
    """Answer calls in the event loop of the protocol."""

    async def answer(call: AskCall, watch: Watch) -> tuple[Answer, Titles]:
        environment = await environment_of(list(call.videos) or None)
        answered = await run(
            call.question,
            environment,
            models(environment),
            agent=call.agent,
            parameters=call.settings,
            budget=call.budget,
            on_event=lambda event: watch(getattr(event, "round", 0), isinstance(event, Exchanged)),
        )
        return answered, {video.video_id: video.title for video in environment.videos}

    return answer


def ask_tool(answering: Answering, defaults: AskOptions) -> Callable[..., Awaitable[CallToolResult]]:
    """Make the tool `ask`."""

    async def ask(
        question: Annotated[str, Field(description="The question, in words.")],
        context: Context,
        options: Annotated[list[str] | None, Field(description="2 to 26 choices, of which one is the answer.")] = None,
        videos: VideoNames = None,
        agent: Annotated[
            str | None, Field(description=f"Which agent: {AGENTS}; without it, the server's own choice.")
        ] = None,
        settings: Annotated[
            dict[str, str | int | float | bool] | None,
            Field(description="Parameters of the agent by name; an error lists them."),
        ] = None,
        max_frames: Annotated[int | None, Field(description="Most different frames that a model is shown.")] = None,
        max_seconds: Annotated[float | None, Field(description="Most seconds that it works.")] = None,
    ) -> Annotated[CallToolResult, AskReply]:
        """Have an agent search the videos for the answer to a question, and name the time ranges of its evidence.

        The answer's status is answered, insufficient_evidence, budget_exhausted (the best answer so far) or invalid.
        Look at the evidence with `frames` or `transcript` before you rely on it. At most 50 ranges of evidence. It
        takes seconds to minutes, and spends no more than the server's own limits, whatever a call names.
        """
        # a client can name an agent of kinodex, never a file, whose code would run here
        chosen = defaults.agent if agent in (None, defaults.agent.name) else variant_named(agent)
        asked = Question(question, tuple(options or ()))
        call = AskCall(asked, videos or (), chosen, settings or {}, _within(defaults.budget, max_frames, max_seconds))
        async with _progress(context, defaults.beat_s) as watch:
            answer, titles = await answering(call, watch)
        return tool_result(_reply(answer, chosen.name, titles, defaults.model_names))

    return ask


def _within(budget: Budget, frames: int | None, seconds: float | None) -> Budget:
    """The server's budget, lowered to the limits of a call."""
    limits = [each for each in (budget.frames, frames) if each is not None]
    spans_s = [each for each in (budget.seconds, seconds) if each is not None]
    return replace(budget, frames=min(limits, default=None), seconds=min(spans_s, default=None))


@asynccontextmanager
async def _progress(context: Context, beat_s: float) -> AsyncIterator[Watch]:
    """Yield a function that watches a run; the client gets a report at the start of each round, and every `beat_s`."""
    reported, replies = 0, 0
    numbers = itertools.count(1)  # a client may refuse progress that does not grow
    reports: set[asyncio.Task[None]] = set()

    def report() -> None:
        message = f"round {reported}, {replies} replies of models"
        task = asyncio.create_task(context.report_progress(next(numbers), None, message))
        reports.add(task)
        task.add_done_callback(reports.discard)

    def watch(number: int, is_reply: bool) -> None:
        nonlocal reported, replies
        replies += is_reply
        if number > reported:
            reported = number
            report()

    async def beat() -> None:
        while True:
            await asyncio.sleep(beat_s)
            report()

    beating = asyncio.create_task(beat())
    try:
        yield watch
    finally:
        beating.cancel()


def _reply(answer: Answer, agent: str, titles: Titles, models: Mapping[str, str]) -> AskReply:
    ranges = [
        EvidenceLine(video_id=each.video_id, title=titles[each.video_id], start_s=each.start_s, end_s=each.end_s)
        for each in answer.evidence
    ]
    evidence = first_fitting(ranges[:EVIDENCE])
    ledger = answer.ledger
    return AskReply(
        status=answer.status,
        answer=answer.text,
        letter=answer.letter,
        reason=answer.reason or None,
        evidence=evidence,
        rounds=answer.rounds,
        agent=agent,
        models=dict(models),
        ledger=replace(
            ledger,
            cost=round(ledger.cost, 6),
            seconds=round(ledger.seconds, 3),
            model_seconds=round(ledger.model_seconds, 3),
        ),
        cut=f"{len(evidence)} of {len(ranges)} ranges of evidence" if len(evidence) < len(ranges) else None,
    )
