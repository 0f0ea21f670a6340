"""Errors in OpenAI's form: a message, a type, the parameter at fault and a code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from kinodex.agent.errors import ModelError, TraceError
from kinodex.errors import KinodexError
from kinodex.index.errors import LibraryError, QueryError, UnknownVideo
from kinodex.jobs.errors import UsageError
from kinodex.redaction import redact
from kinodex.server.responses import NotGiven, json_response, say_when
from kinodex.web.failures import QuestionFault
from kinodex.web.questions import MoneySpent, TooManyQuestions

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
BAD_REQUEST, LIMIT, SERVER = "invalid_request_error", "rate_limit_error", "server_error"


class RequestRefused(UsageError):
    """A request in OpenAI's form that cannot be answered: the parameter at fault, a code, and the HTTP status."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.param, self.code, self.status = param, code, status


def answering(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Turn errors about a request into OpenAI's form; any other exception is a fault and stays one."""

    async def respond(request: Request) -> Response:
        try:
            return await answer(request)
        except KinodexError as error:
            status, body = error_body(error)
            return say_when(error, json_response(body, status=status))

    return respond


def error_body(error: Exception) -> tuple[int, dict[str, Any]]:
    status, kind, code = _class(error)
    param = error.param if isinstance(error, RequestRefused) else None
    return status, {"error": {"message": redact(str(error)), "type": kind, "param": param, "code": code}}


def _class(error: Exception) -> tuple[int, str, str | None]:
    match error:
        case RequestRefused():
            return error.status, BAD_REQUEST, error.code
        case TooManyQuestions():
            return 429, LIMIT, "rate_limit_exceeded"
        case MoneySpent():
            return 429, "insufficient_quota", "insufficient_quota"
        case ModelError():
            return 502, SERVER, "model_unusable"
        case QuestionFault():
            return 500, SERVER, None
        case NotGiven() | TraceError():
            return 404, BAD_REQUEST, "not_found"
        case UnknownVideo() | QueryError():
            return 400, BAD_REQUEST, "video_not_found" if isinstance(error, UnknownVideo) else None
        case LibraryError():
            return 503, SERVER, "library_unusable"
    return 400, BAD_REQUEST, None
