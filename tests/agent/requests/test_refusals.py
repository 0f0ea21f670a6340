"""Refusals in words are no descriptions; descriptions of sorry people are."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.requests.answer import check_not_refused


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
    ],
)
def test_refusals_are_refused(text: str) -> None:
    with pytest.raises(InvalidReply, match="refusal"):
        check_not_refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "A sorry-looking dog sits in the rain.",
        "A man holds a sign: I'm sorry.",
        "I see a red kite over a desert.",
        "In the ice a seal looks up.",
        "A woman cannot open a door.",
        "As an aircraft lands, people wave.",
    ],
)
def test_what_is_seen_is_no_refusal(text: str) -> None:
    check_not_refused(text)
