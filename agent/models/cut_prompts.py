"""Prompts that a server cuts: it answers with success, and only its count of what it read tells.

The least tokens of a text are one for `MOST_CHARACTERS` characters. Texts that people write have fewer characters a
token: with the tokenizer of Qwen2.5 our captions 3.3, English 3.7, German 3.5, Russian 2.3, Japanese 1.3, Hindi 1.1,
indented JSON 4.3; with those of 200,000 tokens English has up to 4.9, and a server that counts words 6. Only a run of
one character has many more, and counts once here. So a prompt that is cut by less than half may pass, and none that is
read whole is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from kinodex.agent.errors import PromptCut
from kinodex.agent.models.completion import Completion
from kinodex.agent.models.roles import Role
from kinodex.agent.prompts.messages import Message
from kinodex.agent.prompts.tokens import CHARACTERS_A_TOKEN

MOST_CHARACTERS = 8
LEAST_READ = 1000
"""Tokens; no context is shorter, and a server that reports fewer counts those alone that its cache did not hold."""
CONTEXT_STEP = 4096
_RUN = re.compile(r"(\s|\W)\1{3,}")


def check_read(role: Role, messages: Sequence[Message], completion: Completion) -> None:
    """Raise `PromptCut` where far fewer tokens of a request were read than its text alone has."""
    read = completion.input_tokens + completion.cached_tokens
    if not completion.usage_known or read < LEAST_READ:
        return
    characters = sum(len(_RUN.sub(r"\1", text)) for message in messages for text in _texts(message))
    if read * MOST_CHARACTERS >= characters:
        return
    sent = characters // CHARACTERS_A_TOKEN
    needed = CONTEXT_STEP * math.ceil((sent + role.max_tokens) / CONTEXT_STEP)
    raise PromptCut(
        f"{role.model!r} at {role.host} read {read:,} tokens of a request of {characters:,} characters, about {sent:,} "
        f"tokens: the server cuts prompts without a word; give it a longer context (Ollama: OLLAMA_CONTEXT_LENGTH="
        f"{needed} when it starts, or PARAMETER num_ctx {needed} in the model's Modelfile), or set the role's "
        f"context_tokens to the one it has, at most {read}, and prompts are shortened to that"
    )


def _texts(message: Message) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    parts = [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []
    return [text for each in parts if isinstance(text := each.get("text"), str)]
