"""Typed replies of language models: how a request binds a server to the schema of its reply.

The ladder: `json_schema` binds the server to the schema, `json_object` to JSON, `text` to nothing. On the lower two
rungs the schema stands in the message. Above the ladder are calls of tools: each tool is offered as a function with
the schema of its arguments, and a call becomes JSON again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import BaseModel

from kinodex.agent.prompts.messages import Message
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.schema import Schema, strict_schema, without_reasoning
from kinodex.index.text import beginning

Rung = Literal["json_schema", "json_object", "text"]
NEXT_RUNG: dict[Rung, Rung] = {"json_schema": "json_object", "json_object": "text"}
SHOWN_CHARACTERS = 2000
"""Of a reply that could not be used: of one without an end the beginning says all."""
REPEAT_FORMS = {"json": ". ", "text": ", in the form asked for.", "tools": ", one call of one tool. Without tools: "}


def response_format(rung: Rung, name: str, schema: Schema) -> dict[str, object] | None:
    """Return the parameter `response_format` of a request; None on the lowest rung."""
    if rung == "json_schema":
        return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}
    return {"type": "json_object"} if rung == "json_object" else None


def tool_parameters(
    tools: Sequence[type[BaseModel]], choice: str = "required", *, reasoning: bool = True
) -> dict[str, object]:
    """Return the parameters of a request that offer some tools; `choice` is that of `Request.tool_choice`.

    Without `reasoning` the model is not to write down its reasons in a call.
    """
    named = {"type": "function", "function": {"name": choice}}
    return {
        "tools": [_function_schema(tool, reasoning) for tool in tools],
        "tool_choice": choice if choice in ("required", "none") else named,
        "parallel_tool_calls": False,
    }


def _function_schema(tool: type[BaseModel], reasoning: bool) -> dict[str, object]:
    """Return a tool as a function: its name is the value of its field `tool`, its description the class's docstring."""
    [name] = get_args(tool.model_fields["tool"].annotation)
    schema = strict_schema(tool) if reasoning else without_reasoning(strict_schema(tool))
    properties = {field: each for field, each in schema["properties"].items() if field != "tool"}
    parameters = {**schema, "properties": properties, "required": list(properties)}
    parameters.pop("description", None)
    function = {"name": name, "description": tool.__doc__, "parameters": parameters, "strict": True}
    return {"type": "function", "function": function}


def schema_request(schema: Schema) -> str:
    """Return the schema in words, for servers that cannot be bound to it."""
    written = json.dumps(schema, separators=(",", ":"))
    return f"Reply with one JSON object and nothing else. It must fit this JSON schema:\n{written}"


def repair_messages(request: Request[R], reasoning: bool = True) -> list[Message]:
    """Messages that show a model its own reply and its problem."""
    demand = f"That reply cannot be used: {request.complaint}\nGive the whole reply again"
    demand += REPEAT_FORMS[request.form]
    if request.form != "text":
        demand += schema_request(request.schema(reasoning=reasoning))
    said = beginning(request.bad_reply, SHOWN_CHARACTERS)
    return [{"role": "assistant", "content": said}, {"role": "user", "content": demand}]
