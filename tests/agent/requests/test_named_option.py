"""The option that a text names: exactly, in a tag, or after "Answer:"; anything else names none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.agent.requests.named_option import named_option

COLOURS = ("red", "dark blue", "blue", "green")
A, B, C, D = range(4)


def test_an_option_is_read() -> None:
    read: dict[int, tuple[str, ...]] = {
        A: ("red", "RED.", '"Red"', "“A”", "（Ａ）", "a", "A) red", "<answer>\n(A) red\n</answer>", "Answer: Red."),
        B: (
            *("B", "b", "(B)", "[B]", "B.", "**B**", "`B`", "B. dark blue", "B) dark blue", "B: dark blue"),
            *("(b) dark blue.", "B - dark blue", "Dark  blue.", "<think>A or C?</think><answer>B</answer>"),
            *("Answer: B", "answer: b", "**Answer:** B. dark blue", "Answer:\nB"),
            "A is not seen. The answer is C? No.\nAnswer: B",
        ),
        C: ("<answer>A</answer> no, <answer> (C) </answer>", "Answer: A\nAnswer: C", "It is C.\n\nanswer : **C**"),
    }
    for option, texts in read.items():
        for text in texts:
            assert named_option(text, COLOURS) == option, (text, option)


def test_no_option_is_guessed() -> None:
    for text in (
        *("", "  ", "E", "(Z)", "A kite", "B or C", "A and D", "A, B and C", "not (B)", "It is not red", "B. red"),
        *("The answer is B.", "The answer: B", "Final answer: B", "I choose B", "The kite is red", "答案：B"),
        *("\\boxed{B}", "Answer: E", "Answer: B or C", "Answer: not B", "This is no answer: B"),
        "Answer: B, as frame 2 shows.",
        *("Answer: B\nOr perhaps C.", "<answer>B or C</answer>", "<answer></answer> B", "insufficient_evidence"),
        "(A) red (B) dark blue (C) blue (D) green",
        "A. red\nB. dark blue\nC. blue\nD. green",
    ):
        assert named_option(text, COLOURS) is None, text


def test_an_options_own_words_go_before_letters() -> None:
    wearer = ("C is cooking.", "C is doing laundry.", "A man talks to C.", "B")
    for text, option in {
        "C is cooking": 0,
        "A man talks to C.": 2,
        "C": 2,
        "B": 3,
        "A": 0,
        "A man talks": None,
    }.items():
        assert named_option(text, wearer) == option, text


@pytest.mark.slow
def test_the_real_options_of_egoschema_are_read(benchmarks: Path) -> None:
    """Those of each second question in the first form, of each sixteenth in the others."""
    held = json.loads((benchmarks / "egoschema" / "subset_anno.json").read_text(encoding="utf-8")).values()
    asked = [[row[f"option {number}"] for number in range(5)] for row in held]
    forms = ["{words}", "Answer: {words}", '"{words}"', "{letter}. {words}", "({letter})", "Answer: {letter}"]
    for form in [*forms, "So it is.\nAnswer: {letter}. {words}"]:
        for options in asked[:: 2 if form == "{words}" else 16]:
            for number, words in enumerate(options):
                text = form.format(words=words, letter="ABCDE"[number])
                named = named_option(text, options)
                assert named is not None and options[named] == words, text
