"""Second tries differ from the first, and a question that has to be answered ends with a letter."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.forced_choice import ChooseLetter
from kinodex.agent.models.reply_parser import parse_reply
from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.schema import WORDS
from kinodex.agent.requests.answer import AnswerRequest, Guess, chosen_option
from kinodex.agent.requests.tree import Decide
from kinodex.agent.videos.environment import Environment
from tests.agent.test_answer import SEARCHING, gives_up
from tests.support.libraries.agent_library import explorer
from tests.support.runs.kite_runs import asked
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.wire import QUERIES, QUESTION, VIDEO, ask, discover

NONSENSE = "I would rather not say."


def mute_but_for_a_letter(request: Request[Any]) -> Any:
    """A model none of whose answers can be used until it is asked for a letter alone."""
    if isinstance(request, ChooseLetter):
        return {"option": "B"}
    return NONSENSE if isinstance(request, Decide | AnswerRequest) else gives_up(request)


@pytest.mark.parametrize("name", ["eea", "vca", "videoseek", "longvideoagent"])
def test_a_question_that_has_to_be_answered_ends_with_a_letter(kites: Environment, name: str) -> None:
    agent, settings = SEARCHING[name]
    for force_choice, ending in ((True, ("answered", 1)), (False, ("invalid", None))):
        rules = AnswerRules(force_choice=force_choice)
        found = asked(kites, mute_but_for_a_letter, agent, rounds=3, settings=settings, rules=rules)
        if ending[1] is None and found.answer.status == "insufficient_evidence":
            continue
        assert (found.answer.status, found.answer.option) == ending, name
        assert len(found.asked(ChooseLetter)) == force_choice, name


def test_what_was_shown_before_is_shown_for_the_letter(kites: Environment) -> None:
    def script(request: Request[Any]) -> Any:
        match request:
            case ChooseLetter():
                return {"option": "A"}
            case Decide(must_answer=True):
                return NONSENSE
        return explorer(request)

    found = asked(kites, script, "eea", rounds=2, rules=AnswerRules(force_choice=True))
    [last] = found.asked(ChooseLetter)
    assert last.frames and {each.frame_no for each in last.frames} <= {
        each.frame_no for request in found.asked(Decide) for each in request.frames
    }
    assert found.answer.option == 0 and found.answer.evidence


def test_the_letter_is_an_enumeration_and_is_read_from_any_words_around_it() -> None:
    request = ChooseLetter(question=QUESTION, videos=(VIDEO,))
    assert request.schema()["properties"] == {
        "option": {"description": "letter of the chosen option", "type": "string", "enum": ["A", "B"]}
    }
    for said in ('{"option": "B"}', "B", "Therefore, the answer is B", "**B**. blue", "blue", "I'd say B, a blue kite"):
        reply, _ = parse_reply(said, request)
        assert reply is not None and chosen_option(QUESTION, reply) == 1, said
    for said in ("A or B", "none", "I cannot say", "A kite is seen."):
        assert parse_reply(said, request)[0] is None, said


def test_a_second_try_has_another_seed_and_is_warmer() -> None:
    second = replace(discover(), attempt=1, complaint="empty", bad_reply="{}")
    with ChatServer(lambda _: QUERIES) as server:
        ask(server, discover(), second, temperature=0.0)
        ask(server, discover(), second, temperature=0.0, seed=7)
    sent = [(each.body["temperature"], each.body.get("seed")) for each in server.seen]
    assert sent == [(0.0, None), (0.3, 1), (0.0, 7), (0.3, 8)]
    assert second.sampled_at(2.0) == 2.0 and replace(second, attempt=9).sampled_at(None) == 1.0


def test_a_question_with_options_asks_for_the_letter_alone_and_an_open_one_for_words() -> None:
    guess = Guess(question=QUESTION, videos=(VIDEO,))
    keys = list(guess.schema()["properties"])
    assert "option" in keys and "answer" not in keys
    free = replace(guess, question=replace(QUESTION, options=()))
    keys = list(free.schema()["properties"])
    assert "answer" in keys and "option" not in keys
    reply, problem = parse_reply('{"action": "answer", "option": "A", "answer": "blue", "evidence": []}', guess)
    assert problem is None and reply is not None and chosen_option(QUESTION, reply) == 0


def test_the_example_in_a_prompt_sent_back_is_no_reply() -> None:
    guess = Guess(question=QUESTION, videos=(VIDEO,))
    copied = json.dumps({"reasoning": WORDS, "action": "answer", "option": "A", "evidence": []})
    reply, problem = parse_reply(copied, guess)
    assert reply is None and problem is not None and "repeats the form" in problem
