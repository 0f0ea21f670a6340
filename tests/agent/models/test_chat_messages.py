"""What goes over the wire: text, frames in order with their times, the schema, parameters; and how replies are read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agent.core.replies import Decision, Queries, SegmentScores
from agent.errors import InvalidReply
from agent.models.completion import parse_completion
from agent.models.structured_output import json_values, parse_json, strict_schema
from tests.support.chat_server import Behaviour, ChatServer, cut_off, in_turn, refusing
from tests.support.wire import ANSWER, QUERIES, SCORES, ask, decide, discover, frame, score


def test_frames_arrive_in_order_after_their_times_and_no_larger_than_the_role_allows() -> None:
    frames = (frame(3, time_s=2.96, size=(640, 360)), frame(12, time_s=12.0), frame(31, time_s=31.04, size=(90, 160)))
    with ChatServer(lambda _: SCORES) as server:
        [exchange] = ask(server, score(frames), image_side_px=160)
    assert server.problems == []
    assert [sent.label for sent in server.seen[0].frames] == [
        "frame 1 at 2.96 s",
        "frame 2 at 12.00 s",
        "frame 3 at 31.04 s",
    ]
    assert [(sent.width_px, sent.height_px) for sent in server.seen[0].frames] == [(160, 90), (64, 48), (90, 160)]
    assert exchange.reply is not None
    assert [each.score for each in exchange.reply.segments] == [10, 20, 30]


def test_frames_within_the_limit_are_sent_byte_for_byte() -> None:
    shown = frame(5)
    with ChatServer(lambda _: ANSWER) as server:
        ask(server, replace(decide(), frames=(shown,)))
    import base64

    url = server.seen[0].body["messages"][0]["content"][-1]["image_url"]["url"]
    assert base64.b64decode(url.partition(",")[2]) == shown.jpeg


def test_frames_of_several_videos_are_told_apart() -> None:
    frames = (frame(1), frame(2, video="b" * 32))
    with ChatServer(lambda _: SCORES) as server:
        ask(server, score(frames))
    labels = [sent.label for sent in server.seen[0].frames]
    assert labels == ["frame 1 at 1.00 s of video aaaaaaaaaaaa", "frame 2 at 2.00 s of video bbbbbbbbbbbb"]


def test_a_request_without_frames_is_plain_text_with_the_roles_parameters() -> None:
    with ChatServer(lambda _: QUERIES) as server:
        ask(server, discover(), max_tokens=77, seed=3, temperature=0.2, extra={"reasoning_effort": "low"})
    body = server.seen[0].body
    assert "What colour is the kite?" in body["messages"][0]["content"]
    assert (body["max_tokens"], body["seed"], body["temperature"]) == (77, 3, 0.2)
    assert body["reasoning_effort"] == "low"
    assert body["response_format"]["json_schema"]["strict"] is True


def test_the_request_says_its_own_temperature_unless_the_role_does() -> None:
    with ChatServer(lambda _: QUERIES) as server:
        ask(server, discover())
    assert server.seen[0].body["temperature"] == discover().temperature


@pytest.mark.parametrize("reply", [Queries, SegmentScores, Decision])
def test_schemas_are_strict(reply) -> None:
    def objects(node):
        if isinstance(node, dict):
            if node.get("type") == "object":
                yield node
            for each in node.values():
                yield from objects(each)
        elif isinstance(node, list):
            for each in node:
                yield from objects(each)

    found = list(objects(strict_schema(reply)))
    assert found
    for each in found:
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])
        assert not {"default", "title"} & set(json.dumps(each).split('"')) - set(each["properties"])


@pytest.mark.parametrize(
    ("rejects", "rungs", "calls"),
    [
        ([], ["json_schema"], 1),
        (["json_schema"], ["json_schema", "json_object"], 2),
        (["json_schema", "json_object"], ["json_schema", "json_object", None], 3),
    ],
)
def test_the_ladder_goes_down_to_what_the_server_takes_and_stays_there(rejects, rungs, calls) -> None:
    with ChatServer(lambda _: QUERIES, rejects=rejects) as server:
        first, second = ask(server, discover(), discover())
    assert first.reply == second.reply == Queries(queries=QUERIES["queries"])
    formats = [seen.body.get("response_format", {}).get("type") for seen in server.seen]
    assert formats == [*rungs, rungs[-1]]
    assert ("JSON schema" in server.seen[-1].text) == (calls > 1)


def test_parameters_that_the_server_rejects_are_left_out_once_and_for_all() -> None:
    with ChatServer(lambda _: QUERIES, rejects=["max_tokens", "temperature", "seed"]) as server:
        ask(server, discover(), discover(), seed=1, max_tokens=50)
    assert len(server.seen) == 5
    for seen in server.seen[-2:]:
        assert seen.body["max_completion_tokens"] == 50
        assert not {"max_tokens", "temperature", "seed"} & set(seen.body)


@pytest.mark.parametrize(
    "text",
    [
        '{"queries": ["a b"]}',
        'Sure! Here you are:\n```json\n{"queries": ["a b"]}\n```\nAnything else?',
        '<think>{"queries": ["draft"]} or so</think>{"queries": ["a b"]}',
        'In the set {x, y} [sic] I choose {"queries": ["a b"]}, that is {"queries": ["a b"]}.',
        '["a b"]',
    ],
)
def test_json_is_found_in_text(text: str) -> None:
    assert parse_json(text, discover()) == Queries(queries=["a b"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a kite", "no JSON"),
        ('{"queries": ["a", "b', "breaks off"),
        ('{"outer": {"queries": ["a"]}, "more": ', "breaks off"),
        ('{"queries": "a"}', "queries: Input should be a valid list"),
        ('{"queries": ["a"]} or {"queries": ["b"]}', "2 different replies"),
        ('{"queries": []}', "no query at all"),
        ("[" * 5000, "nested too deeply"),
        ('{"queries": [' + "9" * 5000 + "]}", "thousands of digits"),
        ('{"queries": ["\\ud800"]}', "half a character"),
    ],
)
def test_what_is_wrong_with_a_reply_is_said_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(InvalidReply) as caught:
        parse_json(text, discover())
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pieces_of_broken_json_are_not_replies() -> None:
    with pytest.raises(InvalidReply):
        list(json_values('{"segments": [{"segment": 1, "score": 5}, {"segm'))


@pytest.mark.parametrize(
    ("said", "invalid"),
    [
        (refusing("I will not."), "refused: I will not."),
        (Behaviour(content="", finish_reason="content_filter"), "refused: the content filter"),
        (cut_off('{"queries": ["a ki'), "cut off after 3 tokens"),
        (Behaviour(content=None), "empty"),
        ('{"queries": ["a", "b', "breaks off"),
    ],
)
def test_a_reply_that_cannot_be_used_is_data_with_its_reason_and_its_cost(said, invalid: str) -> None:
    with ChatServer(lambda _: said) as server:
        [exchange] = ask(server, discover(), price={"input": 1.0})
    assert exchange.reply is None
    assert invalid in (exchange.invalid or "")
    assert exchange.usage.cost > 0
    assert len(server.seen) == 1


def test_half_a_character_does_not_travel() -> None:
    with ChatServer(lambda _: Behaviour(content="a \ud800 kite")) as server:
        [exchange] = ask(server, discover())
    assert exchange.raw == "a ? kite"


def test_wrong_segment_numbers_are_an_invalid_reply() -> None:
    wrong = {"segments": [{"segment": 9, "explanation": "", "score": 50}]}
    with ChatServer(lambda _: wrong) as server:
        [exchange] = ask(server, score())
    assert exchange.invalid == "segment 9 is not among those to score: [1, 2, 3]"


def test_a_repair_shows_the_model_its_reply_and_what_was_wrong() -> None:
    with ChatServer(in_turn("a kite, I think", QUERIES)) as server:
        [bad] = ask(server, discover())
        assert bad.invalid is not None
        again = replace(discover(), attempt=1, complaint=bad.invalid, bad_reply=bad.raw)
        [good] = ask(server, again)
    assert good.reply == Queries(queries=QUERIES["queries"])
    opening, reply, wish = server.seen[1].body["messages"]
    assert opening == server.seen[0].body["messages"][0]
    assert reply == {"role": "assistant", "content": "a kite, I think"}
    assert "there is no JSON in it" in wish["content"]
    assert '"queries"' in wish["content"]


def test_usage_and_cost_come_from_the_reply_and_the_roles_price() -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    said = Behaviour(content=json.dumps(QUERIES), usage=usage)
    with ChatServer(lambda _: said) as server:
        [exchange] = ask(server, discover(), price={"input": 2.0, "cached_input": 0.5, "output": 10.0})
    assert (exchange.usage.input_tokens, exchange.usage.output_tokens, exchange.usage.cached_tokens) == (1000, 100, 400)
    assert exchange.usage.cost == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6)
    assert exchange.seconds > 0


def test_text_in_parts_is_put_together_without_the_thoughts() -> None:
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": '{"queries":'},
        {"type": "text", "text": ' ["a"]}'},
    ]
    sent = {"choices": [{"index": 0, "message": {"role": "assistant", "content": parts}, "finish_reason": "stop"}]}
    with ChatServer(lambda _: Behaviour(body=sent)) as server:
        [exchange] = ask(server, discover())
    assert exchange.reply == Queries(queries=["a"])


def test_a_server_that_counts_no_tokens_is_no_error() -> None:
    with ChatServer(lambda _: Behaviour(content=json.dumps(QUERIES), usage={})) as server:
        [exchange] = ask(server, discover())
    assert exchange.reply is not None
    assert exchange.usage.input_tokens == 0


def test_tokens_below_none_are_none() -> None:
    told = {"prompt_tokens": -5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": -2}}
    completion = parse_completion({"choices": [{"message": {"content": "{}"}}], "usage": told})
    assert (completion.input_tokens, completion.output_tokens, completion.cached_tokens) == (0, 7, 0)
