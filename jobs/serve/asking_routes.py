"""Routes of asking: begin a question, list them, follow one by events, stop it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.core.answer_rules import AnswerRules
from agent.core.budget import Budget
from agent.core.question import MAX_OPTIONS, Question
from agent.errors import TraceError
from index.errors import KinodexError
from jobs.errors import UsageError
from jobs.serve.events import event_stream
from jobs.serve.questions import MoneySpent, Questions, TooManyQuestions
from jobs.serve.running import AskRequest, Running
from jobs.viewer.search.request import whole_number
from jobs.viewer.server import guarded, json_response, numbered_route, status_of

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


async def _start(questions: Questions, request: Request) -> Response:
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
