"""A real HTTP server on loopback that speaks chat completions and replies as a test sets it up.

    with ChatServer(lambda request: {"queries": ["a red kite"]}) as server:
        role = Role(base_url=server.base_url, model="tester")
        ...
    assert server.problems == []
    assert [frame.label for frame in server.seen[0].frames] == ["frame 1 at 12.00 s"]

`reply` gets each request's JSON body and returns a dict (sent as the message's JSON content), a text (sent as
it is) or a `Behaviour` (`calling`: native calls of tools). What real servers refuse is said by `rejects`, `models`
and `key`. Every request is checked for the protocol's shapes, its pictures are really decoded, and what is wrong
stands in `problems`.
"""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.support.loopback import NOT_FOUND, Answer, Call, Server

JPEG_URL = "data:image/jpeg;base64,"
SEES: dict[str, object] = {"architecture": {"input_modalities": ["text", "image"]}}
"""A fact in the list of models, as OpenRouter writes it, so that no picture is shown first to find it out."""


@dataclass(frozen=True)
class Behaviour:
    """One HTTP answer. `body` replaces the whole chat completion; `raw` is sent as it is, JSON or not."""

    content: str | None = None
    calls: tuple[tuple[str, object], ...] = ()
    """Native calls of tools: names, and arguments as JSON text or, as some servers send them, as an object."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    refusal: str | None = None
    body: object = None
    raw: bytes | None = None
    after_s: float = 0.0
    usage: Mapping[str, object] | None = None


Reply = Callable[[dict], "dict | list | str | Behaviour"]


def failing(status: int, message: str, *, headers: Mapping[str, str] | None = None, **error: object) -> Behaviour:
    """An error answer in the protocol's usual form."""
    return Behaviour(status=status, headers=headers or {}, body={"error": {"message": message, **error}})


def rate_limited(retry_after: str = "1") -> Behaviour:
    return failing(429, "Rate limit reached, slow down.", headers={"Retry-After": retry_after}, code="rate_limit")


def hanging(seconds: float) -> Behaviour:
    return Behaviour(content="{}", after_s=seconds)


def cut_off(text: str) -> Behaviour:
    return Behaviour(content=text, finish_reason="length")


def refusing(text: str) -> Behaviour:
    return Behaviour(refusal=text)


def calling(*calls: Mapping[str, object], content: str | None = None) -> Behaviour:
    """Native calls of tools, each given as its JSON: `{"tool": "skim", "start_s": 10, ...}`."""
    written = [(str(call["tool"]), {name: each for name, each in call.items() if name != "tool"}) for call in calls]
    named = tuple((tool, json.dumps(arguments)) for tool, arguments in written)
    return Behaviour(content=content, calls=named, finish_reason="tool_calls")


def in_turn(*steps: dict | list | str | Behaviour) -> Reply:
    """Answer the first request with the first step, and so on; the last step is repeated."""
    left = list(steps)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


@dataclass(frozen=True)
class SentFrame:
    """A picture as it arrived: the text right before it, and what its JPEG decodes to."""

    label: str
    width_px: int
    height_px: int


@dataclass(frozen=True)
class Seen:
    """One chat request as it arrived; `at_s` is a monotonic clock's time."""

    at_s: float
    headers: Mapping[str, str]
    body: dict
    frames: tuple[SentFrame, ...]

    @property
    def text(self) -> str:
        """All text of all messages."""
        return "\n".join(text for message in self.body["messages"] for text in _texts(message["content"]))

    @property
    def schema(self) -> str | None:
        """Name of the asked schema: the request's `Reply` class."""
        asked = self.body.get("response_format", {}).get("json_schema")
        return asked["name"] if asked else None

    @property
    def tools(self) -> dict[str, dict]:
        """The functions that were offered and may be called, by name."""
        callable_ones = callable_tools(self.body)
        offered = {tool["function"]["name"]: tool["function"] for tool in self.body.get("tools", ())}
        return {name: function for name, function in offered.items() if name in callable_ones}


def callable_tools(body: dict) -> frozenset[str]:
    """The names of the tools that a request's reply may call, by its tool_choice."""
    choice = body.get("tool_choice", "none")
    if isinstance(choice, dict):
        return frozenset({choice["function"]["name"]})
    return frozenset(tool["function"]["name"] for tool in body["tools"]) if choice != "none" else frozenset()


USER_AFTER_TOOL = "user after tool"
"""What Mistral's servers refuse: a message of the user right after the result of a tool."""


class ChatServer(Server):
    """Serves `{base_url}/chat/completions` and `{base_url}/models` from threads, until the `with` ends."""

    def __init__(
        self,
        reply: Reply,
        *,
        models: Iterable[str] = ("tester",),
        key: str | None = None,
        rejects: Iterable[str] = (),
        port: int = 0,
    ) -> None:
        """`rejects` names what gets a 400: parameters, "json_schema", "json_object", or `USER_AFTER_TOOL`."""
        self.reply, self.models, self.key, self.rejects, self.port = reply, tuple(models), key, tuple(rejects), port
        self.model_facts: dict[str, object] = {}
        """What the list of models says of each besides its name, as servers do that know its context's length."""
        self.seen: list[Seen] = []
        self.problems: list[str] = []
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self.at_once = 0
        self.most_at_once = 0

    def __exit__(self, *error: Any) -> None:
        self.closing.set()
        super().__exit__(*error)

    def respond(self, call: Call) -> Answer:
        match call.method, call.path:
            case "GET", "/v1/models":
                facts = {"object": "model", "created": 0, "owned_by": "test", **SEES, **self.model_facts}
                return Answer(200, {"object": "list", "data": [{"id": name, **facts} for name in self.models]})
            case "POST", "/v1/chat/completions":
                return self._chat(call)
        return Answer(404, NOT_FOUND)

    def _chat(self, call: Call) -> Answer:
        body = call.json
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        said = self.answer(call.headers, body)
        self.closing.wait(said.after_s)
        with self.lock:
            self.at_once -= 1
        raw = said.raw if said.raw is not None else json.dumps(said.body or _completion(body, said)).encode()
        return Answer(said.status, raw, {"Content-Type": "application/json", **said.headers})

    def answer(self, headers: Mapping[str, str], body: dict) -> Behaviour:
        """Record one chat request, and return what to send for it."""
        frames, problems = check_request(body)
        with self.lock:
            self.seen.append(Seen(time.monotonic(), headers, body, tuple(frames)))
            self.problems += problems
        refused = self._refuse(headers, body)
        if refused or problems:
            return refused or failing(400, "; ".join(problems))
        said = self.reply(body)
        if isinstance(said, Behaviour):
            return said
        return Behaviour(content=said if isinstance(said, str) else json.dumps(said))

    def _refuse(self, headers: Mapping[str, str], body: dict) -> Behaviour | None:
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            return failing(401, "Incorrect API key provided.", code="invalid_api_key")
        if body.get("model") not in self.models:
            return failing(404, f"The model `{body.get('model')}` does not exist.", code="model_not_found")
        roles = [message["role"] for message in body["messages"]]
        for name in self.rejects:
            if name == USER_AFTER_TOOL and ("tool", "user") in pairwise(roles):
                return failing(400, "Unexpected role 'user' after role 'tool'", type="invalid_request_message_order")
            if name in body:
                return failing(400, f"Unsupported parameter: '{name}'.", param=name, code="unsupported_parameter")
            if body.get("response_format", {}).get("type") == name:
                return failing(400, f"'response_format' of type '{name}' is not supported.", param="response_format")
        return None


def check_request(body: dict) -> tuple[list[SentFrame], list[str]]:
    """The pictures of a chat request, and what is wrong with its shape."""
    frames: list[SentFrame] = []
    problems = [f"no {name}" for name in ("model", "messages") if not body.get(name)] + _tool_problems(body)
    problems += _call_problems(body.get("messages", ()))
    for message in body.get("messages", ()):
        if message.get("role") not in ("system", "user", "assistant", "tool"):
            problems.append(f"role {message.get('role')!r}")
        content, label = message.get("content"), ""
        if isinstance(content, str):
            continue
        for part in content or [{"type": None}]:
            if part["type"] == "text":
                label = part["text"]
            elif part["type"] == "image_url":
                try:
                    frames.append(_decoded(label, part["image_url"]["url"]))
                except (ValueError, OSError) as error:
                    problems.append(f"picture after {label!r}: {error}")
            else:
                problems.append(f"part of type {part['type']!r}")
    return frames, problems


def _call_problems(messages: Iterable[dict]) -> list[str]:
    """Return what servers refuse in a history of calls: each is followed by its result."""
    problems, called = [], ""
    for message in messages:
        said = "tool" if message["role"] == "tool" else "call" if "tool_calls" in message else message["role"]
        if (called and message.get("tool_call_id") != called) or (said == "tool") != bool(called):
            problems.append(
                f"the call {called!r} and the result {message.get('tool_call_id')!r} do not belong together"
            )
        for call in message.get("tool_calls", ()):
            json.loads(call["function"]["arguments"])
        called = message["tool_calls"][0]["id"] if said == "call" else ""
    return [*problems, *([f"the call {called!r} has no result"] if called else [])]


def _tool_problems(body: dict) -> list[str]:
    """Return what OpenAI's strict mode refuses in the tools of a request."""
    tools = body.get("tools")
    if tools is None:
        return [f"{name} without tools" for name in ("tool_choice", "parallel_tool_calls") if name in body]
    problems = []
    for tool in tools:
        function = tool.get("function", {})
        schema = function.get("parameters", {})
        if tool.get("type") != "function" or not function.get("name") or not function.get("description"):
            problems.append(f"not a function with a name and a description: {tool}")
        if schema.get("type") != "object" or schema.get("additionalProperties") is not False:
            problems.append(f"arguments of {function.get('name')} are no strict object")
        if schema.get("required") != list(schema.get("properties", {})):
            problems.append(f"arguments of {function.get('name')} are not all required")
    return problems


def _decoded(label: str, url: str) -> SentFrame:
    from PIL import Image

    if not url.startswith(JPEG_URL):
        raise ValueError(f"not a JPEG data URL: {url[:40]}")
    with Image.open(io.BytesIO(base64.b64decode(url[len(JPEG_URL) :], validate=True))) as picture:
        picture.load()
        if picture.format != "JPEG":
            raise ValueError(f"says JPEG, is {picture.format}")
        return SentFrame(label, *picture.size)


def _texts(content: str | list[dict]) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part["type"] == "text"]


def _completion(request: dict, said: Behaviour) -> dict:
    words = sum(len(text.split()) for message in request["messages"] for text in _texts(message["content"]))
    output = len(f"{said.content or ''} {said.calls or ''}".split())
    usage = {"prompt_tokens": words, "completion_tokens": output, "total_tokens": words + output}
    message: dict[str, object] = {"role": "assistant", "content": said.content, "refusal": said.refusal}
    if said.calls:
        message["tool_calls"] = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(said.calls)
        ]
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": said.finish_reason}],
        "usage": said.usage if said.usage is not None else usage,
    }
