"""Calls of tools as models write them in text, in the forms of several chat templates, made into one flat object.

Read are `{"name": NAME, "arguments": {...}}` (Qwen, Hermes, Mistral; in `<tool_call>` tags or a list of one),
`{"function": {...}}` around it, `{"tool_calls": [...]}` with one call, and "parameters" (Llama) or "args" for
"arguments", which may be a text with JSON in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kinodex.index.nesting import parse_json

NAMES = ("name", "tool", "tool_name", "function")
ARGUMENTS = ("arguments", "parameters", "args", "input")


def flat_call(value: object) -> object:
    """`{"tool": NAME, ARGUMENT: VALUE, ...}` of a call in another form; anything else as it is."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        inner = flat_call(value[0])
        return value if inner is value[0] else inner
    if not isinstance(value, Mapping):
        return value
    for wrapper in ("tool_calls", "function_call", "function", "tool_call"):
        inner = value.get(wrapper)
        if isinstance(inner, Mapping | list) and (call := flat_call(inner)) is not inner:
            return call
    name = next((value[each] for each in NAMES if isinstance(value.get(each), str)), None)
    arguments = next((_as_object(value[each]) for each in ARGUMENTS if each in value), None)
    return value if name is None or arguments is None else {**arguments, "tool": name}


def _as_object(arguments: object) -> Mapping[str, object] | None:
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments or "{}")
        except ValueError:
            return None
    return arguments if isinstance(arguments, Mapping) else None
