"""Routes that begin to look for ranges with an agent, and give those that it found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from agent.core.answer_rules import AnswerRules
from index.errors import QueryError
from index.library import Library
from jobs.errors import UsageError
from jobs.ground.by_agent import grounding_of, grounding_question, text_of
from jobs.serve.asking_routes import AskFields, answering, read_body
from jobs.serve.questions import Questions
from jobs.serve.running import AskRequest, Running
from jobs.viewer.search.grounding import MOST_RANGES, grounding_view
from jobs.viewer.search.request import LONGEST_TEXT
from jobs.viewer.server import guarded, json_response, numbered_route

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


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
