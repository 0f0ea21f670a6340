"""Questions, the replies that are accepted, and those that are refused with a reason."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import BadQuestion
from kinodex.agent.protocol import Question

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
