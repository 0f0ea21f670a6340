"""Routes of asking: begin a question, list them, follow one by events, stop it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kinodex.agent.errors import TraceError
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import MAX_OPTIONS, AnswerRules, Question
from kinodex.agent.trace import Record
from kinodex.guards import FORBIDDEN_ELSEWHERE, SAFE, json_response
from kinodex.index.errors import KinodexError, QueryError
from kinodex.index.library import Library
from kinodex.index.text import redact, redact_values
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ground import grounding_of, grounding_question, text_of
from kinodex.web.page import as_json
from kinodex.web.pages import guarded, numbered_route, status_of
from kinodex.web.questions import FINISHED, AskRequest, MoneySpent, Questions, Running, TooManyQuestions
from kinodex.web.search import LONGEST_TEXT, MOST_RANGES, grounding_view, whole_number
from kinodex.web.sentences import latest_sentence

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Body = TypeVar("Body", bound=BaseModel)
LONGEST = 20_000
"""Characters of a question, and of an option."""
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Limits(BaseModel):
    """Limits of a question, which only lower the server's own."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    rounds: Whole | None = None
    frames: Whole | None = None
    tokens: Whole | None = None
    seconds: float | None = None
    cost: float | None = None

    def budget(self) -> Budget:
        """The budget of these; raises BadSettings for a limit that is not above 0."""
        return Budget(**self.model_dump())


class AskFields(BaseModel):
    """All that a request may say of a question beside its text and options."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    agent: str | None = None
    videos: list[str] = Field(default=[], max_length=1000)
    settings: dict[str, str | Whole | float | bool] = {}
    budget: Limits = Limits()
    force_choice: bool = False
    verify: bool = False
    after: str | None = None


class _AskBody(AskFields):
    question: str = Field(max_length=LONGEST)
    options: list[str] = Field(default=[], max_length=MAX_OPTIONS + 1)


def asking_routes(questions: Questions) -> list[Any]:
    """Routes that begin, list, follow and stop questions."""
    from starlette.routing import Route

    return [
        numbered_route(
            "/data/libraries/{library:number}/questions",
            answering(lambda request: _start_question(questions, request)),
            methods=["POST"],
        ),
        Route("/data/questions", guarded(lambda request: _listing(questions, request))),
        Route("/data/questions/{key}/events", answering(lambda request: event_stream(questions, request))),
        Route("/data/questions/{key}/stop", answering(lambda request: _stop(questions, request)), methods=["POST"]),
    ]


def answering(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Turn errors about a request into one line of JSON; any other exception is a fault and stays one."""

    async def respond(request: Request) -> Response:
        try:
            return await answer(request)
        except (KinodexError, TraceError) as error:
            status = 429 if isinstance(error, TooManyQuestions | MoneySpent) else status_of(error)
            return say_when(error, json_response({"error": str(error)}, status=status))

    return respond


def say_when(error: Exception, response: Response) -> Response:
    """Add to a response when to try again, if a limit was reached."""
    if isinstance(error, TooManyQuestions | MoneySpent):
        response.headers["retry-after"] = str(int(error.retry_s) + 1)
    return response


def first_fault(error: ValidationError) -> tuple[str, str]:
    """Place and message of the first value that does not fit; the place is empty for the whole."""
    first = error.errors()[0]
    return ".".join(map(str, first["loc"])), first["msg"]


async def read_body(request: Request, model: type[Body]) -> Body:
    """Read a request's JSON; raises UsageError for another type of content, or values that do not fit."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        raise UsageError(f"got content of type {kind or 'none'!r}; send application/json")
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        where, message = first_fault(error)
        raise UsageError(f"{where or 'the body'}: {message}") from error


async def _start_question(questions: Questions, request: Request) -> Response:
    body = await read_body(request, _AskBody)
    asked = AskRequest(
        library=request.path_params["library"],
        question=Question(body.question, tuple(body.options)),
        agent=body.agent or questions.settings.agent.name,
        videos=tuple(body.videos),
        settings=body.settings,
        budget=body.budget.budget(),
        rules=AnswerRules(force_choice=body.force_choice, verify=body.verify),
        after=body.after,
    )
    return json_response({"key": questions.start(asked).key}, status=201)


def _listing(questions: Questions, request: Request) -> Response:
    number = whole_number(request.query_params.get("library", "0"), "library", "give its number, from 0")
    return json_response({"rows": questions.listing(number)})


async def _stop(questions: Questions, request: Request) -> Response:
    found = questions.find(request.path_params["key"])
    if isinstance(found, Running):  # one that has ended needs no stop
        found.stop()
    return json_response({}, status=202)


# Server-sent events of one question: how far it is, and its end.
#
# A message says all that is known when it is sent, so a reader who comes late, or back with `Last-Event-ID`, gets the
# latest one alone.

BEAT_S = 15.0
"""Seconds after which a silent stream says that it lives: proxies cut those that do not."""

END = 999_999_999
"""The number of every question's last message: who names it has had the end, whichever server sent it."""

GAP_S = 0.15
"""The least time between two messages: each says all that is known, so those between are left out."""


async def event_stream(questions: Questions, request: Request) -> Response:
    """Stream the events of a question; raises NotGiven. A reader who has had the end gets no content."""
    from starlette.responses import Response, StreamingResponse

    found = questions.find(request.path_params["key"])
    last = request.headers.get("last-event-id", "")
    since = int(last) if last.isdecimal() and len(last) < 10 else 0
    headers = SAFE | {"content-security-policy": FORBIDDEN_ELSEWHERE, "x-accel-buffering": "no"}
    if since == END:
        return Response(status_code=204, headers=headers)
    if isinstance(found, Running):
        return StreamingResponse(_events(found, since), 200, headers, media_type="text/event-stream")
    end = message("state", END, {"state": found.state, "error": found.error})
    return StreamingResponse(iter([end]), 200, headers, media_type="text/event-stream")


async def _events(running: Running, since: int) -> AsyncIterator[bytes]:
    """Messages of a question until its end; every `BEAT_S` without one, a comment."""
    changes = running.changes(since)
    coming = asyncio.ensure_future(anext(changes, None))
    state = ""
    try:
        while True:
            done, _ = await asyncio.wait([coming], timeout=BEAT_S)
            if not done:
                yield b": still at work\n\n"
                continue
            version = coming.result()
            if version is None:
                return
            if running.records:
                yield message("progress", version, progress(running))
            if running.state != state:
                state = running.state
                ended = state in FINISHED
                yield message("state", END if ended else version, {"state": state, "error": running.error})
                if ended:
                    return
            await asyncio.sleep(GAP_S)  # events come in bursts
            coming = asyncio.ensure_future(anext(changes, None))
    finally:
        coming.cancel()
        await asyncio.wait([coming])
        await changes.aclose()


def progress(running: Running) -> dict[str, Any]:
    """Progress of a question: rounds, calls, frames, seconds, money, and the latest round in a sentence."""
    records = list(running.records)
    calls = [each for each in records if each["event"] == "Exchanged"]
    return {
        "round": max((each.get("round", 0) for each in records), default=0),
        "calls": len(calls),
        "frames": len({frame for call in calls for frame in _frames(call)}),
        "seconds": round((datetime.now(UTC) - running.asked_at).total_seconds(), 1),
        "cost": round(sum(call["usage"]["cost"] for call in calls), 6),
        "sentence": redact(latest_sentence(records)),
    }


def message(event: str, number: int, value: Any) -> bytes:
    """One message of a stream; JSON has no line ends of its own."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (number, event.encode(), as_json(redact_values(value)))


def _frames(call: Record) -> list[tuple[str, int]]:
    return [(each["video_id"], each["frame_no"]) for each in call["inputs"].get("frames", ())]


# Routes that begin to look for ranges with an agent, and give those that it found.


class _GroundBody(AskFields):
    text: str = Field(max_length=LONGEST_TEXT)


def ground_routes(questions: Questions, libraries: Sequence[Library]) -> list[Any]:
    """A route that begins such a question, in the limits of all questions, and one for the ranges of its answer."""
    from starlette.routing import Route

    return [
        numbered_route(
            "/data/libraries/{library:number}/moments",
            answering(lambda request: _start(questions, request)),
            methods=["POST"],
        ),
        Route("/data/questions/{key}/moments", guarded(lambda request: _found(questions, libraries, request))),
    ]


async def _start(questions: Questions, request: Request) -> Response:
    body = await read_body(request, _GroundBody)
    if not body.text.strip():
        raise QueryError("the text is empty; say in words what happens")
    asked = AskRequest(
        library=request.path_params["library"],
        question=grounding_question(body.text),
        agent=body.agent or questions.settings.agent.name,
        videos=tuple(body.videos),
        settings=body.settings,
        budget=body.budget.budget(),
        rules=AnswerRules(verify=body.verify),
        after=body.after,
    )
    return json_response({"key": questions.start(asked).key}, status=201)


def _found(questions: Questions, libraries: Sequence[Library], request: Request) -> Response:
    """The ranges of a question that was answered, whatever was asked; raises UsageError for one without an answer."""
    key = request.path_params["key"]
    kept = questions.find(key)
    if isinstance(kept, Running):
        raise UsageError(f"the question {key} is not answered yet; follow its events")
    answer = kept.answer
    if answer is None:
        raise UsageError(f"the question {key} has no answer: {kept.error}")
    library = libraries[kept.library]
    found = grounding_of(library, text_of(kept.facts.question), answer, kept.facts.agent, MOST_RANGES)
    return json_response(grounding_view(library, found) | {"question": key})
