"""Whole runs of EEA against a real server: the reader of the wire, the session and the agent together."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.errors import ModelRejected
from kinodex.agent.limits import Budget
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import ResponseCache
from kinodex.agent.protocol import Question
from kinodex.agent.requests.tree import Queries
from kinodex.agent.trace import Event, Exchanged
from kinodex.agent.variants.eea import EEAParameters
from tests.support.libraries.agent_library import environment_of, film, make_library
from tests.support.servers.chat_server import (
    Behaviour,
    ChatServer,
    Reply,
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
    Walk,
    discover,
    frame,
    one_line,
    role,
    score,
)
from tests.support.servers.wire import ask as ask_model

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
EVENT_S = range(700, 712)
SEGMENT = re.compile(r"^- Segment (\d+): ([\d.]+) s to ([\d.]+) s(.*)$", re.MULTILINE)
OVER = "Exploring is over"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    films = {"film": film(1, 900, {EVENT_S.start: ("red kite desert", len(EVENT_S))})}
    return environment_of(make_library(tmp_path_factory.mktemp("wire"), films, frame(1, size=(8, 8)).jpeg))


def asked(request: dict) -> tuple[str, str]:
    """The kind of reply that a request asks for, and its prompt."""
    content = request["messages"][0]["content"]
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return request["response_format"]["json_schema"]["name"], "\n".join(parts)


def explore(segment: int) -> dict:
    return {"action": "explore", "segment": segment, "option": None, "answer": None, "evidence": []}


def explorer(request: dict) -> dict | str | Behaviour:
    """Looks for the kite, scores what may hold it, explores for ever and answers only when it must."""
    kind, prompt = asked(request)
    segments = [(int(number), float(start), float(end), more) for number, start, end, more in SEGMENT.findall(prompt)]
    if kind == "Queries":
        return {"queries": ["red kite desert"]}
    if kind in ("SegmentScores", "ScoresAndQueries"):
        listed = SEGMENT.findall(prompt.partition("segments to be scored:")[2].partition("\n\n")[0])
        scores = [(int(at), 90 if float(start) <= EVENT_S.start < float(end) else 10) for at, start, end, _ in listed]
        rated = {"segments": [{"segment": at, "reasoning": "maybe", "score": score} for at, score in scores]}
        return rated if kind == "SegmentScores" else {**rated, "queries": []}
    if OVER in prompt:
        return {"action": "answer", "segment": None, "option": "A", "answer": "blue", "evidence": []}
    return explore(next(number for number, _, _, more in segments if "nothing left to see" not in more))


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
    server: ChatServer,
    environment: Environment,
    budget: Budget,
    *,
    parameters: EEAParameters | None = None,
    cache: ResponseCache | None = None,
    **settings: object,
) -> tuple[Answer, list[Exchanged]]:
    events: list[Event] = []

    async def whole() -> Answer:
        async with OpenAIModel(role(server, **settings), cache=cache) as model:
            return await ask(QUESTION, environment, model, parameters=parameters, budget=budget, on_event=events.append)

    answer = asyncio.run(whole())
    return answer, [event for event in events if isinstance(event, Exchanged)]


def test_the_event_is_found_and_cited_and_the_bill_is_the_servers(environment: Environment) -> None:
    with ChatServer(finder) as server:
        answer, exchanged = run(server, environment, Budget(rounds=6), price={"input": 2.0, "output": 8.0})
    assert server.problems == []
    assert (answer.status, answer.text, answer.letter) == ("answered", "red", "B")
    assert all(EVENT_S.start <= each.start_s < each.end_s <= EVENT_S.stop for each in answer.evidence)
    assert answer.evidence
    ledger = answer.ledger
    assert ledger.calls == len(server.seen) == len(exchanged)
    assert ledger.frame_shows == sum(len(seen.frames) for seen in server.seen)
    assert ledger.frames == len({sent.label.partition(" at ")[2] for seen in server.seen for sent in seen.frames})
    assert ledger.input_tokens > 0
    assert ledger.cost == pytest.approx((2.0 * ledger.input_tokens + 8.0 * ledger.output_tokens) / 1e6)


def test_openai_gets_one_schema_for_all_steps_of_a_search(environment: Environment) -> None:
    """It stands before the messages there, so that another one would end every common prefix."""

    def step(request: dict) -> dict | str | Behaviour:
        name, prompt = asked(request)
        if name != "Step":
            return finder(request)
        due = "ScoresAndQueries" if '"segments"' in prompt.rpartition("with the keys")[2] else "Decision"
        request["response_format"]["json_schema"]["name"] = due
        return {"step": finder(request)}

    with ChatServer(step) as server:
        answer, _ = run(server, environment, Budget(rounds=6), joint_schema=True)
    with ChatServer(finder) as server_of_each_kind:
        same, _ = run(server_of_each_kind, environment, Budget(rounds=6))
    assert server.problems == []
    assert (answer.status, answer.letter) == ("answered", "B") and answer.evidence == same.evidence
    formats = [seen.body["response_format"]["json_schema"]["schema"] for seen in server.seen]
    assert len(formats) > 2 and len({json.dumps(each) for each in formats[1:]}) == 1  # the first discovers queries
    others = [seen.body["response_format"]["json_schema"]["schema"] for seen in server_of_each_kind.seen]
    assert len({json.dumps(each) for each in others[1:]}) > 1


def test_a_run_is_repeated_from_the_cache_without_the_server(environment: Environment, tmp_path: Path) -> None:
    with ResponseCache(tmp_path / "replies.sqlite") as cache:
        with ChatServer(finder) as server:
            paid, _ = run(server, environment, Budget(rounds=6), cache=cache, price={"input": 2.0})
        free, exchanged = run(server, environment, Budget(rounds=6), cache=cache, price={"input": 2.0}, attempts=1)
    assert (free.text, free.evidence, free.rounds) == (paid.text, paid.evidence, paid.rounds)
    assert all(each.exchange.cached for each in exchanged)
    assert paid.ledger.cost > 0
    assert free.ledger.cost == 0
    assert free.ledger.cached_calls == free.ledger.calls == paid.ledger.calls


UNUSABLE: list[tuple[Behaviour | str, str]] = [
    (refusing("I will not."), "refused: I will not."),
    (Behaviour(content="", finish_reason="content_filter"), "refused: the content filter"),
    (cut_off('{"queries": ["a ki'), "cut off after 3 tokens"),
    (Behaviour(content=None), "empty"),
    ('{"queries": ["a", "b', "breaks off"),
]


def test_a_reply_that_cannot_be_used_is_data_with_its_reason_and_its_cost() -> None:
    for said, invalid in UNUSABLE:
        with ChatServer(in_turn(said)) as server:
            [exchange] = ask_model(server, discover(), price={"input": 1.0})
        assert exchange.reply is None, (said, invalid)
        assert invalid in (exchange.invalid or ""), (said, invalid)
        assert exchange.usage.cost > 0, (said, invalid)
        assert len(server.seen) == 1, (said, invalid)


def test_usage_and_cost_come_from_the_reply_and_the_roles_price() -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    said = Behaviour(content=json.dumps(QUERIES), usage=usage)
    with ChatServer(lambda _: said) as server:
        [exchange] = ask_model(server, discover(), price={"input": 2.0, "cached_input": 0.5, "output": 10.0})
    assert (exchange.usage.input_tokens, exchange.usage.output_tokens, exchange.usage.cached_tokens) == (1000, 100, 400)
    assert exchange.usage.cost == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6)
    assert exchange.seconds > 0


# The form of requests that a server accepts: each refusal, over a real server, and what is sent after it.


def test_the_ladder_goes_down_to_what_the_server_takes_and_stays_there() -> None:
    ladder = ("json_schema", "json_object")
    rungs = (*ladder, None)
    for calls in (1, 2, 3):
        rejects = ladder[: calls - 1]
        with ChatServer(lambda _: QUERIES, rejects=rejects) as server:
            first, second = ask_model(server, discover(), discover())
        assert first.reply == second.reply == Queries(queries=QUERIES["queries"]), rejects
        formats = [seen.body.get("response_format", {}).get("type") for seen in server.seen]
        assert formats == [*rungs[:calls], rungs[calls - 1]], rejects
        assert ("JSON schema" in server.seen[-1].text) == (calls > 1), rejects


def test_parameters_that_the_server_rejects_are_left_out_once_and_for_all() -> None:
    with ChatServer(lambda _: QUERIES, rejects=["max_tokens", "temperature", "seed"]) as server:
        ask_model(server, discover(), discover(), seed=1, max_tokens=50)
    assert len(server.seen) == 5
    for seen in server.seen[-2:]:
        assert seen.body["max_completion_tokens"] == 50
        assert not {"max_tokens", "temperature", "seed"} & set(seen.body)


@pytest.mark.parametrize("rejects", ["tools", "tool_choice"])
def test_an_endpoint_that_refuses_tools_is_asked_for_json_from_then_on(
    rejects: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), ChatServer(lambda _: GO, rejects=[rejects]) as server:
        first, second = ask_model(server, Walk(), Walk())
    assert first.reply == second.reply == HOME
    assert [bool(seen.tools) for seen in server.seen] == [True, False, False]
    assert server.seen[1].schema == "Step"
    assert caplog.text.count("takes no tools") == 1


def refusing_pictures(refused: Behaviour, most: int, reply: dict) -> Reply:
    """A server that refuses more than so many pictures."""
    return lambda body: refused if json.dumps(body).count('"image_url": {') > most else reply


@pytest.mark.parametrize(
    ("refused", "most"),
    [
        (failing(400, "At most 2 image(s) may be provided in one request."), 2),
        (failing(500, "vision model only supports a single image per message"), 1),
        (failing(400, "Provider returned error", metadata={"raw": "supports at most 1 image per prompt."}), 1),
        (failing(400, "Too many images in request."), 4),
    ],
)
def test_a_server_of_few_pictures_gets_contact_sheets_from_its_first_refusal_on(
    refused: Behaviour, most: int, caplog: pytest.LogCaptureFixture
) -> None:
    frames = [frame(number) for number in range(1, 9)]
    with caplog.at_level(logging.WARNING), ChatServer(refusing_pictures(refused, most, SCORES)) as server:
        first, second = ask_model(server, score(frames), score(frames))
    assert first.reply is not None
    assert second.reply is not None
    assert [len(seen.frames) for seen in server.seen] == [8, most, most]
    assert (first.usage.sheets, first.usage.left_out_frames) == (most, 0)
    for number in range(1, 9):
        assert f"frame {number} at {number}.00 s" in server.seen[-1].text
    assert caplog.text.count(f"takes {most} pictures in a request") == 1
    assert server.problems == []


@pytest.mark.parametrize(
    "refused",
    [
        failing(500, "image input is not supported - hint: you may need to provide the mmproj"),
        failing(404, "No endpoints found that support image input"),
        failing(400, "unknown variant `image_url`, expected `text` at line 1"),
        failing(400, "At most 0 image(s) may be provided in one request."),
    ],
)
def test_a_model_that_does_not_see_is_an_error_at_once_with_what_to_do(refused: Behaviour) -> None:
    with ChatServer(lambda _: refused) as server, pytest.raises(ModelRejected) as caught:
        ask_model(server, score())
    assert "'tester' at 127.0.0.1 takes no pictures" in one_line(caught)
    assert "a model with vision" in one_line(caught)
    assert len(server.seen) == 1
