"""Long requests in short contexts: which quoted words are shortened, in which order, and what never changes."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest
import regex

from kinodex.agent.errors import ContextSpent
from kinodex.agent.models.openai_model import (
    OpenAIModel,
    fit_context,
    fit_request,
    quoted_characters,
    shorten_request,
    shorten_texts,
)
from kinodex.agent.models.roles import Role
from kinodex.agent.prompts import render
from kinodex.agent.protocol import Note, Question, Turn, Video
from kinodex.agent.requests.answer import AnswerNotes, Guess
from kinodex.agent.variants.longvideoagent_requests import ChooseAction, Clip
from tests.support.scripts import SCRIPTS, Script
from tests.support.servers.chat_server import ChatServer, failing

FILM = Video("a" * 32, "Film", 0.0, 600.0)
QUESTION = Question("Who opens the door?", ("he", "she"))
LINE = "one two three four five six seven eight nine ten "


def clip(number: int, words: int, seen: str = "") -> Clip:
    start_s = 60.0 * number
    return Clip(number, FILM.video_id, start_s, start_s + 60.0, (LINE * 100)[:words].strip(), "transcript", seen)


def choosing(*clips: Clip, turns: tuple[Turn, ...] = ()) -> ChooseAction:
    return ChooseAction(question=QUESTION, videos=(FILM,), clips=clips, steps=5, turns=turns)


def count(request) -> int:
    """Tokens as a tokenizer would count them that needs one for three characters."""
    return math.ceil((len(render(request)) + sum(len(turn.text) for turn in request.turns)) / 3)


def test_the_longest_texts_lose_first_and_keep_their_beginning_and_end():
    short, long = "it is short", "it begins " + LINE * 20 + "and ends"
    kept, cut = shorten_texts([short, long], 80)
    assert kept == short
    assert cut.startswith("it begins one") and cut.endswith("and ends")
    assert " … " in cut
    assert len(kept) + len(cut) <= 80


@pytest.mark.parametrize("characters", [0, 1, 5, 50, 500, 5000])
def test_texts_are_never_longer_than_allowed_nor_lost(characters):
    texts = [LINE * 3, "", "door", LINE * 30]
    shorter = shorten_texts(texts, characters)
    assert sum(map(len, shorter)) <= max(characters, 3)
    assert [bool(text) for text in shorter] == [True, False, True, True]
    assert shorter == texts or sum(map(len, texts)) > characters


def test_captions_in_gaps_go_before_words_and_words_before_the_conversation():
    located = Turn("user", "Located: " + LINE * 10)
    request = choosing(clip(1, 900, "a red kite " * 30), clip(2, 400), turns=(Turn("assistant", "<answer>"), located))
    first = shorten_request(request, 200)
    assert len(first.clips[0].seen) <= 130
    assert [each.text for each in first.clips] == [each.text for each in request.clips]
    second = shorten_request(request, 800)
    assert second.clips[0].seen == "…"
    assert len(second.clips[0].text) < 450
    assert second.clips[1] == request.clips[1]
    assert second.turns == request.turns
    last = shorten_request(request, 2_000)
    assert last.turns[0] == request.turns[0]
    assert len(last.turns[1].text) < len(located.text)


def test_the_table_of_contents_goes_first():
    chapters = tuple(Note(FILM.video_id, 60.0 * n, 60.0 * n + 60, "scene", f"Scene {n}: {LINE}") for n in range(9))
    request = replace(choosing(clip(1, 900, "a red kite " * 30)), chapters=chapters)
    first = shorten_request(request, 200)
    assert first.clips == request.clips
    assert all(each.text.startswith(f"Scene {n}") for n, each in enumerate(first.chapters))
    assert sum(len(each.text) for each in first.chapters) <= sum(len(each.text) for each in chapters) - 200
    assert len(shorten_request(request, 800).clips[0].seen) < 330


@pytest.mark.parametrize("tokens", [400, 600, 1200, 2400])
def test_a_request_is_fitted_and_its_question_stays(tokens):
    request = choosing(*(clip(number, 300 + 40 * number) for number in range(1, 41)))
    assert count(request) > 3_500
    fitted = fit_request(request, tokens, count)
    assert tokens * 0.6 < count(fitted) <= tokens or len(fitted.clips) < 40
    assert count(fitted) <= max(tokens, 500)
    assert QUESTION.text in render(fitted)
    assert {each.number for each in fitted.clips} <= {each.number for each in request.clips}


def test_what_fits_is_left_as_it_is():
    request = choosing(clip(1, 300))
    assert fit_request(request, 10_000, count) is request
    assert fit_request(Guess(question=QUESTION, videos=(FILM,)), 1, count) == Guess(question=QUESTION, videos=(FILM,))


def test_notes_keep_their_numbers():
    notes = tuple(Note(FILM.video_id, 10.0 * n, 10.0 * n + 10, "caption", LINE * (n + 1)) for n in range(9))
    request = AnswerNotes(question=QUESTION, videos=(FILM,), notes=notes)
    fitted = fit_request(request, 500, count)
    assert count(fitted) <= 500
    assert [note.start_s for note in fitted.notes] == [note.start_s for note in notes]
    assert all(note.text for note in fitted.notes)
    assert quoted_characters(request) == sum(len(note.text) for note in notes)


def test_the_first_message_of_a_conversation_stays_the_same_from_turn_to_turn():
    request = choosing(*(clip(number, 500) for number in range(1, 21)))
    turns = (Turn("assistant", "<request_grounding>"), Turn("user", "Located: " + LINE * 6))
    first = fit_context(request, 2_000, 200, count)
    later = fit_context(replace(request, turns=turns), 2_000, 200, count)
    assert render(first) == render(later) != render(request)
    assert later.turns == turns
    full = fit_context(replace(request, turns=turns * 8), 2_000, 200, count)
    assert count(full) <= 1_800
    assert len(render(full)) < len(render(first))


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


def sent_over(server: ChatServer, *requests, **settings):
    async def asked():
        async with OpenAIModel(Role(base_url=server.base_url, model="tester", **settings)) as model:
            return [await model.ask(request) for request in requests]

    return asyncio.run(asked())


LONG = choosing(*(clip(number, 250) for number in range(1, 41)))
"""Some 17,000 tokens of a master's prompt."""


@pytest.mark.parametrize("names_it", [True, False])
def test_a_refusal_for_length_is_sent_again_with_shorter_words(names_it):
    with ChatServer(short_of_context(6_000, names_it=names_it)) as server:
        first, second = sent_over(server, LONG, LONG)
    assert (first.invalid, first.reply.option, second.reply.option) == (None, "B", "B")
    refused = [each for each in server.seen if counted(each.body) + each.body["max_tokens"] > 6_000]
    assert 1 <= len(refused) <= 8
    assert counted(server.seen[-1].body) > 1_500
    assert [each.body for each in server.seen[-2:]] == [server.seen[-1].body] * 2  # learnt, and the same again
    assert server.problems == []


def test_the_length_that_a_server_lists_is_kept_from_the_beginning():
    with ChatServer(short_of_context(6_000, names_it=True)) as server:
        server.model_facts = {"max_model_len": 6_000}
        (exchange,) = sent_over(server, LONG)
    assert exchange.reply is not None
    assert len(server.seen) <= 2


def test_the_length_in_a_roles_settings_is_kept_from_the_beginning():
    with ChatServer(lambda body: "<answer>B</answer>") as server:
        sent_over(server, LONG, context_tokens=4_000)
        sent_over(server, LONG)
    short, whole = (len(each.text) for each in server.seen)
    assert short < 4 * 3_000 < whole


def test_what_cannot_be_shortened_is_refused_with_what_to_do():
    with ChatServer(short_of_context(60, names_it=True)) as server, pytest.raises(ContextSpent, match="longer than"):
        sent_over(server, Guess(question=QUESTION, videos=(FILM,)))
    assert len(server.seen) == 1


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_text_of_any_script_keeps_what_fits(script: Script) -> None:
    text = ("" if script.name in ("Thai", "Chinese", "Japanese") else " ").join(script.lines * 40)
    [cut] = shorten_texts([text], len(text) * 93 // 100)
    assert 0.85 * len(text) < len(cut) < 0.94 * len(text)
    assert set(regex.findall(r"\X", cut)) <= {*regex.findall(r"\X", text), " ", "…"}, "a character was cut apart"
