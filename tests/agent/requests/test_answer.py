"""Requests for the answer: which replies are impossible, and which option a text without JSON names, if one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.reply_parser import parse_reply
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Video
from kinodex.agent.requests.answer import AnswerNotes, Conclusion, Guess, chosen_option
from kinodex.agent.requests.judge_answer import Verdict
from kinodex.agent.requests.refusals import check_not_refused
from kinodex.agent.variants.kino.requests import ChooseStep
from kinodex.agent.variants.longvideoagent.requests import ChooseAction
from kinodex.agent.variants.videoseek.step_requests import Act, Limits

VIDEO = Video("a" * 32, "kites", 0.0, 60.0)
CHOICE = Question("What colour is the kite?", ("red", "dark blue"))
OPEN = Question("What happens?")


def guess(question: Question) -> Guess:
    return Guess(question=question, videos=(VIDEO,))


def answer(**values: object) -> Conclusion:
    return Conclusion.model_validate({"action": "answer", **values})


def test_an_answer_that_cannot_be_one_is_refused_and_a_word_for_nothing_is_none() -> None:
    refused: list[tuple[Question, dict[str, Any], str]] = [
        (CHOICE, {"option": "C"}, "'C' names no option; write one letter, from A to B"),
        (CHOICE, {"answer": "green"}, "'green' names no option"),
        (OPEN, {"answer": "  "}, "the answer is empty; say it in a few words"),
        (OPEN, {"option": "A"}, "the answer is empty"),
        (OPEN, {"answer": "null"}, "'null' is no answer; say it in a few words"),
    ]
    for question, values, wrong in refused:
        with pytest.raises(InvalidReply, match=wrong):
            guess(question).check(answer(**values))
    for reply in BLANK_REPLIES:
        for blank in ('"null"', '"N/A"', '"n/a."', '"(null)"', '" "', "null"):
            parsed, problem = parse_reply(reply % blank, guess(OPEN))
            assert parsed is None and problem and problem.endswith("say it in a few words"), (reply, blank)
        for said in ("None", "none of them", "Unknown", "Nothing.", "null and void", "0"):  # it may be true
            parsed, problem = parse_reply(reply % json.dumps(said), guess(OPEN))
            assert problem is None and parsed and parsed.answer == said, (reply, said)
    acting = Act(question=OPEN, videos=(VIDEO,), known=(), limits=Limits(2), steps=3, turns=())
    assert parse_reply('{"tool": "answer", "sufficient": true, "answer": "N/A"}', acting)[0] is None
    turn = ChooseAction(question=OPEN, videos=(VIDEO,), clips=(), steps=3, vision=True, turns=())
    assert parse_reply("<think>Hm.</think><answer>null</answer>", turn)[0] is None
    assert parse_reply("<think>Hm.</think><answer>None</answer>", turn)[0] is not None


BLANK_REPLIES = [
    '{"reasoning": "Nothing shows it.", "action": "answer", "option": null, "answer": %s, "evidence": []}',
    'The frames show no kite.\n```json\n{"action": "answer", "answer": %s}\n```',
    '{"answer": %s, "evidence": [1]}',
]


COLOURS = ("red", "dark blue", "blue", "green")


# Refusals in words are no descriptions; descriptions of sorry people are.


def test_refusals_are_refused_and_what_is_seen_is_none() -> None:
    for text in (
        "I'm sorry, but I can't help with identifying people in images.",
        "I’m sorry, I can’t assist with that.",
        "Sorry, I cannot describe this picture.",
        "I cannot assist with that request.",
        "As an AI language model, I do not see images.",
        "I am unable to view the frames.",
        "We are not able to process this.",
        '"I won\'t describe this."',
        "Unfortunately, the picture is too blurred for me.",
        "Well, I must respectfully decline.",
        "No image was provided.",
        "This content violates the policy.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "Je suis désolé, je ne peux pas décrire cette image.",
        "Lo siento, no puedo ayudar con eso.",
        "Desculpe, não consigo ver a imagem.",
        "Mi dispiace, ma non posso.",
        "Извините, я не могу это описать.",
        "很抱歉，我无法描述这张图片。",
        "申し訳ありませんが、説明できません。",
        "죄송합니다. 설명할 수 없습니다.",
    ):
        with pytest.raises(InvalidReply, match="refusal"):
            check_not_refused(text)
    for text in (
        *("A sorry-looking dog sits in the rain.", "A man holds a sign: I'm sorry.", "In the ice a seal looks up."),
        *("I see a red kite over a desert.", "A woman cannot open a door.", "As an aircraft lands, people wave."),
        *("As a language teacher writes, pupils read.", "Просторная комната с окном."),
        *("Ein Mann kann die Tür nicht öffnen.", "The picture frame hangs beside a clock."),
    ):
        check_not_refused(text)


def test_an_option_is_named_by_its_letter_or_its_words() -> None:
    letters = Question("Which letter is on the sign?", ("B", "C", "A"))
    named: list[tuple[Question, dict[str, Any], int]] = [
        (CHOICE, {"option": "B"}, 1),
        (CHOICE, {"option": "dark blue"}, 1),
        (CHOICE, {"option": "(a)", "answer": "nonsense"}, 0),
        (CHOICE, {"option": None, "answer": "Red."}, 0),
        (letters, {"option": "A"}, 0),
        (letters, {"option": "(b)"}, 1),
        (letters, {"option": None, "answer": "A"}, 2),
    ]
    for question, values, index in named:
        reply = answer(**values)
        guess(question).check(reply)
        assert chosen_option(question, reply) == index, (values, index)


def test_a_reply_in_words_counts_where_it_names_an_option_and_json_goes_before_it() -> None:
    choose = AnswerNotes(question=Question("What colour?", COLOURS), videos=(), notes=())
    explore = ChooseStep(question=choose.question, videos=(), candidates=(), frames=())
    asked: list[Request[Any]] = [choose, explore, replace(explore, must_answer=True)]
    for text in ("The kite is seen in frame 2.\n**Answer:** B", "B", "dark blue"):
        for request in asked:
            reply, problem = parse_reply(f"<think>C? {{</think>{text}", request)
            assert (reply and reply.action, reply and reply.option, problem) == ("answer", "B", None), (request, text)
    for text in ("A man walks", "I cannot say", "B or C", "The best answer is (B)."):
        assert all(parse_reply(text, request)[0] is None for request in asked[:2]), text
    assert parse_reply("Next, segment 3.\nAnswer: B", explore)[0] is None
    said = 'Answer: B {"action": "answer", "option": "C", "answer": "blue", "evidence": []}'
    reply, _ = parse_reply(said, choose)
    assert reply and reply.option == "C"
    for broken in ('{"action": "dance"}', '{"action": "answer", "opt'):
        assert parse_reply(f"{broken}\nAnswer: B", choose)[0] is None


def test_a_score_may_come_with_a_reason_or_alone_and_is_on_the_scale() -> None:
    replies: list[Any] = [{"reason": "half", "score": 2}, {"score": "2"}, 2, "2/3"]
    assert [Verdict.model_validate(reply).score for reply in replies] == [2] * 4
    for score in (-1, 4, "none", None):
        with pytest.raises(ValueError, match="score"):
            Verdict.model_validate({"reason": "", "score": score})


def test_each_reply_of_the_table_has_its_right_reading() -> None:
    path = Path(__file__).parents[2] / "data" / "option_replies.jsonl"
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        question = Question("What is seen?", tuple(row["options"]))
        reply, _ = parse_reply(row["reply"], AnswerNotes(question=question, videos=(), notes=()))
        option = None if reply is None else chosen_option(question, reply)
        assert (None if option is None else question.lettered[option][0]) == row["option"], row
