"""Checks of an OpenAI-compatible endpoint for `kinodex doctor`, by six small requests.

They ask for a reply, about a picture, about several, by a JSON schema, by a tool, and with a system message.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ValidationError

from kinodex.agent.errors import InvalidReply, ModelError, ModelUnknown
from kinodex.agent.models import provider_errors
from kinodex.agent.models.accepted_form import CompletionRequest
from kinodex.agent.models.completion import thoughts_field
from kinodex.agent.models.endpoint import Endpoint
from kinodex.agent.models.loose_json import json_values
from kinodex.agent.models.roles import Role, api_key, read_roles
from kinodex.agent.models.sight import COLOUR, ProbeReply, coloured, names_colour, which_colour
from kinodex.agent.prompts.messages import user_message
from kinodex.doctor.check_result import CheckResult

if TYPE_CHECKING:
    from kinodex.agent.models.completion import Completion

of_endpoint = partial(CheckResult, "endpoint")
CHAT, LISTING = "chat", "model list"
USAGE, IMAGES, SEVERAL, SCHEMA, TOOLS = ABILITIES = "usage", "images", "several images", "json_schema", "tools"
SYSTEM, THOUGHTS = SPEAKERS = "system role", "thoughts"
TIMEOUT_S = 60.0
COLOURS = ("red", "green", "yellow", COLOUR)
LISTED, QUOTED = 8, 60
ECHO = "Reply with the one word: ready"
WHICH_COLOURS = "Name the colour of each of these pictures, in order, one word each."
SKY = "Which colour is the sky on a clear day? Reply as asked for."


class NameColour(BaseModel):
    """Name the colour that is asked for."""

    tool: Literal["name_colour"]
    colour: str


def check_endpoint(base_url: str, model: str | None, key_env: str | None) -> list[CheckResult]:
    """Check what a server lists and can do with `model`, or with the first that it lists; raises BadSettings."""
    settings: dict[str, object] = {"base_url": base_url, "model": model or "?"}
    settings |= {"attempts": 1, "timeout_s": TIMEOUT_S} | ({"key_env": key_env} if key_env else {})
    role = read_roles({"default": settings})["default"]
    return asyncio.run(_probe(role, model))


async def _probe(role: Role, model: str | None) -> list[CheckResult]:
    try:
        listed, names = await _list_models(role)
        chosen = model or (names[0] if names else None)
        if chosen is None:
            raise ModelUnknown(f"{role.place} lists no model; name one with --model")
        endpoint = Endpoint(role.model_copy(update={"model": chosen}))
        try:
            tried = [*await _try_chat(endpoint), *await _try_abilities(endpoint)]
            return [listed, *tried, *await _try_speakers(endpoint)]
        finally:
            await endpoint.close()
    except ModelError as error:
        todo = "fix that and run this again"
        untried = (of_endpoint(name, "missing", "not tried", todo) for name in (*ABILITIES, *SPEAKERS))
        return [of_endpoint(CHAT, "broken", str(error), todo), *untried]


async def _list_models(role: Role) -> tuple[CheckResult, list[str]]:
    import openai

    from kinodex.agent.models.bounded_http import BoundedClient
    from kinodex.agent.models.endpoint import trusted_certificates

    try:
        http = BoundedClient(verify=trusted_certificates())
        timeout_s, key = role.timeout_s, api_key(role)
        async with openai.AsyncOpenAI(
            base_url=role.base_url, api_key=key, timeout=timeout_s, max_retries=0, http_client=http
        ) as client:
            names = [each.id async for each in await client.models.list()]
    except openai.APIConnectionError as error:
        raise provider_errors.connection_error(role, error) from error
    except (openai.OpenAIError, ValueError, AttributeError, TypeError) as error:  # its reply is no list
        return of_endpoint(LISTING, "missing", f"none listed ({provider_errors.clip(error, role)})", "name --model"), []
    shown = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    return of_endpoint(LISTING, "ok", f"{role.place} lists {shown or 'none'}"), names


def _request(
    text: str, colours: Sequence[str] = (), form: Literal["text", "json", "tools"] = "text"
) -> CompletionRequest:
    tools = (NameColour,) if form == "tools" else ()
    pictures = [coloured(each) for each in colours]
    return CompletionRequest([user_message(text, pictures, None)], ProbeReply, 0.0, form, tools)


async def _try_chat(endpoint: Endpoint) -> list[CheckResult]:
    """Return the line of a reply, and the one of the tokens that the server counts for it."""
    began = time.monotonic()
    reply = await endpoint.complete(_request(ECHO))
    took = f"{time.monotonic() - began:.1f} s, {reply.input_tokens} tokens in, {reply.output_tokens} out"
    usage = of_endpoint(USAGE, "ok", "counts the tokens of a request")
    if not reply.usage_known:
        usage = of_endpoint(USAGE, "missing", "counts no tokens", "nothing: kinodex estimates and says so")
    return [of_endpoint(CHAT, "ok", f"{endpoint.role.model} said {_quoted(reply)} ({took})"), usage]


Judge = Callable[[Endpoint, "Completion"], CheckResult]
"""Judges the reply to a request that was made to see what a model can do."""
SEES = "agents that look at frames need a model that sees; those that read do not"
NO_TOOLS = "nothing: agents with tools ask it for JSON instead"


async def _try(
    endpoint: Endpoint, name: str, request: CompletionRequest, judge: Judge, todo: str, refused: str = "{}"
) -> CheckResult:
    """Send a request, and judge the reply; a refusal says so, and what is `todo`."""
    try:
        reply = await endpoint.complete(request)
    except ModelError as error:
        return of_endpoint(name, "missing", refused.format(error), todo)
    return judge(endpoint, reply)


async def _try_abilities(endpoint: Endpoint) -> list[CheckResult]:
    """Show a picture, several in one request, ask by a schema and by a tool."""
    return [
        await _try(endpoint, IMAGES, which_colour(), _judge_image, SEES, "takes no picture ({})"),
        await _try(endpoint, SEVERAL, _request(WHICH_COLOURS, COLOURS), _judge_images, "a model that sees"),
        await _try(endpoint, SCHEMA, _request(SKY, form="json"), _judge_schema, ""),
        await _try(endpoint, TOOLS, _request(SKY, form="tools"), _judge_tool, NO_TOOLS),
    ]


def _judge_image(_: Endpoint, reply: Completion) -> CheckResult:
    """Return a model that cannot name the one colour of a picture does not see."""
    said = f"says of a {COLOUR} picture: {_quoted(reply)}"
    return of_endpoint(IMAGES, "ok", said) if names_colour(reply) else of_endpoint(IMAGES, "missing", said, SEES)


def _judge_images(endpoint: Endpoint, reply: Completion) -> CheckResult:
    if most := endpoint.form.images:
        todo = f"set images = {most} for the role: more frames are then shown as contact sheets from the first request"
        return of_endpoint(SEVERAL, "missing", f"takes {most} in a request", todo)
    named = [each for each in COLOURS if each in reply.text.lower()]
    if len(named) < len(COLOURS):
        todo = "set images = 1 for the role if it reads only one: frames are then shown as contact sheets"
        message = f"takes {len(COLOURS)} in a request, and names {len(named)} of their colours: {_quoted(reply)}"
        return of_endpoint(SEVERAL, "missing", message, todo)
    return of_endpoint(SEVERAL, "ok", f"takes and tells apart {len(COLOURS)} in a request")


def _judge_schema(endpoint: Endpoint, reply: Completion) -> CheckResult:
    if endpoint.form.rung != SCHEMA:
        message = f"takes none; kinodex asks it for {endpoint.form.rung} and checks each reply"
        return of_endpoint(SCHEMA, "missing", message, "nothing; more replies may be invalid")
    try:
        if any(ProbeReply.model_validate(value) for value in json_values(reply.text)):
            return of_endpoint(SCHEMA, "ok", "keeps to a schema")
    except (InvalidReply, ValidationError):
        pass
    todo = "kinodex will ask again for a reply that does not fit; another server or model may keep to schemas"
    return of_endpoint(SCHEMA, "missing", f"takes one, and says {_quoted(reply)}", todo)


def _judge_tool(endpoint: Endpoint, reply: Completion) -> CheckResult:
    if not endpoint.form.supports_tools:
        return of_endpoint(TOOLS, "missing", "takes none", NO_TOOLS)
    if not reply.calls:
        return of_endpoint(TOOLS, "missing", f"takes some, called none and said {_quoted(reply)}", NO_TOOLS)
    return of_endpoint(TOOLS, "ok", f"called {_quoted(reply)}")


async def _try_speakers(endpoint: Endpoint) -> list[CheckResult]:
    """Try a message of the role "system", and look for thoughts beside the reply.

    kinodex sends no such message, so a server that takes none loses nothing; other tools may need to know.
    """
    plain = _request(ECHO)
    request = replace(plain, messages=[{"role": "system", "content": "Be brief."}, *plain.messages])
    system = of_endpoint(SYSTEM, "ok", "takes a system message; kinodex sends none")
    try:
        answer = await _raw_answer(endpoint, request)
    except ModelError as error:
        message = f"takes no system message ({error})"
        system = of_endpoint(SYSTEM, "missing", message, "nothing: kinodex sends none")
        try:
            answer = await _raw_answer(endpoint, plain)
        except ModelError as second:
            return [system, of_endpoint(THOUGHTS, "missing", str(second))]
    thoughts = "returns none beside the reply"
    if name := thoughts_field(answer):
        thoughts = f"returns them in {name}: kinodex reads a reply there if there is none beside them"
        thoughts += "; max_tokens has to hold both"
    return [system, of_endpoint(THOUGHTS, "ok", thoughts)]


async def _raw_answer(endpoint: Endpoint, request: CompletionRequest) -> object:
    """Complete a request; gives the server's answer as it was sent."""
    answers: list[object] = []

    async def send(body: dict[str, object]) -> object:
        answers.append(await endpoint.post(body))
        return answers[-1]

    await Endpoint(endpoint.role, send).complete(request)
    return answers[-1]


def _quoted(reply: Completion) -> str:
    return repr(" ".join(reply.text.split())[:QUOTED])
