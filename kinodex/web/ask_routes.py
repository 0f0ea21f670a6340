"""Routes of asking: begin a question or a search for moments by an agent, list, follow by events, stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kinodex.agent.limits import Budget
from kinodex.agent.protocol import MAX_OPTIONS, AnswerRules, Question
from kinodex.agent.trace import Record
from kinodex.find import LONGEST_QUESTION, LONGEST_TEXT, MOST_VIDEOS
from kinodex.guards import FORBIDDEN_ELSEWHERE, SAFE, answering, json_response, numbered, numbered_route
from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.index.text import redact, redact_values
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.ground import grounding_of, grounding_question, text_of
from kinodex.jobs.verdicts import basis_of, claim
from kinodex.web.kept_traces import Kept
from kinodex.web.page import as_json
from kinodex.web.questions import FINISHED, AskRequest, Questions, Running
from kinodex.web.search import MOST_RANGES, grounding_view, whole_number
from kinodex.web.sentences import latest_sentence

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Body = TypeVar("Body", bound=BaseModel)
"""Characters of a question, and of an option."""
MOST_LOOKED_AT = 20
"""Moments of a search that a page has a model look at in one call."""
ROUNDED_S = 1e-3
"""Times that went through a page may be rounded so much."""
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]


def asking_routes(questions: Questions, libraries: Sequence[Library]) -> list[Any]:
    """Routes that begin, list, follow and stop questions, and give the moments that an answer cites."""
    from starlette.routing import Route

    async def start(request: Request) -> Response:
        body = await read_body(request, _AskBody)
        return begun(request, body, Question(body.question, tuple(body.options)))

    async def start_grounding(request: Request) -> Response:
        body = await read_body(request, _GroundBody)
        if not body.text.strip():
            raise QueryError("the text is empty; say in words what happens")
        body.force_choice = False  # there is nothing to choose from
        return begun(request, body, grounding_question(body.text))

    def begun(request: Request, body: AskFields, question: Question) -> Response:
        asked = body.request(questions, request.path_params["library"], question)
        return json_response({"key": questions.start(asked).key}, status=201)

    def listing(request: Request) -> Response:
        number = whole_number(request.query_params.get("library", "0"), "library", "give its number, from 0")
        return json_response({"rows": questions.listing(number)})

    def stop(request: Request) -> Response:
        found = questions.find(request.path_params["key"])
        if isinstance(found, Running):  # one that has ended needs no stop
            found.stop()
        return json_response({}, status=202)

    async def verify(request: Request) -> Response:
        body = await read_body(request, _VerifyBody)
        uri = numbered(libraries, request.path_params["library"], "library").uri

        def look(request: Request) -> Response:
            return json_response(_verdicts(questions, Library.open(uri), body))

        return await answering(look, lookers)(request)

    def moments(request: Request) -> Response:
        return json_response(_moments(questions, libraries, request.path_params["key"]))

    lookers = ThreadPoolExecutor(questions.settings.at_once, thread_name_prefix="looks")
    place, one = "/data/libraries/{library:number}", "/data/questions/{key}"
    return [
        numbered_route(f"{place}/questions", answering(start), methods=["POST"]),
        numbered_route(f"{place}/moments", answering(start_grounding), methods=["POST"]),
        numbered_route(f"{place}/verify", answering(verify), methods=["POST"]),
        Route("/data/questions", answering(listing)),
        Route(f"{one}/events", answering(lambda request: event_stream(questions, request))),
        Route(f"{one}/stop", answering(stop), methods=["POST"]),
        Route(f"{one}/moments", answering(moments)),
    ]


class Limits(BaseModel):
    """Limits of a question, which only lower the server's own."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    rounds: Whole | None = None
    frames: Whole | None = None
    tokens: Whole | None = None
    seconds: float | None = None
    cost: float | None = None


class AskFields(BaseModel):
    """All that a request may say of a question beside its text and options."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    agent: str | None = None
    videos: list[str] = Field(default=[], max_length=MOST_VIDEOS)
    where: str | None = Field(default=None, max_length=LONGEST_TEXT)
    settings: dict[str, str | Whole | float | bool] = {}
    budget: Limits = Limits()
    force_choice: bool = False
    verify: bool = False
    after: str | None = None

    def request(self, questions: Questions, library: int, question: Question) -> AskRequest:
        """The request of these fields about a library; raises BadSettings for a limit that is not above 0."""
        return AskRequest(
            library=library,
            question=question,
            agent=self.agent or questions.settings.agent.name,
            videos=tuple(self.videos),
            settings=self.settings,
            budget=Budget(**self.budget.model_dump()),
            rules=AnswerRules(force_choice=self.force_choice, verify=self.verify),
            after=self.after,
            where=self.where or None,
        )


class _AskBody(AskFields):
    question: str = Field(max_length=LONGEST_QUESTION)
    options: list[str] = Field(default=[], max_length=MAX_OPTIONS + 1)


class _GroundBody(AskFields):
    text: str = Field(max_length=LONGEST_TEXT)


class _MomentBody(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    video_id: str
    start_s: float
    end_s: float


class _VerifyBody(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str = Field(max_length=LONGEST_TEXT)
    moments: list[_MomentBody] = Field(min_length=1, max_length=MOST_LOOKED_AT)


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


def first_fault(error: ValidationError) -> tuple[str, str]:
    first = error.errors()[0]
    return ".".join(map(str, first["loc"])), first["msg"]


def _verdicts(questions: Questions, library: Library, body: _VerifyBody) -> dict[str, Any]:
    """The verdict of the server's model on each moment, in order, and what may be claimed of them."""
    found = []
    for each in body.moments:
        video = library.video(each.video_id)
        if not video.start_s <= each.start_s < each.end_s <= video.end_s + ROUNDED_S:
            raise UsageError(f"got {each.start_s} to {each.end_s} s, which is no moment of {video.title}")
        found.append(Moment(video, each.start_s, each.end_s))
    judged, looked = questions.look(library, body.text, found, len(found))
    names = ("basis", "present", "reason")
    return {
        "basis": basis_of(judged),
        "claim": claim(judged),
        "moments": [{name: getattr(each, name) for name in names} for each in judged],
        "calls": looked.calls,
        "invalid": looked.invalid,
        "cost": looked.usage.cost,
    }


def _moments(questions: Questions, libraries: Sequence[Library], key: str) -> dict[str, Any]:
    """The ranges of a question that was answered, whatever was asked; raises UsageError for one without an answer."""
    kept = questions.find(key)
    if isinstance(kept, Running):
        raise UsageError(f"the question {key} is not answered yet; follow its events")
    answer = kept.answer
    if answer is None:
        raise UsageError(f"the question {key} has no answer: {kept.error}")
    library = libraries[kept.number]
    found = grounding_of(library, text_of(kept.question), answer, kept.agent, MOST_RANGES)
    return grounding_view(library, found) | {"question": key}


# Server-sent events of one question: how far it is, and its end.
#
# A message says all that is known when it is sent, so a reader who comes late, or back with `Last-Event-ID`, gets the
# latest one alone.

BEAT_S = 15.0
"""Seconds after which a silent stream says that it lives: proxies cut those that do not."""

END = 999_999_999
"""The number of every question's last message: who names it has had the end, whichever server sent it."""

MOST_LOOKED = 64
"""Frames of calls under way that a message names: captions of a whole video are asked for at once."""

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
    end = message("state", END, state_of(found))
    return StreamingResponse(iter([end]), 200, headers, media_type="text/event-stream")


async def _events(running: Running, since: int) -> AsyncIterator[bytes]:
    """Messages of a question until its end; every `BEAT_S` without one, a comment."""
    state = ""
    async with aclosing(running.changes(since, BEAT_S)) as changes:
        async for version in changes:
            if version is None:
                yield b": still at work\n\n"
                continue
            if running.records:
                yield message("progress", version, progress(running))
            if running.state != state:
                state = running.state
                ended = state in FINISHED
                yield message("state", END if ended else version, state_of(running))
                if ended:
                    return
            await asyncio.sleep(GAP_S)  # events come in bursts


def state_of(question: Running | Kept) -> dict[str, Any]:
    said = {"state": question.state, "error": question.error}
    return said if question.error is None else said | {"tried": question.tried, "remedy": question.remedy}


def progress(running: Running) -> dict[str, Any]:
    """Progress of a question: rounds, calls, frames, time, money, the latest round in a sentence, what is looked at."""
    records = list(running.records)
    looking = {(each.video_id, each.frame_no): each for frames in list(running.looking) for each in frames}
    calls = [each for each in records if each["event"] == "Exchanged"]
    return {
        "round": max((each.get("round", 0) for each in records), default=0),
        "calls": len(calls),
        "frames": len({frame for call in calls for frame in _frames(call)}),
        "seconds": round((datetime.now(UTC) - running.asked_at).total_seconds(), 1),
        "cost": round(sum(call["usage"]["cost"] for call in calls), 6),
        "sentence": redact(latest_sentence(records)),
        "looking": [
            {"video_id": each.video_id, "frame_no": each.frame_no, "time_s": each.time_s}
            for _, each in sorted(looking.items())[:MOST_LOOKED]
        ],
    }


def message(event: str, number: int, value: Any) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (number, event.encode(), as_json(redact_values(value)))


def _frames(call: Record) -> list[tuple[str, int]]:
    return [(each["video_id"], each["frame_no"]) for each in call["inputs"].get("frames", ())]
