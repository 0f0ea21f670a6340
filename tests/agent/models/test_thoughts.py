"""Models that think before they write: whatever form their thoughts have, a reply is what stands after them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kinodex.agent.models.reply_parser import parse_reply, with_end
from kinodex.agent.protocol.videos import Video
from kinodex.agent.replies.thoughts import after_thought, in_one_form, is_thinking
from kinodex.agent.requests.tree import Queries
from kinodex.agent.variants.longvideoagent.requests import ChooseAction
from kinodex.agent.variants.longvideoagent.turns import ENDS
from tests.support.servers.chat_server import Behaviour, ChatServer, cut_off, in_turn
from tests.support.servers.wire import QUERIES, QUESTION, ask, discover

DRAFT = '{"queries": ["a draft"]}'
FORMS = [
    "<think>{}</think>",
    "<thinking>{}</thinking>",
    "<thought>{}</thought>",
    "<reasoning>{}</reasoning>",
    "<seed:think>{}</seed:think>",
    "[THINK]{}[/THINK]",
    "◁think▷{}◁/think▷",
    "<|begin_of_thought|>{}<|end_of_thought|>",
    "<|START_THINKING|>{}<|END_THINKING|>",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "{}</think>",
]


def turn() -> ChooseAction:
    return ChooseAction(question=QUESTION, videos=(Video("a" * 32, "kites", 0.0, 60.0),), clips=(), steps=5)


def thinking(
    thoughts: str, content: str | None = "", *, name: str = "reasoning_content", end: str = "stop"
) -> Behaviour:
    message = {"role": "assistant", "content": content, name: thoughts}
    usage = {"prompt_tokens": 700, "completion_tokens": 90}
    return Behaviour(body={"choices": [{"message": message, "finish_reason": end}], "usage": usage})


@pytest.mark.parametrize("form", FORMS)
def test_drafts_in_thoughts_are_no_replies_whatever_the_form(form: str) -> None:
    before = form.format(f"Perhaps {DRAFT}, or <answer>A</answer>?")
    reply, problem = parse_reply(f"{before}{json.dumps(QUERIES)}", discover())
    assert (reply, problem) == (Queries(queries=QUERIES["queries"]), None)
    action, problem = parse_reply(f"{before}<visual_query>the kite</visual_query>", turn())
    assert problem is None and action is not None and (action.action, action.query) == ("visual_query", "the kite")
    assert after_thought(before + "<|return|>" * ("channel" in form)) == ""


def test_thoughts_without_an_end_are_known_and_words_about_thinking_are_none() -> None:
    for text in ("<think>red or", "◁think▷red", "<|channel|>analysis<|message|>red", "[THINK]a[/THINK][THINK]b"):
        assert is_thinking(text), text
    for text in ("red", "<think>a</think>red", '{"a": "[THINK]"}', "a thought"):
        assert not is_thinking(text), text
    assert after_thought("red <think>or blue</think>") == "red"
    assert in_one_form("I think [it] is <red>") == "I think [it] is <red>"


def test_the_tag_that_was_opened_last_is_closed() -> None:
    assert with_end("The <answer> is not known. <visual_query>colour", ENDS).endswith("colour</visual_query>")
    assert with_end("<think>an <answer>?</think><request_grounding>a", ENDS).endswith("a</request_grounding>")
    for whole in ("<answer>A</answer>", "words", "<think>an <answer>?</think><visual_query>x</visual_query>"):
        assert with_end(whole, ENDS) == whole


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_a_reply_that_stands_among_the_thoughts_alone_is_read(name: str) -> None:
    said = f"I could say {DRAFT}. No: {json.dumps(QUERIES)}"
    with ChatServer(lambda _: thinking(said, None, name=name)) as server:
        [exchange] = ask(server, discover())
    assert exchange.reply == Queries(queries=QUERIES["queries"])
    with ChatServer(lambda _: thinking("Which? <visual_query>the kite</visual_query>", name=name)) as server:
        [exchange] = ask(server, turn())
    assert exchange.reply is not None and exchange.reply.query == "the kite"


@pytest.mark.parametrize("without", [thinking("Hm, well", None, end="length"), cut_off("<think>Hm, well"), cut_off("")])
def test_thoughts_that_take_all_tokens_are_given_more_once(without: Behaviour) -> None:
    with ChatServer(in_turn(without, QUERIES)) as server:
        first, second = ask(server, discover(), replace(discover(), attempt=1))
    assert first.reply is not None and second.reply is not None
    limits = [each.body["max_tokens"] for each in server.seen]
    assert limits[0] < limits[1] == limits[2], "what was learnt holds"
    assert first.usage.output_tokens > second.usage.output_tokens or not without.body, "both tries are charged"
    with ChatServer(lambda _: without) as server:
        [exchange] = ask(server, discover())
    assert len(server.seen) == 2 and "its thoughts took all of" in (exchange.invalid or "")
    with ChatServer(lambda _: without) as server:
        [exchange] = ask(server, discover(), max_tokens=500)
    assert "raise the role's max_tokens (500)" in (exchange.invalid or "")
    assert {each.body["max_tokens"] for each in server.seen} == {500}, "the user's own limit holds"


def test_texts_that_end_a_reply_are_not_sent_to_a_model_whose_thoughts_they_would_end() -> None:
    def reply(body: dict[str, Any]) -> Behaviour | str:
        if "stop" in body:
            return thinking("It may be <answer>A")
        return "<visual_query>the kite</visual_query>"

    replies: list[Callable[[dict[str, Any]], Any]] = [
        reply,
        lambda body: "<think>It may be <answer>A" if "stop" in body else "<answer>B</answer>",
    ]
    for each in replies:
        with ChatServer(each) as server:
            [exchange] = ask(server, turn())
        assert exchange.reply is not None and exchange.invalid is None
