"""Chat messages: texts, calls of tools and their results, and pictures, in the form that servers take."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, cast

from kinodex.agent.prompts.parts import frame_labels, frame_parts, text_part
from kinodex.agent.protocol.frames import Detail, ShownFrame
from kinodex.agent.protocol.request import Turn

Message = dict[str, object]


def user_message(text: str, frames: Sequence[ShownFrame], side_px: int | None, detail: Detail = "auto") -> Message:
    """Return one user message; plain text if there are no frames. Frames are scaled down to `side_px`, unless None.

    `detail` is for frames that have none of their own; "auto" is left off the wire.
    """
    if not frames:
        return {"role": "user", "content": text}
    return {"role": "user", "content": [text_part(text), *frame_parts(frame_labels(frames), frames, side_px, detail)]}


CALL_ID = "call{:05d}"
"""Nine letters and digits, as Mistral's servers want it."""


def turn_messages(turns: Sequence[Turn]) -> list[Message]:
    messages: list[Message] = []
    for at, turn in enumerate(turns):
        answered = any(result.tool and result.speaker != "assistant" for result in turns[at + 1 : at + 2])
        if turn.tool and turn.speaker == "assistant" and answered:
            arguments = {name: each for name, each in json.loads(turn.text).items() if name != "tool"}
            function = {"name": turn.tool, "arguments": json.dumps(arguments, ensure_ascii=False)}
            calls = [{"id": CALL_ID.format(at), "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        elif turn.tool and turn.speaker != "assistant":
            messages.append({"role": "tool", "content": turn.text, "tool_call_id": CALL_ID.format(at - 1)})
        else:
            messages.append({"role": turn.speaker, "content": turn.text})
    return messages


def without_calls(messages: Sequence[Message]) -> list[Message]:
    """Messages with calls of tools as JSON, and their results as texts, for models that have no tools."""
    plain: list[Message] = []
    for message in messages:
        if message["role"] == "tool":
            message = {"role": "user", "content": message["content"]}
        for call in cast(list[Any], message.get("tool_calls", ())):
            arguments = json.loads(call["function"]["arguments"])
            text = json.dumps({"tool": call["function"]["name"], **arguments}, ensure_ascii=False)
            message = {"role": message["role"], "content": text}
        plain.append(message)
    return join_turns(plain)


def join_turns(messages: Sequence[Message]) -> list[Message]:
    """Join neighbouring messages of one speaker: many chat templates refuse two in a row."""
    joined: list[Message] = []
    for message in messages:
        if "tool_calls" not in message and joined and message["role"] == joined[-1]["role"]:
            joined[-1] = append_text(joined[-1], str(message["content"]))
        else:
            joined.append(message)
    return joined


def append_text(message: Message, text: str) -> Message:
    content = message["content"]
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": text}]}
    return {**message, "content": f"{content}\n\n{text}"}


def hash_pictures(messages: Sequence[Message]) -> list[Message]:
    """Put a hash in the place of each picture: the result is equal exactly when the messages are."""

    def hashed(part: dict[str, Any]) -> dict[str, Any]:
        if "image_url" not in part:
            return part
        others = {name: value for name, value in part["image_url"].items() if name != "url"}
        return {"picture": hashlib.sha256(part["image_url"]["url"].encode()).hexdigest(), **others}

    contents = [message["content"] for message in messages]
    hashes = [list(map(hashed, content)) if isinstance(content, list) else content for content in contents]
    return [{**message, "content": content} for message, content in zip(messages, hashes, strict=True)]
