"""One schema for the replies to all steps of a run: `{"step": REPLY}`, or `{"step": {NAME: REPLY}}`.

OpenAI puts the schema of a structured output before the messages, so that requests with different schemas share no
prefix, however alike their prompts are (OpenAI, "Prompt caching"). A joint schema is byte for byte the same for all
requests of a run. It is one of several objects, which must not begin with the same key there: where replies do, since
many begin with their reasons, each stands under the name of its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kinodex.agent.errors import InvalidReply
from kinodex.agent.replies.schema import NAMED, Schema, without_reasoning

STEP = "step"
TITLE = "Step"
"""The name of the schema on the wire."""


@dataclass(frozen=True, slots=True)
class Joint:
    """The kind of a request among those of its run, and the strict schemas of the replies to all kinds, by name."""

    name: str
    replies: Mapping[str, Schema]

    def schema(self, *, reasoning: bool = True) -> Schema:
        """Return the joint schema in strict mode; without `reasoning` no reply begins with its reasons."""
        replies = {
            name: _compact(each if reasoning else without_reasoning(each)) for name, each in self.replies.items()
        }
        if self._named(reasoning):
            replies = {name: _object({name: each}) for name, each in replies.items()}
        return _object({STEP: {"anyOf": list(replies.values())}})

    def outline(self, *, reasoning: bool = True) -> str:
        """Return the form of a reply of this kind, with dots in the place of its keys."""
        inner = f'{{"{self.name}": {{...}}}}' if self._named(reasoning) else "{...}"
        return f'{{"{STEP}": {inner}}}'

    def reply(self, value: object) -> object:
        """Take the reply out of what a model wrote; a value in no such form comes back as it is.

        Raises `InvalidReply` for the reply to another kind of request, which the schema allows too.
        """
        step = _only(value, STEP)
        if not isinstance(step, Mapping):
            return value
        for name, schema in self.replies.items():
            if name != self.name and step.keys() in ({name}, schema[NAMED].keys()):
                keys = ", ".join(f'"{key}"' for key in self.replies[self.name][NAMED])
                raise InvalidReply(f"it is the reply to another step; this one asks for {keys}")
        reply = _only(step, self.name)
        return step if reply is None else reply

    def _named(self, reasoning: bool) -> bool:
        replies = self.replies.values() if reasoning else map(without_reasoning, self.replies.values())
        first = [next(iter(each[NAMED])) for each in replies]
        return len({*first}) < len(first)


def _only(value: object, key: str) -> object:
    """Return the value under a key that is the only one; else None."""
    if not isinstance(value, Mapping):
        return None
    inner: Mapping[str, object] = value
    return inner[key] if inner.keys() == {key} else None


def _object(properties: Mapping[str, object]) -> Schema:
    return {"additionalProperties": False, NAMED: dict(properties), "required": list(properties), "type": "object"}


def _compact(schema: Schema) -> Schema:
    """Return the same schema in fewer words.

    Objects lose their description, and a plain value or null becomes a list of types.
    """
    inner: Schema = {
        key: {name: _compact(each) for name, each in value.items()}
        if key == NAMED
        else _compact(value)
        if isinstance(value, dict)
        else value
        for key, value in schema.items()
        if not (key == "description" and NAMED in schema)
    }
    choices = inner.get("anyOf")
    if choices and all(each.keys() == {"type"} for each in choices):
        del inner["anyOf"]
        inner["type"] = [each["type"] for each in choices]
    return inner
