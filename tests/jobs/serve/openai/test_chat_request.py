"""Requests that ask for what cannot be had here are refused; settings of sampling are taken."""

from __future__ import annotations

from typing import Any

import pytest

from kinodex.web.openai_chat import ChatRequest, RequestRefused, check_supported

LEAST = {"model": "m", "messages": [{"role": "user", "content": "Who?"}]}
TAKEN = {
    "temperature": 0,
    "top_p": 0.5,
    "max_tokens": 16,
    "max_completion_tokens": 16,
    "stop": ["\n"],
    "seed": 1,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "logit_bias": {},
    "user": "me",
    "metadata": {},
    "n": 1,
    "logprobs": False,
    "tools": [],
    "response_format": {"type": "text"},
    "media_io_kwargs": {"video": {}},
}


def test_settings_that_mean_nothing_here_are_taken() -> None:
    body = ChatRequest.model_validate({**LEAST, **TAKEN})
    check_supported(body)
    assert body.kinodex.options is None and body.kinodex.reasoning


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"n": 2}, "n"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"functions": [{"name": "f"}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format"),
        ({"logprobs": True}, "logprobs"),
        ({"modalities": ["text", "audio"]}, "modalities"),
    ],
)
def test_what_the_reply_could_not_hold_is_refused(more: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestRefused, match=r"leave|answers are texts") as caught:
        check_supported(ChatRequest.model_validate({**LEAST, **more}))
    assert caught.value.param == param


def test_tools_that_may_not_be_called_do_no_harm() -> None:
    check_supported(ChatRequest.model_validate({**LEAST, "tools": [{"type": "function"}], "tool_choice": "none"}))
