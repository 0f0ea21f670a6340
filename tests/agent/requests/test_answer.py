"""Requests for the answer: which replies are impossible, and which option a text without JSON names, if one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.completion import parse_reply
from kinodex.agent.protocol import Question, Video
from kinodex.agent.requests.answer import (
    Conclusion,
    Guess,
    check_not_refused,
    named_option,
)

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


def test_the_real_options_of_egoschema_are_read(benchmarks: Path) -> None:
    for form in [
        "{words}",
        "The answer is: {words}",
        "Final answer: {words}",
        "{words} This is shown in frame 3.",
        '"{words}"',
        "{letter}. {words}",
        "({letter})",
        "Answer: {letter}",
        "I think the answer is {letter}: {words}",
    ]:
        rows = json.loads((benchmarks / "egoschema" / "subset_anno.json").read_text(encoding="utf-8")).values()
        wrong = []
        for row in rows:
            options = [row[f"option {number}"] for number in range(5)]
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
