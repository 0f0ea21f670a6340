"""Typed replies: schemas that are requested, completions, and replies parsed out of whatever a model writes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.completion import json_values, parse_json, parse_reply
from kinodex.agent.replies import strict_schema
from kinodex.agent.requests.tree import Decision, Queries, SegmentScores
from tests.support.servers.chat_server import Behaviour, ChatServer, calling, in_turn
from tests.support.servers.wire import ANSWER, GO, HOME, QUERIES, Walk, ask, decide, discover, score


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


def test_each_tool_is_a_function_with_its_arguments_and_one_call_is_wanted() -> None:
    with ChatServer(lambda _: calling(GO)) as server:
        [exchange] = ask(server, Walk())
    assert server.problems == []
    assert exchange.reply == HOME
    assert json.loads(exchange.raw) == GO
    body = server.seen[0].body
    assert "response_format" not in body
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", False)
    go, stop = server.seen[0].tools.values()
    assert (go["name"], go["description"], go["strict"]) == ("go", "Walk somewhere.", True)
    assert list(go["parameters"]["properties"]) == ["where", "fast"]
    assert stop["parameters"]["properties"] == {}


def test_other_requests_offer_no_tools() -> None:
    with ChatServer(lambda _: {"queries": ["a"]}) as server:
        ask(server, discover())
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(server.seen[0].body)


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


def test_wrong_segment_numbers_are_an_invalid_reply() -> None:
    wrong = {"segments": [{"segment": 9, "explanation": "", "score": 50}]}
    with ChatServer(lambda _: wrong) as server:
        [exchange] = ask(server, score())
    assert exchange.invalid == "there is no segment 9; the numbers are 1 to 3"


@pytest.mark.parametrize("text", [json.dumps(GO), f"I go home.\n```json\n{json.dumps(GO)}\n```"])
def test_without_a_call_the_text_is_read(text: str) -> None:
    with ChatServer(lambda _: text) as server:
        [exchange] = ask(server, Walk())
    assert exchange.reply == HOME


@pytest.mark.parametrize(
    ("said", "invalid"),
    [
        (calling(GO, {"tool": "stop"}), "it holds 2 calls of tools; give one"),
        (calling(GO, GO), "it holds 2 calls of tools; give one"),
        (calling({"tool": "fly"}), "tool: Input should be 'go' or 'stop'"),
        (calling({"tool": "go"}), "go where?"),
        (calling({**GO, "fast": "very"}), "fast: Input should be a valid boolean"),
        (Behaviour(calls=(("go", '{"where": "ho'),)), "breaks off"),
        (Behaviour(calls=(("stop", '{"why": '),)), "breaks off"),
        (Behaviour(calls=(("stop", "[1]"),)), "valid dictionary"),
        (Behaviour(calls=(("stop", "now"),)), "there is no JSON in it"),
        (Behaviour(calls=(("stop", '{"a": ' + "[" * 3000),)), "nested too deeply"),
        (Behaviour(calls=(("", "{}"),)), "tool: Input should be 'go' or 'stop'"),
        ("I would rather stay.", "there is no JSON in it"),
        ("", "empty"),
    ],
)
def test_a_call_that_cannot_be_used_is_data_with_its_reason(said: Behaviour | str, invalid: str) -> None:
    with ChatServer(lambda _: said) as server:
        [exchange] = ask(server, Walk())
    assert exchange.reply is None
    assert invalid in (exchange.invalid or "")


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


def test_a_repair_shows_the_call_and_asks_for_one_call() -> None:
    with ChatServer(in_turn(calling(GO, {"tool": "stop"}), calling(GO))) as server:
        [bad] = ask(server, Walk())
        [good] = ask(server, replace(Walk(), attempt=1, complaint=bad.invalid or "", bad_reply=bad.raw))
    assert good.reply == HOME
    assert server.problems == []
    _, reply, wish = server.seen[1].body["messages"]
    assert reply == {"role": "assistant", "content": bad.raw}
    assert "give one" in wish["content"]
    assert "one call of one tool" in wish["content"]
    assert server.seen[1].tools


def test_a_model_that_thinks_before_it_writes_is_not_asked_for_its_reasons() -> None:
    with ChatServer(lambda _: QUERIES) as server:
        [exchange] = ask(server, discover(), reasoning=False)
        ask(server, discover())
    assert exchange.reply == Queries(queries=QUERIES["queries"])
    schemas = [seen.body["response_format"]["json_schema"]["schema"] for seen in server.seen]
    assert [list(each["properties"]) for each in schemas] == [["queries"], ["reasoning", "queries"]]
    assert ["reasoning" in seen.text for seen in server.seen] == [False, True]


def test_reasons_under_another_name_are_read_and_never_make_a_reply_invalid() -> None:
    for said in ({"thought": "late"}, {"Explanation": "late"}, {"rationale": ["late"]}, {"reasoning": "late"}):
        assert parse_json(json.dumps({**said, **QUERIES}), discover()) == Queries(
            reasoning="late", queries=QUERIES["queries"]
        )
    assert parse_json(json.dumps({"reasoning": {"step": 1}, **QUERIES}), discover()).reasoning == '{"step": 1}'


def test_two_replies_that_differ_in_their_reasons_alone_are_one() -> None:
    text = f"{json.dumps({'reasoning': 'a', **QUERIES})} or {json.dumps({'reasoning': 'b', **QUERIES})}"
    assert parse_json(text, discover()).queries == QUERIES["queries"]


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_of_json_is_refused(constant: str) -> None:
    with pytest.raises(InvalidReply, match=f"holds {constant}"):
        parse_json('{"segments": [{"segment": 1, "score": ' + constant + "}]}", score())


def test_a_complaint_is_one_line_that_can_be_shown_to_a_model_again() -> None:
    reply, invalid = parse_reply(json.dumps({**ANSWER, "option": "9\n" * 5000, "answer": None}), decide())
    assert reply is None and invalid is not None
    assert len(invalid) <= 400 and "\n" not in invalid
