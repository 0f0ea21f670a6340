"""Errors of the tree in OpenAI's form."""

from __future__ import annotations

import json

import pytest

from kinodex.agent.errors import BadQuestion, ModelUnreachable
from kinodex.guards import NotGiven
from kinodex.index.errors import KinodexError, StorageError, UnknownVideo
from kinodex.web.openai_chat import RequestRefused, error_body, error_response
from kinodex.web.questions import MoneySpent, QuestionFault, TooManyQuestions


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (RequestRefused("no", "n", "odd", 404), 404, "invalid_request_error", "odd"),
        (BadQuestion("no"), 400, "invalid_request_error", None),
        (UnknownVideo("no"), 400, "invalid_request_error", "video_not_found"),
        (NotGiven("no"), 404, "invalid_request_error", "not_found"),
        (TooManyQuestions("no"), 429, "rate_limit_error", "rate_limit_exceeded"),
        (MoneySpent("no", 30.0), 429, "insufficient_quota", "insufficient_quota"),
        (ModelUnreachable("no"), 502, "server_error", "model_unusable"),
        (QuestionFault("no"), 500, "server_error", None),
        (StorageError("no"), 503, "server_error", "library_unusable"),
    ],
)
def test_status_type_and_code(error: KinodexError, status: int, kind: str, code: str | None) -> None:
    param = "n" if isinstance(error, RequestRefused) else None
    said = {"message": "no", "type": kind, "param": param, "code": code}
    assert error_body(error) == (status, {"error": said})
    response = error_response(error)
    assert (response.status_code, json.loads(bytes(response.body))) == (status, {"error": said})


def test_when_to_try_again() -> None:
    assert error_response(MoneySpent("no", 30.5)).headers["retry-after"] == "31"
    assert "retry-after" not in error_response(BadQuestion("no")).headers
