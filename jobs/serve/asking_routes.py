"""Routes of asking: begin a question, list them, follow one by events, stop it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.core.answer_rules import AnswerRules
from agent.core.budget import Budget
from agent.core.question import MAX_OPTIONS, Question
from agent.errors import TraceError
from index.errors import KinodexError, LibraryError, QueryError
from jobs.errors import UsageError
from jobs.serve.events import event_stream
from jobs.serve.questions import MoneySpent, Questions, TooManyQuestions
from jobs.serve.running import AskRequest
from jobs.viewer.api import NotGiven
from jobs.viewer.server import guarded, json_response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Body = TypeVar("Body", bound=BaseModel)
LONGEST = 20_000
"""Characters of a question, and of an option."""


class _Limits(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rounds: int | None = None
    frames: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None


class _AskBody(BaseModel):
    model_config = ConfigDict(extra="forbid")
    question: str = Field(max_length=LONGEST)
    options: list[str] = Field(default=[], max_length=MAX_OPTIONS + 1)
    agent: str | None = None
    videos: list[str] = Field(default=[], max_length=1000)
    settings: dict[str, str | int | float | bool] = {}
    budget: _Limits = _Limits()
    force_choice: bool = False
    verify: bool = False
    after: str | None = None


def asking_routes(questions: Questions) -> list[Any]:
    """Routes that begin, list, follow and stop questions."""
    from starlette.routing import Route

    return [
        Route(
            "/data/libraries/{library:int}/questions",
            answering(lambda request: _start(questions, request)),
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
            response = json_response({"error": str(error)}, status=status_of(error))
            if isinstance(error, TooManyQuestions | MoneySpent):
                response.headers["retry-after"] = str(int(error.retry_s) + 1)
            return response

    return respond


def status_of(error: KinodexError) -> int:
    """The HTTP status of an error about a request."""
    if isinstance(error, TooManyQuestions | MoneySpent):
        return 429
    unknown = isinstance(error, NotGiven | TraceError | LibraryError) and not isinstance(error, QueryError)
    return 404 if unknown else 400


async def read_body(request: Request, model: type[Body]) -> Body:
    """Read a request's JSON; raises UsageError for another type of content, or values that do not fit."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        raise UsageError(f"got content of type {kind or 'none'!r}; send application/json")
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise UsageError(f"{where}: {first['msg']}") from error


async def _start(questions: Questions, request: Request) -> Response:
    body = await read_body(request, _AskBody)
    asked = AskRequest(
        library=request.path_params["library"],
        question=Question(body.question, tuple(body.options)),
        agent=body.agent or questions.settings.agent.name,
        videos=tuple(body.videos),
        settings=body.settings,
        budget=Budget(**body.budget.model_dump()),
        rules=AnswerRules(force_choice=body.force_choice, verify=body.verify),
        after=body.after,
    )
    return json_response({"key": questions.start(asked).key}, status=201)


def _listing(questions: Questions, request: Request) -> Response:
    number = request.query_params.get("library", "0")
    if not number.isdecimal():
        raise UsageError(f"got library {number!r}; give its number, from 0")
    return json_response({"rows": questions.listing(int(number))})


async def _stop(questions: Questions, request: Request) -> Response:
    found = questions.find(request.path_params["key"])
    stop = getattr(found, "stop", None)
    if stop is not None:
        stop()
    return json_response({}, status=202)
