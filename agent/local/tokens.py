"""Tokens of a conversation, as a causal language model reads them, message by message.

The tokens of a message never change: a reply keeps those that the model chose, and the next message is appended.
Rendering the whole conversation again each turn would not do for training, since a text may be cut into other tokens
than it was made of, and some templates leave out the thoughts of earlier turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kinodex.agent.prompts.messages import Message

_REPLY = "\u2420said\u2420"
"""A placeholder for the reply, to find what the template puts around it."""


def conversation_tokens(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Tokens of alternating messages of user and assistant, up to where the assistant speaks next."""
    tokens: list[int] = []
    for message in messages:
        text = str(message["content"])
        if not tokens:
            tokens += first_tokens(tokenizer, text)
        elif message["role"] == "assistant":
            tokens += reply_tokens(tokenizer, text)
        else:
            tokens += message_tokens(tokenizer, text, tokens)
    return tokens


def first_tokens(tokenizer: Any, text: str) -> list[int]:
    """Tokens of the first message, up to where the model speaks."""
    text = without_control_tokens(tokenizer, text)
    if not tokenizer.chat_template:
        return list(tokenizer(f"{text}\n\n")["input_ids"])
    messages = [{"role": "user", "content": text}]
    return list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))


def opens_thinking(tokenizer: Any) -> bool:
    """Return True if the chat template begins each reply inside <think>, so that the model writes only its end."""
    if not tokenizer.chat_template:
        return False
    messages = [{"role": "user", "content": "?"}]
    prompt = str(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
    return prompt.rstrip().endswith("<think>")


def reply_tokens(tokenizer: Any, text: str) -> list[int]:
    """Tokens of a reply, for one whose own tokens are unknown."""
    return list(tokenizer(without_control_tokens(tokenizer, text), add_special_tokens=False)["input_ids"])


def message_tokens(tokenizer: Any, text: str, before: Sequence[int]) -> list[int]:
    """Tokens of a message after a reply, from the end of the model's turn to the beginning of its next one.

    `before` are the tokens so far: an end of turn that the model wrote itself is not repeated.
    """
    text = without_control_tokens(tokenizer, text)
    if tokenizer.chat_template:
        messages = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": _REPLY},
            {"role": "user", "content": text},
        ]
        whole = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        text = whole.partition(_REPLY)[2]
    else:
        text = f"\n\n{text}\n\n"
    tokens = list(tokenizer(text, add_special_tokens=False)["input_ids"])
    return tokens[1:] if before and tokens[:1] == [before[-1]] else tokens


def without_control_tokens(tokenizer: Any, text: str) -> str:
    """Break up control tokens in a text: a subtitle must not end the turn that quotes it."""
    for token in tokenizer.all_special_tokens:
        if token in text:
            text = text.replace(token, f"{token[:1]} {token[1:]}")
    return text
