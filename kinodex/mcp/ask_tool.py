"""The tool `ask` of the MCP server: an agent answers a question, with evidence and costs.

The command that starts the server names the models: a client that could name an endpoint could have frames and keys
sent there.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult

from kinodex.agent.answer import Answer
from kinodex.agent.limits.budget import Budget
from kinodex.agent.traces.events import Acted, Event, Exchanged
from kinodex.desk import ALL_FILMS, Desk
from kinodex.jobs.models import ModelsFor
from kinodex.mcp.replies import EVIDENCE, AskReply, EvidenceLine, first_fitting, tool_result
from kinodex.mcp.tool_schemas import takes
from kinodex.requests import Ask, made
from kinodex.runs import Run

Watch = Callable[[int, bool], None]
"""Takes each event of a run: its round, and if it is a model's reply."""
Titles = Mapping[str, str]
BEAT_S = 10.0
"""Seconds between reports of progress: some clients give up after a minute without one."""
Answering = Callable[[Ask, Watch], Awaitable[tuple[Answer, Titles]]]
"""Answers a request; gives the titles of the answer's videos too."""
CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context)


@dataclass(frozen=True, slots=True)
class AskOptions:
    """The limits of answers, and the names of the models; a call may spend less than `budget`, not more."""

    model_names: Mapping[str, str]
    budget: Budget
    beat_s: float = BEAT_S


def answer_here(desk: Desk, models: ModelsFor) -> Answering:
    """Answer by a desk and models that are open in this event loop."""

    async def answer(request: Ask, watch: Watch) -> tuple[Answer, Titles]:
        loop = asyncio.get_running_loop()

        def on_event(event: Event) -> None:
            is_reply = isinstance(event, Acted if request.agent == ALL_FILMS else Exchanged)
            loop.call_soon_threadsafe(watch, getattr(event, "round", 0), is_reply)

        answered = await desk.ask(request, Run(on_event=on_event, models=models))
        return answered, {row.video_id: row.title for row in desk.videos(request)}

    return answer


def ask_tool(desk: Desk, answering: Answering, options: AskOptions) -> Callable[..., Awaitable[CallToolResult]]:
    """Return the tool's function: it answers a request within the limits of the server."""

    @takes(Ask, CONTEXT, without=("follow_up",))
    async def ask(context: Context, **values: Any) -> Annotated[CallToolResult, AskReply]:
        """Have an agent search the videos for the answer to a question, and name the time ranges of its evidence.

        Its status is answered, insufficient_evidence, evidence_only (the moments that fit best, by a server without a
        language model), budget_exhausted (the best answer so far) or invalid. Look at the evidence with `frames` or
        `lines` before you rely on it. Takes seconds to minutes, within the server's limits.
        """
        request = made(Ask, values)
        request = request.model_copy(update={"budget": options.budget.within(request.budget)})
        chosen = desk.check(request)
        async with _progress(context, options.beat_s) as watch:
            answer, titles = await answering(request, watch)
        reply = _reply(answer, chosen.name, titles, options.model_names)
        some = desk.left_out(request)
        cuts = [reply.cut, some and f"{some}; the agent {ALL_FILMS} asks about each"]
        return tool_result(reply.model_copy(update={"cut": "; ".join(filter(None, cuts)) or None}))

    tool: Callable[..., Awaitable[CallToolResult]] = ask
    return tool


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
        ledger={name: round(value, 6) for name, value in asdict(ledger).items()},
        cut=f"{len(evidence)} of {len(ranges)} ranges of evidence" if len(evidence) < len(ranges) else None,
    )
