"""Causes of refusals, read from bodies of real servers wherever in them the reason stands."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from kinodex.agent.models import provider_errors

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "server_refusals.json").read_text())
"""Bodies of refusals that users of real servers reported, each with its source, and the words that it is known by."""
PARAMETERS = ("max_tokens", "max_completion_tokens", "temperature", "seed", "parallel_tool_calls")
CAUSES = {
    "limit": provider_errors.LIMIT_WORDS,
    "format": provider_errors.FORMAT_WORDS,
    "tools": provider_errors.TOOL_WORDS,
    "model": provider_errors.NO_MODEL_WORDS,
    "quota": provider_errors.NO_MONEY,
    "images": provider_errors.FEWER_IMAGES_WORDS,
    "pictures": provider_errors.NO_IMAGE_WORDS,
    "context": provider_errors.CONTEXT_WORDS,
    "filter": provider_errors.FILTER_WORDS,
}


def refusal(status: int, body: object) -> openai.APIStatusError:
    """The error that the installed client makes of a body."""

    async def ask_once() -> None:
        content = body if isinstance(body, str) else json.dumps(body)
        transport = httpx2.MockTransport(lambda request: httpx2.Response(status, text=content))
        async with httpx2.AsyncClient(transport=transport) as http:
            client = openai.AsyncOpenAI(api_key="-", base_url="http://nowhere/v1", max_retries=0, http_client=http)
            await client.post("/chat/completions", body={}, cast_to=object)

    with pytest.raises(openai.APIStatusError) as caught:
        asyncio.run(ask_once())
    return caught.value


def causes(recorded: dict[str, Any]) -> dict[str, list[str]]:
    """The causes of a recorded refusal, each with the words that tell it."""
    return {recorded["objects_to"]: recorded["words"], **recorded.get("also", {})}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: f"{each['server']} {each['objects_to']}")
def test_what_a_real_server_objects_to_is_recognised(recorded: dict[str, Any]) -> None:
    error, why = refusal(recorded["status"], recorded["body"]), causes(recorded)
    text = json.dumps(recorded["body"]).lower()
    assert all(word in text for words in why.values() for word in words)
    rejected = provider_errors.rejected_parameter(error, PARAMETERS)
    assert (rejected is not None) == ("parameter" in why)
    assert rejected is None or rejected in recorded["words"]
    assert provider_errors.rejects_format(error) == ("format" in why)
    assert provider_errors.rejects_tools(error) or "tools" not in why
    assert provider_errors.may_reject_model(error) or "model" not in why
    assert provider_errors.is_money_spent(error) == ("quota" in why)
    assert provider_errors.is_context_spent(error) == ("context" in why)
    assert provider_errors.context_limit(error) == recorded.get("context_limit")
    assert provider_errors.is_filtered(error) == ("filter" in why)
    assert provider_errors.most_images(error, 30) == (0 if "pictures" in why else recorded.get("most_images"))
    assert provider_errors.most_images(error, 0) is None, "a request without pictures is not refused for them"


@pytest.mark.parametrize(("cause", "words"), CAUSES.items())
def test_each_word_of_the_tables_comes_from_a_recorded_refusal(cause: str, words: tuple[str, ...]) -> None:
    recorded = {word for each in RECORDED for word in causes(each).get(cause, ())}
    assert set(words) == recorded


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no such thing"}}, "no such thing"),
        ({"error": "no such thing"}, "no such thing"),
        ({"message": "no such thing", "code": 7}, "no such thing"),
        ({"detail": "no such thing"}, "no such thing"),
        ({"detail": [{"msg": "no such thing", "input": "my prompt"}]}, "no such thing"),
        ({"detail": [{"loc": ["body", "seed"], "msg": "extra"}, {"msg": "none"}]}, "body.seed: extra; none"),
        ({"error": {"message": {"detail": [{"msg": "no such thing"}]}}}, "no such thing"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": '{"error": "none"}'}}}, "none"),
        ({"error": {"message": "Provider returned error", "code": 502}}, "Provider returned error"),
        ({"fault": {"kind": 3}}, '{"fault": {"kind": 3}}'),
        ("no such\n thing", "no such thing"),
        ("<html>no such thing</html>", ""),
        ("", ""),
    ],
)
def test_a_servers_own_words_are_found_wherever_they_stand(body: object, message: str) -> None:
    assert provider_errors.server_message(refusal(400, body)) == message


def test_words_of_the_request_are_not_the_servers() -> None:
    body = {"detail": [{"type": "missing", "loc": ["body", "x"], "msg": "required", "input": "the tool, image input"}]}
    error = refusal(422, body)
    assert not provider_errors.rejects_tools(error)
    assert provider_errors.most_images(error, 3) is None


@pytest.mark.parametrize(
    ("message", "sent", "most"),
    [
        ("At most 5 image(s) may be provided in one request.", 30, 5),
        ("At most 5 image(s) may be provided in one request.", 5, None),
        ("At most 0 image(s) may be provided in one prompt.", 2, 0),
        ("Too many images in request. Max is 10.", 30, 10),
        ("Too many images.", 30, 15),
        ("The image is too large", 3, None),
        ("max_tokens must be at most 4096", 3, None),
    ],
)
def test_the_most_images_are_read_or_halved(message: str, sent: int, most: int | None) -> None:
    assert provider_errors.most_images(refusal(400, {"error": {"message": message}}), sent) == most


def test_an_error_sent_with_success_is_a_refusal() -> None:
    answer = {"error": {"code": 400, "message": "the request exceeds the available context size."}}
    error = provider_errors.hidden_error(answer, "http://nowhere/v1")
    assert error is not None
    assert error.status_code == 400
    assert provider_errors.is_context_spent(error)
    others: list[object] = [{"error": {"message": "odd", "code": "x"}}, {"error": {"code": 7}}, {"error": "no"}, "page"]
    for other in others:
        assert provider_errors.hidden_error(other, "http://nowhere/v1") is None
