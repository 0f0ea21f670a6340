"""Requests for the answer: which replies are impossible, and which option a text without JSON names, if one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.completion import parse_reply
from kinodex.agent.protocol import Question, Request, Video
from kinodex.agent.requests.answer import (
    AnswerNotes,
    Conclusion,
    Guess,
    check_not_refused,
    chosen_option,
    named_option,
)
from kinodex.agent.requests.describe import Verdict
from kinodex.agent.requests.tree import Decide
from kinodex.agent.variants.longvideoagent import ChooseAction
from kinodex.agent.variants.videoseek import Act, Limits

VIDEO = Video("a" * 32, "kites", 0.0, 60.0)
CHOICE = Question("What colour is the kite?", ("red", "dark blue"))
OPEN = Question("What happens?")


def guess(question: Question) -> Guess:
    return Guess(question=question, videos=(VIDEO,))


def answer(**values: object) -> Conclusion:
    return Conclusion.model_validate({"action": "answer", **values})


@pytest.mark.parametrize(
    ("question", "values", "problem"),
    [
        (CHOICE, {"option": "C"}, "'C' names no option; give a letter from A to B"),
        (CHOICE, {"answer": "green"}, "'green' names no option"),
        (OPEN, {"answer": "  "}, "the answer is empty; say it in a few words"),
        (OPEN, {"option": "A"}, "the answer is empty"),
        (OPEN, {"answer": "null"}, "'null' is no answer; say it in a few words"),
    ],
)
def test_an_answer_that_cannot_be_one_is_refused(question: Question, values: dict, problem: str) -> None:
    with pytest.raises(InvalidReply, match=problem):
        guess(question).check(answer(**values))


BLANK_REPLIES = [
    '{"reasoning": "Nothing shows it.", "action": "answer", "option": null, "answer": %s, "evidence": []}',
    'The frames show no kite.\n```json\n{"action": "answer", "answer": %s}\n```',
    '{"answer": %s, "evidence": [1]}',
]


def test_a_word_for_nothing_is_no_answer_to_an_open_question() -> None:
    for said in ['"null"', '"N/A"', '"n/a."', '"(null)"', '" "', "null"]:
        for reply in BLANK_REPLIES:
            parsed, problem = parse_reply(reply % said, guess(OPEN))
            assert parsed is None, (reply, said)
            assert problem and problem.endswith("say it in a few words"), (reply, said)


COLOURS = ("red", "dark blue", "blue", "green")
A, B, C, D = range(4)


def test_an_option_is_read() -> None:
    for text, option in [
        # the reply that was asked for
        ("B", B),
        ("b", B),
        ("(B)", B),
        ("[B]", B),
        ("B.", B),
        ("**B**", B),
        ("B. dark blue", B),
        ("B) dark blue", B),
        ("B: dark blue", B),
        ("B dark blue", B),
        ("(b) dark blue.", B),
        ("B - dark blue", B),
        ("Dark blue.", B),
        ('"green"', D),
        # tags
        ("<think>A or C?</think><answer>B</answer>", B),
        ("<answer>A</answer> no, <answer> (C) </answer>", C),
        (r"Hence \boxed{B}.", B),
        (r"\boxed{\text{D}}", D),
        # conclusions, of which the last counts
        ("The answer is C.", C),
        ("Answer: B", B),
        ("answer: b", B),
        ("Final answer - D", D),
        ("The best answer is (B) because the kite is seen in frame 3.", B),
        ("The best answer is B because (A) and (C) are never seen.", B),
        ("The correct answer is option D.", D),
        ("The correct option is: C", C),
        ("The answer to this question is most likely B", B),
        ("The answer would be A, as the kite is red.", A),
        ("The answer is A because it is red", A),
        ("I would go with C here.", C),
        ("I choose option D", D),
        ("I pick (a).", A),
        ("D is the correct answer.", D),
        ("(D) is correct.", D),
        ("B is the best option, although C is close.", B),
        ("The answer is A. Wait, frame 4 shows more: the answer is B.", B),
        ("(A) is unlikely, as nothing is red.\n(B) fits frame 2.\nTherefore the answer is (B).", B),
        ("A. The answer is C.", C),
        ("Let me think.\nThe kite is seen twice.\n**Answer:** C", C),
        # a line of its own
        ("The kite is over the sea; it looks dark.\n\nB", B),
        ("It flies in frame 2.\n(D) green", D),
        ("B\nThe kite is dark.", B),
        ("C. Because the kite in frame 2 has that colour.", C),
        ("C because of frame 2", C),
        ("A: the kite is that colour", A),
        # one letter, one option
        ("The frames point to (C) from what they show.", C),
        ("That leaves option D, I think.", D),
        ("I think it is red", A),
        ("The kite is dark blue in frame 2", B),
        ("It is blue in the frames", C),
    ]:
        assert named_option(text, COLOURS) == option, (text, option)


def test_no_option_is_guessed() -> None:
    for text in [
        "",
        "  ",
        "E",
        "(Z)",
        "The answer is E.",
        "A kite",
        "A kite flies over the sea",
        "I think so",
        "I am sure",
        "The answer is a kite",
        "The answer is A kite",
        "B or C",
        "The answer is B or C",
        "The answer is either A or B",
        "A and D",
        "A, B and C",
        "(A) red (B) dark blue (C) blue (D) green",
        "A. red\nB. dark blue\nC. blue\nD. green",
        "(A) is unlikely, (B) is possible",
        "not (B)",
        "The answer is not B",
        "Neither A nor B is correct",
        "It is not red",
        "It isn't red",
        "It is red or green",
        "I cannot tell whether it is red",
        "B. red",
        "insufficient_evidence",
        "The frames do not show the kite.",
        "It is a B-side",
        "vitamin C is in the orange",
        "redder than before",
    ]:
        assert named_option(text, COLOURS) is None, text


@pytest.mark.slow
def test_the_real_options_of_egoschema_are_read(benchmarks: Path) -> None:
    """All of them in the first form, those of each eighth question in the others."""
    held = json.loads((benchmarks / "egoschema" / "subset_anno.json").read_text(encoding="utf-8")).values()
    asked = [[row[f"option {number}"] for number in range(5)] for row in held]
    for form, every in {
        "{words}": 1,
        "The answer is: {words}": 8,
        "Final answer: {words}": 8,
        "{words} This is shown in frame 3.": 8,
        '"{words}"': 8,
        "{letter}. {words}": 8,
        "({letter})": 8,
        "Answer: {letter}": 8,
        "I think the answer is {letter}: {words}": 8,
    }.items():
        wrong = []
        for options in asked[::every]:
            for number, words in enumerate(options):
                text = form.format(words=words, letter="ABCDE"[number])
                named = named_option(text, options)
                if named is None or options[named] != words:
                    wrong.append(text)
        assert not wrong, form


# Refusals in words are no descriptions; descriptions of sorry people are.


@pytest.mark.parametrize(
    "text",
    [
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
    ],
)
def test_refusals_are_refused(text: str) -> None:
    with pytest.raises(InvalidReply, match="refusal"):
        check_not_refused(text)


def test_what_is_seen_is_no_refusal() -> None:
    for text in [
        "A sorry-looking dog sits in the rain.",
        "A man holds a sign: I'm sorry.",
        "I see a red kite over a desert.",
        "In the ice a seal looks up.",
        "A woman cannot open a door.",
        "As an aircraft lands, people wave.",
        "As a language teacher writes, pupils read.",
        "Просторная комната с окном.",
        "Ein Mann kann die Tür nicht öffnen.",
        "The picture frame hangs beside a clock.",
    ]:
        check_not_refused(text)


NAMED: list[tuple[dict[str, Any], int]] = [
    ({"option": "B"}, 1),
    ({"option": "dark blue"}, 1),
    ({"option": "(a)", "answer": "nonsense"}, 0),
    ({"option": None, "answer": "The kite is red."}, 0),
]


def test_an_option_is_named_by_its_letter_or_its_words() -> None:
    for values, index in NAMED:
        reply = answer(**values)
        guess(CHOICE).check(reply)
        assert chosen_option(CHOICE, reply) == index, (values, index)


def test_a_word_that_may_be_true_is_an_answer() -> None:
    for said in ["None", "none of them", "Unknown", "Nothing.", "null and void", "0"]:
        for reply in BLANK_REPLIES:
            parsed, problem = parse_reply(reply % json.dumps(said), guess(OPEN))
            assert problem is None, (reply, said)
            assert parsed and parsed.answer == said, (reply, said)


def test_the_other_ends_of_a_search_take_no_word_for_nothing_either() -> None:
    acting = Act(question=OPEN, videos=(VIDEO,), known=(), limits=Limits(2), steps=3, turns=())
    assert parse_reply('{"tool": "answer", "sufficient": true, "answer": "N/A"}', acting)[0] is None
    turn = ChooseAction(question=OPEN, videos=(VIDEO,), clips=(), steps=3, vision=True, turns=())
    assert parse_reply("<think>Hm.</think><answer>null</answer>", turn)[0] is None
    assert parse_reply("<think>Hm.</think><answer>None</answer>", turn)[0] is not None


DEEDS = ("a man walks", "a man runs", "nobody moves", "the dog sleeps")


def test_an_article_is_no_letter() -> None:
    for text, option in [
        ("A man walks", A),
        ("a man runs", B),
        ("In the film a man runs to the door.", B),
        ("A man sits", None),
        ("A man walks, then a man runs", None),
        ("A. a man walks", A),
        ("B. a man walks", None),
    ]:
        assert named_option(text, DEEDS) == option, (text, option)


def test_the_ninth_letter_is_read_where_it_can_only_be_one() -> None:
    for text in ["I", "I. nine", "The answer is I.", "The answer is (I)", "nine"]:
        options = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
        assert named_option(text, options) == 8, text


def test_the_speaker_is_no_letter() -> None:
    for text in ["I believe so", "The answer is I guess unknown"]:
        options = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
        assert named_option(text, options) is None, text


CHOOSE = AnswerNotes(question=Question("What colour?", COLOURS), videos=(), notes=())


EXPLORE = Decide(question=CHOOSE.question, videos=(), candidates=(), frames=())


ASKED: list[Request[Any]] = [CHOOSE, EXPLORE, replace(EXPLORE, must_answer=True)]


def test_a_reply_in_words_counts_where_it_names_an_option() -> None:
    for text in ["The best answer is (B) because of frame 2.", "B", "It says [1]: dark blue"]:
        for request_ in ASKED:
            reply, problem = parse_reply(f"<think>C? {{</think>{text}", request_)
            assert (reply and reply.action, reply and reply.option, problem) == ("answer", "B", None), (request_, text)


def test_other_words_are_no_reply() -> None:
    for text in ["A man walks", "I cannot say", "B or C", "Next, segment 3. Or the answer is B"]:
        for request_ in ASKED[:2]:
            if request_ is EXPLORE or "segment" not in text:
                assert parse_reply(text, request_)[0] is None, (request_, text)


def test_json_goes_before_the_words_around_it() -> None:
    text = 'The answer is (B). {"action": "answer", "option": "C", "answer": "blue", "evidence": []}'
    reply, _ = parse_reply(text, CHOOSE)
    assert reply and reply.option == "C"
    assert parse_reply('The answer is (B). {"action": "dance"}', CHOOSE)[0] is None
    assert parse_reply('The answer is (B). {"action": "answer", "opt', CHOOSE)[0] is None


WEARER = ("C is cooking.", "C is doing laundry.", "C cleans dishes, and does not cook.", "A man talks to C.")


def test_a_letter_that_begins_the_words_of_options_is_none() -> None:
    """EgoSchema calls the camera's wearer "C"."""
    for text, option in [
        ("C is cooking.", 0),
        ("The answer is: C is doing laundry.", 1),
        ("Final answer: c cleans dishes, and does not cook.", 2),
        ("C is doing laundry, as frame 3 shows.", 1),
        ("The best option is A man talks to C.", 3),
        ("B. C is doing laundry.", 1),
        ("C. C cleans dishes, and does not cook.", 2),
        ("The answer is C.", 2),
        ("C", 2),
        ("C is moving around a room.", None),
        ("C is cooking. C is doing laundry.", None),
    ]:
        assert named_option(text, WEARER) == option, (text, option)


def test_a_letter_in_the_field_for_a_letter_is_one() -> None:
    question = Question("Which letter is on the sign?", ("B", "C", "A"))
    assert chosen_option(question, answer(option="A")) == 0
    assert chosen_option(question, answer(option="(b)")) == 1
    assert chosen_option(question, answer(option=None, answer="A")) == 2


def test_a_score_may_come_with_a_reason_or_alone() -> None:
    for reply in [{"reason": "half", "score": 2}, {"score": "2"}, 2, "2/3"]:
        assert Verdict.model_validate(reply).score == 2, reply


@pytest.mark.parametrize("score", [-1, 4, "none", None])
def test_a_score_beyond_the_scale_is_no_verdict(score: object) -> None:
    with pytest.raises(ValueError, match="score"):
        Verdict.model_validate({"reason": "", "score": score})
