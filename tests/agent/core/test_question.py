"""Questions, the replies that are accepted, and those that are refused with a reason."""

from __future__ import annotations

import pytest

from agent.core.question import Question
from agent.errors import BadQuestion

COLOURS = Question("What colour is the kite?", ("red", "dark blue", "green"))


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", (), "question is empty"),
        (" \n", ("a", "b"), "question is empty"),
        ("What?", ("only",), "got 1 option; .*2 to 26"),
        ("What?", tuple(f"option {n}" for n in range(200)), "got 200 options; .*2 to 26"),
        ("What?", ("red", " "), "an option is empty"),
        ("What?", ("red", "blue", "RED"), "'red' is given more than once"),
        ("What is \ud83d?", (), r"holds '.ud83d', which is half a character"),
        ("What?", ("red", "blue \udcff"), r"holds '.udcff', which is half a character"),
    ],
)
def test_questions_that_cannot_be_asked(text, options, said):
    with pytest.raises(BadQuestion, match=said) as error:
        Question(text, options)
    assert "\n" not in str(error.value)


def test_open_ended_and_the_most_options_are_fine():
    assert Question("What?").lettered == ()
    assert Question("What?", tuple(f"option {n}" for n in range(26))).lettered[-1] == ("Z", "option 25")


@pytest.mark.parametrize(
    ("said", "option"),
    [
        ("B", 1),
        ("b", 1),
        ("(B)", 1),
        ("B. dark blue", 1),
        ("Answer: B", 1),
        ("The answer is C.", 2),
        ("Dark blue.", 1),
        ("D", None),
        ("I think it is red", 0),
        ("I think it is not red", None),
        ("A kite", None),
        ("", None),
        ("Green", 2),
    ],
)
def test_an_option_is_named_by_letter_or_words(said, option):
    assert COLOURS.option_index(said) == option


def test_words_win_over_letters():
    assert Question("Which grade?", ("B", "A")).option_index("A") == 1
