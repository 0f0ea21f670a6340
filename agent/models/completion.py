"""Completions: the answers of servers, parsed as far as servers agree on their form.

Only `choices[0].message` is needed. Servers leave out `usage`, `finish_reason` and more, send content in parts, and
reasoning models behind some of them put the whole reply where their thoughts belong (`reasoning_content`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field, ValidationError

from kinodex.agent.errors import InvalidReply
from kinodex.agent.prompts import Message
from kinodex.agent.protocol import R, Reply, Request, after_thought
from kinodex.agent.replies import DOTS, REASONING, Schema, filled_in, flat_call, strict_schema, words_of_form
from kinodex.index.nesting import MOST_DEPTH, is_deep_value
from kinodex.index.nesting import parse_json as decoded


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply: `text` as the model wrote it; `refusal` is empty unless the model refused.

    In a reply that calls tools, `text` has the `calls` as JSON, one a line: `{"tool": NAME, ARGUMENT: VALUE, ...}`.
    """

    text: str
    calls: int = 0
    refusal: str = ""
    finish_reason: str = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usage_known: bool = True
    """False if the server did not say how many tokens it read."""
    sheets: int = 0
    """Contact sheets in the request, and frames that were left out of it, because the server takes few pictures."""
    left_out: int = 0


class _Part(BaseModel):
    type: str = "text"
    text: str | None = None


class _Function(BaseModel):
    name: str = ""
    arguments: object = None


class _Call(BaseModel):
    function: _Function


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    refusal: str | None = None
    reasoning_content: object = None
    reasoning: object = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: object = None


class _PromptDetails(BaseModel):
    cached_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Body(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: object = None


def parse_completion(body: object) -> Completion:
    """Parse a server's answer, given as JSON values.

    Raises pydantic's ValidationError if it holds no completion.
    """
    parsed = _Body.model_validate(body)
    choice, usage = parsed.choices[0], _usage(parsed.usage)
    details = usage.prompt_tokens_details or _PromptDetails()
    calls = choice.message.tool_calls or []
    return Completion(
        text=_without_surrogates("\n".join(map(_call_as_json, calls)) if calls else _reply_text(choice.message)),
        calls=len(calls),
        refusal=" ".join(_without_surrogates(choice.message.refusal or "").split()),
        finish_reason=str(choice.finish_reason or "stop"),
        input_tokens=_token_count(usage.prompt_tokens),
        output_tokens=_token_count(usage.completion_tokens),
        cached_tokens=_token_count(details.cached_tokens),
        usage_known=_token_count(usage.prompt_tokens) > 0,  # no request has no tokens: some servers fill in zeros
    )


def thoughts_field(body: object) -> str:
    """Find the field in which a server's answer has the model's thoughts beside its reply; "" if it has none."""
    message = _Body.model_validate(body).choices[0].message
    fields = {"reasoning_content": message.reasoning_content, "reasoning": message.reasoning}
    return next((name for name, said in fields.items() if isinstance(said, str) and said.strip()), "")


def _usage(sent: object) -> _Usage:
    """The usage that a server sends; an empty one if it sends none or makes no sense."""
    try:
        return _Usage.model_validate(sent or {})
    except ValidationError:
        return _Usage()


def _token_count(tokens: int | None) -> int:
    """The number that the server gives; 0 if it gives none or an absurd one: a negative one would refill a budget."""
    return tokens if tokens is not None and 0 < tokens <= MOST_TOKENS else 0


def input_tokens(usage: object) -> int:
    """The tokens that a server counts for what it was sent, by the usage in its reply; 0 if that makes no sense."""
    return _token_count(_usage(usage).prompt_tokens)


def _reply_text(message: _Message) -> str:
    """The text of a reply; the last JSON object of the thoughts if there is no text beside them."""
    text, thoughts = message.content or "", message.reasoning_content or message.reasoning
    if isinstance(text, list):  # some servers send the model's thoughts in parts of another type
        text = "".join(part.text or "" for part in text if part.type == "text")
    if text.strip() or not isinstance(thoughts, str):
        return text
    try:
        objects = [value for value in json_values(thoughts) if isinstance(value, dict)]
    except InvalidReply:
        return ""
    return json.dumps(objects[-1], ensure_ascii=False) if objects else ""


def _call_as_json(call: _Call) -> str:
    """Write one call as JSON; arguments that are no JSON object stay unchanged, and parsing the reply rejects them."""
    name, arguments = call.function.name, call.function.arguments
    try:
        values: Any = decoded(arguments.strip() or "{}") if isinstance(arguments, str) else arguments or {}
        return json.dumps({"tool": name} | values | {"tool": name}, ensure_ascii=False)
    except (ValueError, TypeError):
        return f"{name} {arguments}"


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates: they pass through JSON, but cannot be sent again or written to a file."""
    return text.encode(errors="replace").decode()


# Typed replies of language models: request a schema, parse completions, and parse replies without guessing.
#
# The ladder: `json_schema` binds the server to the schema, `json_object` to JSON, `text` to nothing. On the lower two
# rungs the schema stands in the message. Above the ladder are calls of tools: each tool is offered as a function with
# the schema of its arguments, and a call becomes JSON again. Every reply is parsed in the same way: JSON is searched
# for leniently and validated strictly; a reply that fits nothing is shown to the model again with its problem. What is
# beyond doubt is read: line breaks within a text, a comma before a bracket, Python's quotes and words, an object in a
# list. Nothing is repaired: repairing completes a reply that was cut off, and picks one of several.

Rung = Literal["json_schema", "json_object", "text"]
NEXT_RUNG: dict[Rung, Rung] = {"json_schema": "json_object", "json_object": "text"}
SHOWN_PROBLEMS = 3
MOST_TOKENS = 10**9
"""Of one request; a larger count is none."""
FORM_ALONE = "it repeats the form; put what you found in the place of its words and dots"
LONGEST_PROBLEM = 400
"""Characters of a complaint."""
REPEAT_FORMS = {"json": ". ", "text": ", in the form asked for.", "tools": ", one call of one tool. Without tools: "}


def response_format(rung: Rung, name: str, schema: Schema) -> dict[str, object] | None:
    """The parameter `response_format` of a request; None on the lowest rung."""
    if rung == "json_schema":
        return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}
    return {"type": "json_object"} if rung == "json_object" else None


def tool_parameters(tools: Sequence[type[BaseModel]], choice: str = "required") -> dict[str, object]:
    """The parameters of a request that offer some tools; `choice` is that of `Request.tool_choice`."""
    named = {"type": "function", "function": {"name": choice}}
    return {
        "tools": [_function_schema(tool) for tool in tools],
        "tool_choice": choice if choice in ("required", "none") else named,
        "parallel_tool_calls": False,
    }


def _function_schema(tool: type[BaseModel]) -> dict[str, object]:
    """A tool as a function: its name is the value of its field `tool`, its description the class's docstring."""
    [name] = get_args(tool.model_fields["tool"].annotation)
    schema = strict_schema(tool)
    properties = {field: each for field, each in schema["properties"].items() if field != "tool"}
    parameters = {**schema, "properties": properties, "required": list(properties)}
    parameters.pop("description", None)
    function = {"name": name, "description": tool.__doc__, "parameters": parameters, "strict": True}
    return {"type": "function", "function": function}


def schema_request(schema: Schema) -> str:
    """The schema in words, for servers that cannot be bound to it."""
    written = json.dumps(schema, separators=(",", ":"))
    return f"Reply with one JSON object and nothing else. It must fit this JSON schema:\n{written}"


def reply_schema(request: Request[R], *, reasoning: bool = True, joint: bool = False) -> Schema:
    """The schema that a reply is written by; with `joint` that of all requests of a run, where they have one."""
    shared = request.joint() if joint else None
    return request.schema(reasoning=reasoning) if shared is None else shared.schema(reasoning=reasoning)


def repair_messages(request: Request[R], reasoning: bool = True, joint: bool = False) -> list[Message]:
    """Messages that show a model its own reply and its problem."""
    demand = f"That reply cannot be used: {request.complaint}\nGive the whole reply again"
    demand += REPEAT_FORMS[request.form]
    if request.form != "text":
        demand += schema_request(reply_schema(request, reasoning=reasoning, joint=joint))
    return [{"role": "assistant", "content": request.bad_reply}, {"role": "user", "content": demand}]


def parse_reply(text: str, request: Request[R]) -> tuple[R | None, str | None]:
    """Parse and check what a model wrote: the reply, or one line with the problem."""
    if not text.strip():
        return None, "empty"
    try:
        if request.form != "text":
            return parse_json(text, request), None
        reply = request.Reply.from_text(text.strip())
        request.check(reply)
        return reply, None
    except InvalidReply as error:
        line = " ".join(str(error).split())  # it may quote the reply
        return None, line if len(line) <= LONGEST_PROBLEM else f"{line[: LONGEST_PROBLEM - 3]}..."


def parse_json(text: str, request: Request[R]) -> R:
    """Find the one reply in `text` that fits the request's schema and passes its check, as JSON or in plain words.

    Raises `InvalidReply` with the problem in one line: no JSON, broken JSON, a misfit, or several replies
    that differ.
    """
    problem, blank = "there is no JSON in it", words_of_form(request.Reply)
    fitting: list[R] = []
    if f'": {DOTS}' in text:
        raise InvalidReply(FORM_ALONE)
    values, joint = list(json_values(text)), request.joint()
    parts = [part for value in values for part in (value if isinstance(value, list) else [value])]
    if not any(isinstance(part, dict) for part in parts):
        reply = request.in_words(after_thought(text))
        if reply is not None:
            return reply
    for value in values:
        try:
            json.dumps(value, ensure_ascii=False).encode()
            asked = value if joint is None else joint.reply(value)
            own = filled_in(asked, blank)
            reply = request.interpret(_validated(request.Reply, flat_call(own)))
            request.check(reply)
        except UnicodeEncodeError:
            problem = "it holds an escape that is half a character"
        except ValidationError as error:
            problem = _first_misfits(error) if own == asked else FORM_ALONE
        except InvalidReply as error:
            problem = str(error)
        else:
            if not any(_same(reply, each) for each in fitting):
                fitting.append(reply)
    if len(fitting) > 1:
        raise InvalidReply(f"it holds {len(fitting)} different replies; give one")
    if not fitting:
        raise InvalidReply(problem)
    return fitting[0]


def with_end(text: str, stops: Sequence[str]) -> str:
    """A reply with the closing tag at which it was stopped: endpoints leave it out."""
    left_open = [each for each in stops if text.rfind(each.replace("/", "")) > text.rfind(each)]
    return f"{text}{left_open[-1]}" if left_open else text


def parse_whole_parts(text: str, request: Request[R]) -> R | None:
    """The parts of a reply that was cut off which are whole, of a request that can ask for the others; else None.

    They are those before the last `}` in the outermost list of objects.
    """
    text = after_thought(text)
    open_ones: list[str] = []
    whole, depth = "", 0
    for match in _TOKEN.finditer(text) if type(request).missing is not Request.missing else ():
        if match[0] in "{[":
            open_ones.append(match[0])
            depth = depth or (len(open_ones) if match[0] == "[" else 0)
        elif match[0] in "}]" and open_ones:
            open_ones.pop()
            if match[0] == "}" and depth and len(open_ones) == depth:
                whole = text[: match.end()] + "".join("}" if each == "{" else "]" for each in reversed(open_ones))
    return parse_reply(whole, request)[0]


def _validated(reply: type[R], value: object) -> R:
    """Validate a value, or the one object of a list where a list is no reply."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        try:
            return reply.model_validate(value)
        except ValidationError:
            return reply.model_validate(value[0])
    return reply.model_validate(value)


def _same(one: Reply, other: Reply) -> bool:
    """True if two replies say the same, whatever their reasons."""
    return one.model_dump(exclude={REASONING}) == other.model_dump(exclude={REASONING})


def json_values(text: str) -> Iterator[object]:
    """Every outermost object and array of JSON in a text, in order, with any text around them.

    The thoughts of a reasoning model before "</think>" are left out. Raises `InvalidReply` at JSON that
    breaks off: the values inside it are parts of a reply, not a reply.
    """
    text = after_thought(text)
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        at = opening.start()
        try:
            value, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            end = _closing(text, at)
            if _OBJECT.match(text, at):
                value, at = _loosely(text[at:end], error), end
            # A quote right after the bracket opens a text that never ends.
            elif text[at + 1 : error.pos].strip() or text[error.pos : error.pos + 1] == '"':
                raise _malformed(error) from error
            else:
                at += 1  # a bracket of prose, not of JSON
                continue
        except (RecursionError, ValueError) as error:
            raise InvalidReply("its JSON is nested too deeply or holds a number of thousands of digits") from error
        if is_deep_value(value):
            raise InvalidReply(f"its JSON is nested more than {MOST_DEPTH} deep")
        yield value


def _loosely(text: str, error: json.JSONDecodeError) -> object:
    """Decode an object with commas before brackets, or with the quotes and words of Python."""

    def as_json(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] in "'“":
            inner = re.sub(r"\\(['“”])", r"\1", token[1:-1])
            return '"' + re.sub(r'(?<!\\)"', r'\\"', inner) + '"'
        return _WORDS_OF_PYTHON.get(token, "" if token[0] == "," else token)

    try:
        return _DECODER.decode(_TOKEN.sub(as_json, text))
    except json.JSONDecodeError:
        raise _malformed(error) from error


def _closing(text: str, start: int) -> int:
    """The place after the bracket that closes the one at `start`, or the end of the text."""
    depth = 0
    for match in _TOKEN.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match[0], 0)
        if depth == 0 and match[0] in "}]":
            return match.end()
    return len(text)


def _malformed(error: json.JSONDecodeError) -> InvalidReply:
    return InvalidReply(f"its JSON breaks off or is malformed: {error.msg} at character {error.pos}")


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys stand once, whatever their case; JSON would take the last value in silence."""
    given: dict[str, object] = {}
    for name, value in pairs:
        if given.setdefault(name.casefold(), value) != value:
            raise InvalidReply(f"it gives {name[:60]!r} twice, with different values")
    return dict(pairs)


def _refuse_constant(name: str) -> object:
    raise InvalidReply(f"it holds {name}, which is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_without_doubles, strict=False)
_OPENING = re.compile(r"[{\[]")
_OBJECT = re.compile(r"\{\s*[\"'“]|\[\s*\{")
"""The beginning of an object with names, or of a list of objects."""
_TOKEN = re.compile(
    r'"(?:[^"\\]++|\\.)*+"|\'(?:[^\'\\]++|\\.)*+\'|“(?:[^”\\]++|\\.)*+”|,(?=\s*[}\]])|[{}\[\]]|\b(?:None|True|False)\b',
    re.DOTALL,
)
_WORDS_OF_PYTHON = {"None": "null", "True": "true", "False": "false"}


def _first_misfits(error: ValidationError) -> str:
    """The first few misfits with their paths: "segments.0.score: Input should be ..."."""
    misfits = [
        f"{'.'.join(map(str, each['loc'])) or 'reply'}: {each['msg'].removeprefix('Value error, ')}"
        for each in error.errors()
    ]
    more = len(misfits) - SHOWN_PROBLEMS
    return "; ".join(misfits[:SHOWN_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
