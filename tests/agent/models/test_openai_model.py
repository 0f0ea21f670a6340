"""Whole runs of EEA against a real server: the reader of the wire, the session and the agent together."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.attempts import ask_checked
from kinodex.agent.errors import ModelRejected
from kinodex.agent.limits.budget import Budget
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.response_cache import ResponseCache
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.requests.tree import Queries
from kinodex.agent.traces.events import Event, Exchanged
from kinodex.agent.variants.videoseek.look_requests import OverviewVideo
from kinodex.agent.videos.environment import Environment
from tests.support.runs.kite_runs import QUESTION
from tests.support.servers.chat_server import (
    Behaviour,
    ChatServer,
    cut_off,
    failing,
    in_turn,
    refusing,
)
from tests.support.servers.wire import (
    GO,
    HOME,
    QUERIES,
    SCORES,
    VIDEO,
    Walk,
    discover,
    frame,
    one_line,
    role,
    score,
)
from tests.support.servers.wire import ask as ask_model

EVENT_S = range(700, 712)
SEGMENT = re.compile(r"^- Segment (\d+): ([\d.]+) s to ([\d.]+) s(.*)$", re.MULTILINE)


def asked(request: dict) -> tuple[str, str]:
    """The kind of reply that a request asks for, and its prompt."""
    content = request["messages"][0]["content"]
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return request["response_format"]["json_schema"]["name"], "\n".join(parts)


def explorer(request: dict) -> dict | str | Behaviour:
    """Looks for the kite, scores what may hold it, explores for ever and answers only when it must."""
    kind, prompt = asked(request)
    if kind == "Queries":
        return {"queries": ["red kite desert"]}
    if kind in ("SegmentScores", "ScoresAndQueries"):
        listed = SEGMENT.findall(prompt.partition("segments to be scored:")[2].partition("\n\n")[0])
        scores = [(int(at), 90 if float(start) <= EVENT_S.start < float(end) else 10) for at, start, end, _ in listed]
        rated = {"segments": [{"segment": at, "reasoning": "maybe", "score": score} for at, score in scores]}
        return rated if kind == "SegmentScores" else {**rated, "queries": []}
    blank: dict[str, Any] = {"segment": None, "option": None, "answer": None, "evidence": []}
    if "Exploring is over" in prompt:
        return {**blank, "action": "answer", "option": "A", "answer": "blue"}
    segment = next(int(number) for number, _, _, more in SEGMENT.findall(prompt) if "nothing left to see" not in more)
    return {**blank, "action": "explore", "segment": segment}


def finder(request: dict) -> dict | str | Behaviour:
    """The explorer, until it is shown a frame of the event; then it answers and cites that frame."""
    kind, _ = asked(request)
    content = request["messages"][0]["content"]
    labels = re.findall(r"frame (\d+) at ([\d.]+) s", json.dumps(content)) if kind == "Decision" else []
    cited = [int(number) for number, time_s in labels if int(float(time_s)) in EVENT_S]
    if not cited:
        return explorer(request)
    return {"action": "answer", "segment": None, "option": "B", "answer": "red", "evidence": cited}


def run(
    server: ChatServer, environment: Environment, *, cache: ResponseCache | None = None, **settings: object
) -> tuple[Answer, list[Exchanged]]:
    events: list[Event] = []

    async def whole() -> Answer:
        async with OpenAIModel(role(server, **settings), cache=cache) as model:
            given: dict[str, Any] = {"agent": "eea", "budget": Budget(rounds=6), "on_event": events.append}
            return await ask(QUESTION, environment, model, **given)

    answer = asyncio.run(whole())
    return answer, [event for event in events if isinstance(event, Exchanged)]


def test_the_event_is_found_and_cited_and_the_bill_is_the_servers(kites: Environment) -> None:
    with ChatServer(finder) as server:
        answer, exchanged = run(server, kites, price={"input": 2.0, "output": 8.0})
    ledger = answer.ledger
    assert server.problems == []
    assert (answer.status, answer.text, answer.letter) == ("answered", "red", "B")
    assert answer.evidence
    assert all(EVENT_S.start <= each.start_s < each.end_s <= EVENT_S.stop for each in answer.evidence)
    assert ledger.calls == len(server.seen) == len(exchanged)
    assert ledger.frame_shows == sum(len(seen.frames) for seen in server.seen)
    assert ledger.frames == len({sent.label.partition(" at ")[2] for seen in server.seen for sent in seen.frames})
    assert ledger.input_tokens > 0
    assert ledger.cost == pytest.approx((2.0 * ledger.input_tokens + 8.0 * ledger.output_tokens) / 1e6)


def test_a_run_is_repeated_from_the_cache_without_the_server(kites: Environment, tmp_path: Path) -> None:
    with ResponseCache(tmp_path / "replies.sqlite") as cache:
        with ChatServer(finder) as server:
            paid, _ = run(server, kites, cache=cache, price={"input": 2.0})
        free, exchanged = run(server, kites, cache=cache, price={"input": 2.0}, attempts=1)
    assert (free.text, free.evidence, free.rounds) == (paid.text, paid.evidence, paid.rounds)
    assert all(each.exchange.cached for each in exchanged)
    assert paid.ledger.cost > 0 == free.ledger.cost
    assert free.ledger.cached_calls == free.ledger.calls == paid.ledger.calls


UNUSABLE: list[tuple[Behaviour | str, str]] = [
    (refusing("I will not."), "refused: I will not."),
    (Behaviour(content="", finish_reason="content_filter"), "refused: the content filter"),
    (failing(400, "Filtered.", code="content_filter"), "refused: a filter at"),
    (cut_off('{"queries": ["a ki'), "cut off after 3 tokens"),
    (Behaviour(content=None), "empty"),
    ('{"queries": ["a", "b', "breaks off"),
]


def test_a_reply_that_cannot_be_used_is_data_with_its_reason_and_its_cost() -> None:
    with ChatServer(in_turn(*(said for said, _ in UNUSABLE))) as server:
        exchanges = ask_model(server, *[discover()] * len(UNUSABLE), price={"input": 1.0})
    assert len(server.seen) == len(UNUSABLE)
    for exchange, (said, invalid) in zip(exchanges, UNUSABLE, strict=True):
        is_free = isinstance(said, Behaviour) and said.status == 400
        assert exchange.reply is None and (exchange.usage.cost > 0) != is_free, said
        assert invalid in (exchange.invalid or ""), said


def test_usage_and_cost_come_from_the_reply_and_the_roles_price() -> None:
    counted = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
    with ChatServer(lambda _: Behaviour(content=json.dumps(QUERIES), usage=counted)) as server:
        [exchange] = ask_model(server, discover(), price={"input": 2.0, "cached_input": 0.5, "output": 10.0})
    usage = exchange.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (1000, 100, 400)
    assert usage.cost == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6)
    assert exchange.seconds > 0


# The form of requests that a server accepts: each refusal, over a real server, and what is sent after it.


def test_the_ladder_goes_down_to_what_the_server_takes_and_stays_there() -> None:
    ladder: tuple[Any, ...] = ("json_schema", "json_object", None)
    for calls in (1, 2, 3):
        with ChatServer(lambda _: QUERIES, rejects=ladder[: calls - 1]) as server:
            first, second = ask_model(server, discover(), discover())
        assert first.reply == second.reply == Queries(queries=QUERIES["queries"]), calls
        formats = [seen.body.get("response_format", {}).get("type") for seen in server.seen]
        assert formats == [*ladder[:calls], ladder[calls - 1]], calls
        assert ("JSON schema" in server.seen[-1].text) == (calls > 1), calls
    with ChatServer(lambda _: QUERIES, rejects=["max_tokens", "temperature", "seed"]) as server:
        ask_model(server, discover(), discover(), seed=1, max_tokens=50)
    assert len(server.seen) == 5
    for seen in server.seen[-2:]:
        assert seen.body["max_completion_tokens"] == 50, "parameters are left out once and for all"
        assert not {"max_tokens", "temperature", "seed"} & set(seen.body)


def test_an_endpoint_that_refuses_tools_is_asked_for_json_from_then_on(caplog: pytest.LogCaptureFixture) -> None:
    for rejects in ("tools", "tool_choice"):
        caplog.clear()
        with caplog.at_level(logging.WARNING), ChatServer(lambda _: GO, rejects=[rejects]) as server:
            first, second = ask_model(server, Walk(), Walk())
        assert first.reply == second.reply == HOME
        assert [bool(seen.tools) for seen in server.seen] == [True, False, False], rejects
        assert server.seen[1].schema == "Step" and caplog.text.count("takes no tools") == 1, rejects


def test_a_server_of_few_pictures_gets_contact_sheets_from_its_first_refusal_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    frames = [frame(number) for number in range(1, 9)]
    for refused, most in (
        (failing(400, "At most 2 image(s) may be provided in one request."), 2),
        (failing(500, "vision model only supports a single image per message"), 1),
        (failing(400, "Provider returned error", metadata={"raw": "supports at most 1 image per prompt."}), 1),
        (failing(400, "Too many images in request."), 4),
    ):

        def reply(body: dict, refused: Behaviour = refused, most: int = most) -> Any:
            return refused if json.dumps(body).count('"image_url": {') > most else SCORES

        caplog.clear()
        with caplog.at_level(logging.WARNING), ChatServer(reply) as server:
            first, second = ask_model(server, score(frames), score(frames))
        assert first.reply is not None and second.reply is not None
        assert [len(seen.frames) for seen in server.seen] == [8, most, most]
        assert (first.usage.sheets, first.usage.left_out_frames, server.problems) == (most, 0, [])
        assert all(f"frame {number} at {number}.00 s" in server.seen[-1].text for number in range(1, 9))
        assert caplog.text.count(f"takes {most} pictures in a request") == 1


def test_a_model_is_asked_of_the_frames_alone_that_it_was_sent() -> None:
    """One sheet has room for 16 of 32 frames: the others are described in a request of their own."""
    shown = tuple(frame(number) for number in range(1, 33))
    segment = Segment(0, VIDEO.video_id, VIDEO.start_s, VIDEO.end_s)
    request = OverviewVideo(videos=(VIDEO,), segment=segment, subtitles=(), frames=shown)

    def reply(body: dict) -> Any:
        if json.dumps(body).count('"image_url": {') > 1:
            return failing(400, "At most 1 image(s) may be provided in one request.")
        asked_for = body["response_format"]["json_schema"]["schema"]["properties"]["frames"]
        told = re.findall(r"tile \d+ is frame (\d+) at (\d+)", json.dumps(body))
        assert asked_for["minItems"] == asked_for["maxItems"] == len(told) == 16
        return {"frames": [{"frame": number, "description": f"scene {at_s}"} for number, at_s in told]}

    async def described(server: ChatServer) -> Any:
        async with OpenAIModel(role(server)) as model:
            return await ask_checked(model, request)

    with ChatServer(reply) as server:
        outcome = asyncio.run(described(server))
    assert server.problems == [] and [len(seen.frames) for seen in server.seen] == [32, 1, 1]
    assert {each.frame: each.description for each in outcome.reply.frames} == {n: f"scene {n}" for n in range(1, 33)}
    assert (outcome.usage.sheets, outcome.usage.left_out_frames) == (2, 0)


def test_a_model_that_does_not_see_is_an_error_at_once_with_what_to_do() -> None:
    for refused in (
        failing(500, "image input is not supported - hint: you may need to provide the mmproj"),
        failing(404, "No endpoints found that support image input"),
        failing(400, "unknown variant `image_url`, expected `text` at line 1"),
        failing(400, "At most 0 image(s) may be provided in one request."),
    ):
        with ChatServer(partial(lambda refused, _: refused, refused)) as server, pytest.raises(ModelRejected) as caught:
            ask_model(server, score())
        assert "'tester' at 127.0.0.1 takes no pictures" in one_line(caught)
        assert "a model with vision" in one_line(caught) and len(server.seen) == 1
