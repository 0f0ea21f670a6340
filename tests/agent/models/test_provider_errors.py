"""Errors of endpoints: the one clear line for the user, with advice that fits the cause."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from kinodex.agent.errors import (
    AllRejected,
    ContextSpent,
    Filtered,
    ModelError,
    ModelRejected,
    ModelUnknown,
    ModelUnreachable,
    TakesNoPictures,
)
from kinodex.agent.models import provider_errors, refusal_causes
from kinodex.agent.models.roles import Role
from tests.support.servers.chat_server import Behaviour, ChatServer, failing
from tests.support.servers.wire import QUERIES, SCORES, ask, discover, frame, one_line, score

pytestmark = pytest.mark.usefixtures("quick_tries")

RATE_LIMIT = {"error": {"message": "Provider returned error", "metadata": {"raw": "rate-limited upstream"}}}
TOO_LONG = "This model's maximum context length is 8192 tokens (64 in the messages, 20 in the functions)."


def test_a_refusal_is_told_in_the_servers_words_with_advice_that_fits() -> None:
    for status, body, kind, words in [
        (401, {"error": {"message": "bad key"}}, AllRejected, "OPENAI_API_KEY (401: bad key); check the key"),
        (402, {"detail": "Insufficient Balance"}, AllRejected, "Insufficient Balance); add credit to the account"),
        (429, {"error": {"message": "Go on", "code": "insufficient_quota"}}, AllRejected, "add credit to the account"),
        (429, RATE_LIMIT, ModelUnreachable, "(429: rate-limited upstream), for up to 5 attempts and 300 s; lower the"),
        (404, {"detail": "Not Found"}, AllRejected, "no chat completions (404: Not Found); it usually"),
        (400, {"error": {"code": "content_filter"}}, Filtered, "a filter at nowhere refuses this request"),
        (500, {"error": {"message": "image input is not supported"}}, TakesNoPictures, "takes no pictures (500:"),
        (400, {"error": {"message": TOO_LONG}}, ContextSpent, "lower the role's max_tokens (4096)"),
        (413, "", ContextSpent, "can hold (413); lower the role's max_tokens (4096) or image_side_px"),
        (400, {"detail": "temperature is odd"}, ModelRejected, "is odd); change the role's temperature"),
        (422, {"detail": "no top_k here"}, ModelRejected, "(422: no top_k here); take top_k out of the role's extra"),
        (400, "<html>no</html>", ModelRejected, "refuses the request to 'tester' (400); its log may say more"),
        (503, {"message": "loading"}, ModelUnreachable, "(503: loading), for up to 5 attempts and 300 s; look at"),
    ]:
        role = Role(model="tester", base_url="http://nowhere/v1", extra={"top_k": 3})
        error = provider_errors.status_error(role, refusal(status, body), None, images=2)
        assert type(error) is kind, status
        assert words in str(error), status
        assert "\n" not in str(error), status


def test_text_is_clipped_to_one_line_without_what_the_endpoint_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "marked-key-1")
    url = "http://marked-user-2:marked%20pass@h/v1?api_key=marked-value-3"
    role = Role(model="tester", base_url=url, key_env="MINE")
    assert provider_errors.clip("a\n b", role) == "a b"
    assert len(provider_errors.clip("x " * 1000, role)) == provider_errors.CLIPPED_CHARACTERS
    said = "marked-key-1 marked-user-2 marked%20pass, marked pass, marked-value-3, bWFya2VkLXVzZXItMjptYXJrZWQgcGFzcw=="
    assert provider_errors.clip(said, role) == "*** *** ***, ***, ***, ***"
    at_the_end = "x " * (provider_errors.CLIPPED_CHARACTERS // 2 - 4) + "marked-key-1"
    assert "marked" not in provider_errors.clip(at_the_end, role), "cut first, half of it would stay"
    for space in " \n":
        far = space * (provider_errors.READ_CHARACTERS - 4) + "marked-key-1"
        assert provider_errors.clip(far, role) == "", "nor does half of it where reading ends"
    assert provider_errors.clip("x" * 2 * provider_errors.READ_CHARACTERS, role) == "x" * 299 + "…"


def test_an_unknown_model_is_met_with_the_nearest_names_and_a_web_page_is_no_completion() -> None:
    models = ("qwen3-vl-8b-instruct", "qwen3-vl-32b-instruct", "whisper-large")
    with ChatServer(lambda _: QUERIES, models=models) as server, pytest.raises(ModelUnknown) as caught:
        ask(server, discover(), model="Qwen3-VL-8B")
    nearest = "127.0.0.1 has no model 'Qwen3-VL-8B'; the nearest of the 3 it lists: qwen3-vl-8b-"
    assert one_line(caught).startswith(nearest) and len(server.seen) == 1
    page = Behaviour(raw=b"<html>\nWelcome</html>", headers={"Content-Type": "text/html"})
    with ChatServer(lambda _: page) as server, pytest.raises(ModelUnreachable) as lost:
        ask(server, discover(), attempts=1)
    assert "<html> Welcome</html>" in one_line(lost)


def test_a_reply_longer_than_the_context_is_asked_for_shorter_and_said(caplog: pytest.LogCaptureFixture) -> None:
    said = failing(400, "max_tokens is too large: 5000. This model's maximum context length is 4096 tokens.")
    with ChatServer(lambda _: said) as server, pytest.raises(ModelRejected) as caught:
        ask(server, discover(), max_tokens=5000)
    first, second, *others = [each.body["max_tokens"] for each in server.seen]
    assert (first, second) == (5000, 1024) and len(others) <= 2, "a server that refuses whatever comes is left"
    assert "4096" in one_line(caught)
    assert "holds 4,096 tokens; a reply has 1,024 at most" in caplog.text


def test_each_error_of_the_official_client_is_one_of_ours() -> None:
    for status, theirs, ours in (
        (400, "BadRequestError", ModelRejected),
        (401, "AuthenticationError", AllRejected),
        (403, "PermissionDeniedError", ModelRejected),
        (404, "NotFoundError", AllRejected),
        (409, "ConflictError", ModelUnreachable),
        (422, "UnprocessableEntityError", ModelRejected),
        (429, "RateLimitError", ModelUnreachable),
        (500, "InternalServerError", ModelUnreachable),
        (418, "APIStatusError", ModelRejected),
    ):
        said = failing(status, "no")
        with ChatServer(partial(lambda said, _: said, said)) as server, pytest.raises(ModelError) as caught:
            ask(server, discover(), attempts=1)
        assert (type(caught.value), type(caught.value.__cause__).__name__) == (ours, theirs)
        assert f"({status}: no)" in one_line(caught)


# Causes of refusals, read from bodies of real servers wherever in them the reason stands.


RECORDED = json.loads((Path(__file__).parents[2] / "data" / "server_refusals.json").read_text())
"""Bodies of refusals that users of real servers reported, each with its source, and the words that it is known by."""
PARAMETERS = ("max_tokens", "max_completion_tokens", "temperature", "seed", "parallel_tool_calls")
CAUSES = {
    "limit": refusal_causes.LIMIT_WORDS,
    "format": refusal_causes.FORMAT_WORDS,
    "tools": refusal_causes.TOOL_WORDS,
    "model": refusal_causes.NO_MODEL_WORDS,
    "quota": refusal_causes.NO_MONEY,
    "images": refusal_causes.FEWER_IMAGES_WORDS,
    "pictures": refusal_causes.NO_IMAGE_WORDS,
    "context": refusal_causes.CONTEXT_WORDS,
    "filter": refusal_causes.FILTER_WORDS,
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


def test_what_a_real_server_objects_to_is_recognised() -> None:
    for recorded in RECORDED:
        error, why = refusal(recorded["status"], recorded["body"]), causes(recorded)
        text = json.dumps(recorded["body"]).lower()
        assert all(word in text for words in why.values() for word in words), recorded
        rejected = refusal_causes.rejected_parameter(error, PARAMETERS)
        assert (rejected is not None) == ("parameter" in why), recorded
        assert rejected is None or rejected in recorded["words"], recorded
        assert refusal_causes.rejects_format(error) == ("format" in why), recorded
        assert refusal_causes.rejects_tools(error) or "tools" not in why, recorded
        assert refusal_causes.may_reject_model(error) or "model" not in why, recorded
        assert refusal_causes.is_money_spent(error) == ("quota" in why), recorded
        assert refusal_causes.is_context_spent(error) == ("context" in why), recorded
        assert refusal_causes.context_limit(error) == recorded.get("context_limit"), recorded
        assert refusal_causes.is_filtered(error) == ("filter" in why), recorded
        assert refusal_causes.most_images(error, 30) == (0 if "pictures" in why else recorded.get("most_images")), (
            recorded
        )
        assert refusal_causes.most_images(error, 0) is None, "a request without pictures is not refused for them"


TOKENS_A_PICTURE = 700


def too_long(recorded: dict[str, Any], limit_tokens: int, needs_max_tokens: bool) -> Callable[[dict[str, Any]], Any]:
    """A server that takes this many tokens, and refuses more as a recorded one does, with its own limit instead."""
    known, given = str(recorded.get("context_limit")), str(limit_tokens)
    refused = json.loads(json.dumps(recorded["body"]).replace(known, given))

    def reply(body: dict[str, Any]) -> Any:
        if needs_max_tokens and "max_tokens" not in body:
            return failing(400, "max_tokens: Field required")
        parts = [part for message in body["messages"] for part in _parts(message["content"])]
        pictures = sum("image_url" in part for part in parts)
        text = sum(len(part.get("text", "")) for part in parts)
        size = text // 4 + TOKENS_A_PICTURE * pictures + body.get("max_tokens", 0)
        return Behaviour(status=recorded["status"], body=refused) if size > limit_tokens else SCORES

    return reply


def _parts(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"text": content}] if isinstance(content, str) else content


@pytest.mark.parametrize(
    "recorded", [each for each in RECORDED if "context" in causes(each)], ids=lambda each: each["words"] or "code"
)
def test_a_request_that_is_refused_for_its_length_is_shortened_and_answered(recorded: dict[str, Any]) -> None:
    """In the words of each server: some of them speak of pictures too, and some cannot do without `max_tokens`."""
    server = ChatServer(too_long(recorded, 8192, needs_max_tokens=True))
    with server:
        [exchange] = ask(server, score([frame(number, size=(512, 384)) for number in range(10)]))
    assert exchange.reply is not None
    assert len(server.seen) > 1 and all(each.frames for each in server.seen), "it was refused, and pictures are shown"


def test_each_word_of_the_tables_comes_from_a_recorded_refusal() -> None:
    for cause, words in CAUSES.items():
        recorded = {word for each in RECORDED for word in causes(each).get(cause, ())}
        assert set(words) == recorded, (cause, words)


def test_an_error_sent_with_success_is_a_refusal() -> None:
    answer = {"error": {"code": 400, "message": "the request exceeds the available context size."}}
    error = refusal_causes.hidden_error(answer, "http://nowhere/v1")
    assert error is not None
    assert error.status_code == 400
    assert refusal_causes.is_context_spent(error)
    others: list[object] = [{"error": {"message": "odd", "code": "x"}}, {"error": {"code": 7}}, {"error": "no"}, "page"]
    for other in others:
        assert refusal_causes.hidden_error(other, "http://nowhere/v1") is None
