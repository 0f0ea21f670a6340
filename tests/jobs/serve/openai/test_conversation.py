"""Messages of a request: the question, its pictures and videos, and the turns before it."""

from __future__ import annotations

from typing import Any

import pytest

from kinodex.agent.protocol import Earlier
from kinodex.web.openai_chat import CHARACTERS, EARLIER, ChatRequest, Conversation, RequestRefused, read_conversation

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def read(*messages: tuple[str, Any]) -> Conversation:
    turns = [{"role": role, "content": content} for role, content in messages]
    return read_conversation(ChatRequest.model_validate({"model": "m", "messages": turns}))


def test_the_last_turn_of_the_user_is_the_question() -> None:
    found = read(
        ("system", "You are a helpful assistant."),
        ("user", "Who comes in?"),
        ("assistant", "A man."),
        ("user", [PICTURE, {"type": "video_url", "video_url": {"url": "walk.mp4"}}]),
        ("user", [{"type": "text", "text": "Is this he?"}]),
    )
    assert (found.question, found.videos, found.instructions) == (
        "Is this he?",
        ("walk.mp4",),
        "You are a helpful assistant.",
    )
    assert found.pictures == ("data:image/png;base64,AA==",)
    assert found.earlier == (Earlier("Who comes in?", "A man."),)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "video_url", "video_url": {"url": "walk"}},
        {"type": "video_url", "video_url": "walk"},
        {"type": "input_video", "input_video": "walk"},
        {"type": "input_video", "input_video": {"data": "walk"}},
        {"type": "video", "video": "walk"},
        {"type": "file", "file": {"filename": "walk", "file_data": "data:video/mp4;base64,AA=="}},
        {"type": "file", "file": {"file_id": "walk"}},
        {"type": "input_file", "filename": "walk"},
    ],
)
def test_forms_in_which_a_video_is_named(part: dict[str, Any]) -> None:
    assert read(("user", [{"type": "text", "text": "Who?"}, part])).videos == ("walk",)


def test_a_conversation_is_known_again_by_its_turns() -> None:
    first = read(("system", "Be short."), ("user", "Who comes in?"))
    next_one = read(("user", "Who comes in? "), ("assistant", "A man.\n"), ("user", "And then?"))
    assert next_one.digest() == first.digest("A man.")
    assert next_one.digest() != first.digest("A woman.")
    assert first.digest() == read(("user", "Another?")).digest(), "nothing stands before a first question"


def test_only_the_last_turns_are_told() -> None:
    turns = [each for n in range(20) for each in (("user", f"q{n}"), ("assistant", f"a{n}"))]
    earlier = read(*turns, ("user", "last?")).earlier
    assert len(earlier) == EARLIER
    assert earlier[-1] == Earlier("q19", "a19")


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([("assistant", "Hello.")], "the last message has to be the user's"),
        ([("system", "Hello.")], "the last message has to be the user's"),
        ([("user", "x"), ("tool", "42"), ("user", "y")], "a message of a tool"),
        ([("user", [{"type": "input_audio", "input_audio": {}}])], "'input_audio'; parts are text"),
        ([("user", [{"type": "text"}])], "without a text"),
        ([("user", [{"type": "image_url", "image_url": {}}])], "without an address"),
        ([("user", "x" * (CHARACTERS + 1))], "more than 200,000 characters"),
    ],
)
def test_what_cannot_be_understood_is_refused(messages: list[tuple[str, Any]], says: str) -> None:
    with pytest.raises(RequestRefused, match=says):
        read(*messages)
