"""Completions: what servers leave out, send in parts, or put in another place."""

from __future__ import annotations

import base64
import io
import json
import math
from dataclasses import replace
from typing import Any

import pytest
import regex
from PIL import Image

from kinodex.agent.errors import ContextSpent, InvalidReply
from kinodex.agent.models.contact_sheets import MAX_TILES, TooManyPictures, count_pictures, fit_pictures
from kinodex.agent.models.reply_parser import parse_json, parse_reply
from kinodex.agent.prompts.messages import user_message
from kinodex.agent.prompts.rendering import render
from kinodex.agent.prompts.shortening import fit_request, shorten_texts
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Turn
from kinodex.agent.protocol.videos import Video
from kinodex.agent.requests.answer import AnswerFrames, Guess
from kinodex.agent.requests.tree import Queries
from kinodex.agent.variants.longvideoagent.clips import Clip
from kinodex.agent.variants.longvideoagent.requests import ChooseAction
from tests.support.scripts import SCRIPTS
from tests.support.servers.chat_server import Behaviour, ChatServer, calling, failing, in_turn
from tests.support.servers.wire import ANSWER, GO, HOME, QUERIES, Walk, ask, decide, discover, frame


def test_text_in_parts_is_put_together_and_tokens_that_nobody_counts_are_estimated() -> None:
    thought = {"type": "thinking", "thinking": []}
    parts = [thought, {"type": "text", "text": '{"queries":'}, {"type": "text", "text": ' ["a"]}'}]
    uncounted: list[Any] = [
        {},
        None,
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": "many"},
        {"prompt_tokens": 10**400},
        {"prompt_tokens": 10**12},
        "no",
        [1],
    ]
    bodies = [{"choices": [{"message": {"content": parts}}], "usage": usage} for usage in uncounted]
    with ChatServer(in_turn(*(Behaviour(body=body) for body in bodies))) as server:
        exchanges = ask(server, *[discover()] * len(bodies), price={"input": 1_000_000.0})
    prompt = len(server.seen[0].text)
    for exchange, usage in zip(exchanges, uncounted, strict=True):
        assert exchange.reply == Queries(queries=["a"])
        assert (exchange.usage.input_tokens, exchange.usage.unknown_calls) == (0, 1), usage
        assert prompt / 5 < exchange.usage.estimated_tokens < prompt / 2, usage
        assert prompt / 5 < exchange.usage.cost < prompt / 2, usage


# Typed replies: schemas that are requested, completions, and replies parsed out of whatever a model writes.


def test_each_tool_is_a_function_with_its_arguments_and_one_call_is_wanted() -> None:
    with ChatServer(in_turn(calling(GO), *(said for said, _ in UNUSABLE))) as server:
        first, *others = ask(server, Walk(), *[Walk()] * len(UNUSABLE))
    assert (server.problems, first.reply, json.loads(first.raw)) == ([], HOME, GO)
    body = server.seen[0].body
    assert "response_format" not in body
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", False)
    go, stop = server.seen[0].tools.values()
    assert (go["name"], go["description"], go["strict"]) == ("go", "Walk somewhere.", True)
    assert list(go["parameters"]["properties"]) == ["where", "fast"]
    assert stop["parameters"]["properties"] == {}
    for exchange, (said, invalid) in zip(others, UNUSABLE, strict=True):
        assert exchange.reply is None and invalid in (exchange.invalid or ""), said


def test_json_is_found_in_text() -> None:
    for text in [
        '{"queries": ["a b"]}',
        'Sure! Here you are:\n```json\n{"queries": ["a b"]}\n```\nAnything else?',
        '<think>{"queries": ["draft"]} or so</think>{"queries": ["a b"]}',
        'In the set {x, y} [sic] I choose {"queries": ["a b"]}, that is {"queries": ["a b"]}.',
        '["a b"]',
    ]:
        assert parse_json(text, discover()) == Queries(queries=["a b"]), text


def test_what_is_wrong_with_a_reply_is_said_in_one_line_that_can_be_shown_again() -> None:
    for text, problem in (
        ("a kite", "no JSON"),
        ('{"queries": ["a", "b', "breaks off"),
        ('{"outer": {"queries": ["a"]}, "more": ', "breaks off"),
        ('{"queries": "a"}', "queries: Input should be a valid list"),
        ('{"queries": ["a"]} or {"queries": ["b"]}', "2 different replies"),
        ('{"queries": []}', "no query at all"),
        ("[" * 5000, "nested too deeply"),
        ('{"queries": [' + "9" * 5000 + "]}", "thousands of digits"),
        ('{"queries": ["\\ud800"]}', "half a character"),
    ):
        with pytest.raises(InvalidReply) as caught:
            parse_json(text, discover())
        assert problem in str(caught.value) and "\n" not in str(caught.value)
    reply, invalid = parse_reply(json.dumps({**ANSWER, "option": "9\n" * 5000, "answer": None}), decide())
    assert reply is None and invalid is not None and len(invalid) <= 400 and "\n" not in invalid


UNUSABLE: list[tuple[Behaviour | str, str]] = [
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
]


def test_a_repair_shows_the_model_its_reply_and_what_was_wrong() -> None:
    with ChatServer(in_turn("a kite, I think", QUERIES)) as server:
        [bad] = ask(server, discover())
        assert bad.invalid is not None
        again = replace(discover(), attempt=1, complaint=bad.invalid, bad_reply=bad.raw)
        [good] = ask(server, again)
        [thinker] = ask(server, discover(), reasoning=False)
    assert good.reply == thinker.reply == Queries(queries=QUERIES["queries"])
    opening, reply, wish = server.seen[1].body["messages"]
    assert opening == server.seen[0].body["messages"][0]
    assert reply == {"role": "assistant", "content": "a kite, I think"}
    assert "there is no JSON in it" in wish["content"] and '"queries"' in wish["content"]
    schemas = [seen.body["response_format"]["json_schema"]["schema"] for seen in server.seen]
    named = [["reasoning", "queries"]] * 2 + [["queries"]]
    assert [list(each["properties"]) for each in schemas] == named, "one that thinks before it writes gives no reasons"
    assert ["reasoning" in seen.text for seen in server.seen] == [True, True, False]


# Contact sheets: which frame stands on which tile.


def test_pictures_are_dealt_to_as_many_sheets_as_the_server_takes() -> None:
    for count, most, sheets in [(4, 1, 1), (8, 3, 3), (32, 2, 2), (3, 2, 1)]:
        shown = user_message("Look:", [frame(number) for number in range(1, count + 1)], None)
        fitted = fit_pictures([shown, {"role": "assistant", "content": "Well."}], most)
        assert (count_pictures(fitted.messages), fitted.sheets) == (most, sheets), count
        content: Any = fitted.messages[0]["content"]
        text = " ".join(part["text"] for part in content if "text" in part)
        assert text.startswith("Look: "), count
        named = [number for number in range(1, count + 1) if f"frame {number} at {number}.00 s" in text]
        assert len(named) == count <= most * MAX_TILES, count
        assert fitted.messages[1]["content"] == "Well.", count
    with pytest.raises(TooManyPictures):
        fit_pictures([user_message("Look:", [frame(number) for number in range(40)], None)], 2)


# Long requests in short contexts: which quoted words are shortened, in which order, and what never changes.


FILM = Video("a" * 32, "Film", 0.0, 600.0)
QUESTION = Question("Who opens the door?", ("he", "she"))
LINE = "one two three four five six seven eight nine ten "


def clip(number: int, words: int) -> Clip:
    start_s = 60.0 * number
    return Clip(number, FILM.video_id, start_s, start_s + 60.0, (LINE * 100)[:words].strip())


def choosing(*clips: Clip, turns: tuple[Turn, ...] = ()) -> ChooseAction:
    return ChooseAction(question=QUESTION, videos=(FILM,), clips=clips, steps=5, turns=turns)


def count(request) -> int:
    """Tokens as a tokenizer would count them that needs one for three characters."""
    return math.ceil((len(render(request)) + sum(len(turn.text) for turn in request.turns)) / 3)


def test_the_longest_texts_lose_first_and_keep_their_beginning_and_end_in_any_script() -> None:
    short, long = "it is short", "it begins " + LINE * 20 + "and ends"
    kept, cut = shorten_texts([short, long], 80)
    assert kept == short and cut.startswith("it begins one") and cut.endswith("and ends") and " … " in cut
    assert len(kept) + len(cut) <= 80
    for script in SCRIPTS:
        text = ("" if script.name in ("Thai", "Chinese", "Japanese") else " ").join(script.lines * 40)
        [cut] = shorten_texts([text], len(text) * 93 // 100)
        assert 0.85 * len(text) < len(cut) < 0.94 * len(text), script
        assert set(regex.findall(r"\X", cut)) <= {*regex.findall(r"\X", text), " ", "…"}, "a character was cut apart"


def test_a_request_is_fitted_and_its_question_stays() -> None:
    request = choosing(*(clip(number, 300 + 40 * number) for number in range(1, 41)))
    assert count(request) > 3_500
    for tokens in (400, 600, 1200, 2400):
        fitted = fit_request(request, tokens, count)
        assert tokens * 0.6 < count(fitted) <= tokens or len(fitted.clips) < 40, tokens
        assert count(fitted) <= max(tokens, 650), tokens
        assert QUESTION.text in render(fitted), tokens
        assert {each.number for each in fitted.clips} <= {each.number for each in request.clips}, tokens


def counted(body: dict) -> int:
    """Tokens as a server counts them whose tokenizer needs one for three characters."""
    return math.ceil(sum(len(str(message["content"])) for message in body["messages"]) / 3)


def short_of_context(limit: int, *, names_it: bool):
    """A server whose model holds `limit` tokens; it refuses what is longer in vLLM's words, or in few."""

    def reply(body):
        tokens = counted(body)
        if tokens + body["max_tokens"] <= limit:
            return "<answer>B</answer>"
        long = f"This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens"
        return failing(400, long if names_it else "The prompt is too long.", type="BadRequestError")

    return reply


LONG = choosing(*(clip(number, 250) for number in range(1, 41)))
"""Some 17,000 tokens of a master's prompt."""


def test_a_refusal_for_length_is_sent_again_with_shorter_words() -> None:
    for names_it in (True, False):
        with ChatServer(short_of_context(6_000, names_it=names_it)) as server:
            first, second = ask(server, LONG, LONG)
        assert [each.reply and each.reply.option for each in (first, second)] == ["B", "B"], names_it
        refused = [each for each in server.seen if counted(each.body) + each.body["max_tokens"] > 6_000]
        assert 1 <= len(refused) <= 8 and counted(server.seen[-1].body) > 1_500, names_it
        assert [each.body for each in server.seen[-2:]] == [server.seen[-1].body] * 2, "learnt, and the same again"
        assert server.problems == [], names_it
    with ChatServer(short_of_context(60, names_it=True)) as server, pytest.raises(ContextSpent, match="longer than"):
        ask(server, Guess(question=QUESTION, videos=(FILM,)))
    assert len(server.seen) == 1, "what cannot be shortened"


def counting_pixels(limit: int):
    """A server whose model holds `limit` tokens, and counts more for large pictures than the estimate: 200 pixels."""

    def reply(body):
        parts = body["messages"][0]["content"]
        tokens = sum(len(part["text"]) // 4 for part in parts if part["type"] == "text")
        for part in parts:
            if part["type"] == "image_url":
                jpeg = base64.b64decode(part["image_url"]["url"].partition(",")[2])
                tokens += math.prod(Image.open(io.BytesIO(jpeg)).size) // 200
        if tokens + body["max_tokens"] <= limit:
            return '{"reasoning": "", "action": "answer", "option": "B", "answer": null, "evidence": [18]}'
        named = f"This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens"
        return failing(400, named, type="BadRequestError")

    return reply


@pytest.mark.slow
def test_a_short_context_gets_shorter_replies_then_smaller_pictures_then_fewer() -> None:
    """8,192 tokens, a reply of 4,096 and 18 pictures ended a search without an answer."""
    shown = tuple(replace(frame(at, size=(512, 288)), label=at + 1) for at in range(18))
    request = AnswerFrames(question=QUESTION, videos=(FILM,), frames=shown)
    for limit, frames in ((20_000, 18), (8_192, 18), (4_096, 10), (1_900, 6)):
        with ChatServer(counting_pixels(limit)) as server:
            first, second = ask(server, request, request)
        assert first.reply and (first.reply.option, first.reply.evidence) == ("B", [18])
        sent = [part for part in server.seen[-1].body["messages"][0]["content"] if part["type"] == "image_url"]
        assert len(sent) == 18 - second.usage.left_out_frames == frames
        assert len(server.seen) <= 14 and server.problems == [], limit
