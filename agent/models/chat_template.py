"""A conversation as the tokens that a causal language model reads, piece by piece.

A piece once written stays as it is: what a model said keeps the very tokens that it chose, and what it is told
after that is appended. Rendering the whole conversation anew each turn would not do for training, since a text
may be cut into other tokens than it was made of, and some templates leave out what was thought in earlier turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.models.chat_messages import Message

_SAID = "\u2420said\u2420"
"""Stands for what the model said while the template is asked what it puts around that."""


def conversation_tokens(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Messages of a user and an assistant in turn, up to where the assistant speaks next."""
    tokens: list[int] = []
    for message in messages:
        text = str(message["content"])
        if not tokens:
            tokens += first_tokens(tokenizer, text)
        elif message["role"] == "assistant":
            tokens += said_tokens(tokenizer, text)
        else:
            tokens += told_tokens(tokenizer, text, tokens)
    return tokens


def first_tokens(tokenizer: Any, text: str) -> list[int]:
    """The first message, up to where the model speaks."""
    text = without_control_tokens(tokenizer, text)
    if not tokenizer.chat_template:
        return list(tokenizer(f"{text}\n\n")["input_ids"])
    messages = [{"role": "user", "content": text}]
    return list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))


def said_tokens(tokenizer: Any, text: str) -> list[int]:
    """What the model said, where its own tokens are not at hand."""
    return list(tokenizer(without_control_tokens(tokenizer, text), add_special_tokens=False)["input_ids"])


def told_tokens(tokenizer: Any, text: str, before: Sequence[int]) -> list[int]:
    """What the model is told after it spoke, from the end of its turn to the beginning of the next.

    `before` are the tokens so far: an end of turn that the model wrote itself is not written again.
    """
    text = without_control_tokens(tokenizer, text)
    if tokenizer.chat_template:
        messages = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": _SAID},
            {"role": "user", "content": text},
        ]
        whole = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        text = whole.partition(_SAID)[2]
    else:
        text = f"\n\n{text}\n\n"
    tokens = list(tokenizer(text, add_special_tokens=False)["input_ids"])
    return tokens[1:] if before and tokens[:1] == [before[-1]] else tokens


def without_control_tokens(tokenizer: Any, text: str) -> str:
    """The text with control tokens broken up: a subtitle must not end the turn that quotes it."""
    for token in tokenizer.all_special_tokens:
        if token in text:
            text = text.replace(token, f"{token[:1]} {token[1:]}")
    return text
