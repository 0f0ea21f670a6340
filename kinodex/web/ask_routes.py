"""Routes of asking: begin a question or a search for moments by an agent, list, follow by events, stop."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.grounding.agent import grounding_of, text_of
from kinodex.jobs.verdicts import basis_of, claim
from kinodex.questions import question_for
from kinodex.requests import LONGEST_TEXT, Ask, Ground
from kinodex.server.responses import answering, json_response, numbered, numbered_route
from kinodex.web.bodies import read_body, read_request
from kinodex.web.events import event_stream
from kinodex.web.query_strings import whole_number
from kinodex.web.questions import Questions
from kinodex.web.ranges import grounding_view
from kinodex.web.running import Running

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_LOOKED_AT = 20
"""Moments of a search that a page has a model look at in one call."""
ROUNDED_S = 1e-3
"""Times that went through a page may be rounded so much."""
MOST_RANGES = 50
"""Ranges of an answer that a page shows."""


def asking_routes(questions: Questions, libraries: Sequence[Library]) -> list[Any]:
    """Routes that begin, list, follow and stop questions, and give the moments that an answer cites."""
    from starlette.routing import Route

    async def start(request: Request) -> Response:
        return begun(request, await read_request(request, Ask))

    async def start_grounding(request: Request) -> Response:
        asked = await read_request(request, Ground)
        if not asked.text.strip():
            raise QueryError("the text is empty; say in words what happens")
        return begun(request, question_for(asked))

    def begun(request: Request, asked: Ask) -> Response:
        return json_response({"key": questions.start(request.path_params["library"], asked).key}, status=201)

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


class _MomentBody(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    video_id: str
    start_s: float
    end_s: float


class _VerifyBody(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str = Field(max_length=LONGEST_TEXT)
    moments: list[_MomentBody] = Field(min_length=1, max_length=MOST_LOOKED_AT)


def _verdicts(questions: Questions, library: Library, body: _VerifyBody) -> dict[str, Any]:
    """Return the verdict of the server's model on each moment, in order, and what may be claimed of them."""
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
    """Return the ranges of a question that was answered, whatever was asked.

    Raises UsageError for one without an answer.
    """
    kept = questions.find(key)
    if isinstance(kept, Running):
        raise UsageError(f"the question {key} is not answered yet; follow its events")
    answer = kept.answer
    if answer is None:
        raise UsageError(f"the question {key} has no answer: {kept.error}")
    library = libraries[kept.number]
    found = grounding_of(library, text_of(kept.question), answer, kept.agent, MOST_RANGES)
    return grounding_view(library, found) | {"question": key}
