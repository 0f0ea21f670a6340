"""An OpenAI-compatible endpoint, tried with six small requests: a reply, a picture, several, a JSON schema, a tool,
and a system message."""

from __future__ import annotations

import asyncio
import io
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ValidationError

from agent.core.protocol import ShownFrame
from agent.errors import InvalidReply, ModelError, ModelUnknown
from agent.models import provider_errors
from agent.models.accepted_form import CompletionRequest
from agent.models.completion import thoughts_field
from agent.models.endpoint import Endpoint
from agent.models.role_config import Role, api_key, read_roles
from agent.models.structured_output import json_values
from agent.prompts.render import user_message
from jobs.doctor import CheckResult

if TYPE_CHECKING:
    from agent.models.completion import Completion

SECTION = "endpoint"
CHAT, LISTING = "chat", "model list"
USAGE, IMAGES, SEVERAL, SCHEMA, TOOLS = ABILITIES = "usage", "images", "several images", "json_schema", "tools"
SYSTEM, THOUGHTS = SPEAKERS = "system role", "thoughts"
MAX_TOKENS = 512
"""Models that think before they answer need some."""
TIMEOUT_S = 60.0
SIDE_PX = 64
COLOUR = "blue"
COLOURS = ("red", "green", "yellow", COLOUR)
LISTED, QUOTED = 8, 60
ECHO = "Reply with the one word: ready"
WHICH_COLOUR = "Which colour is this picture? Reply with one word."
WHICH_COLOURS = "Name the colour of each of these pictures, in order, one word each."
SKY = "Which colour is the sky on a clear day? Reply as asked for."


class ProbeReply(BaseModel):
    """Name of a colour."""

    colour: str


class NameColour(BaseModel):
    """Name the colour that is asked for."""

    tool: Literal["name_colour"]
    colour: str


def check_endpoint(base_url: str, model: str | None, key_env: str | None) -> list[CheckResult]:
    """Check what a server at `base_url` lists and can do with `model`, or with the first model that it lists.

    Raises BadSettings for a URL that is none.
    """
    settings: dict[str, object] = {"base_url": base_url, "model": model or "?", "max_tokens": MAX_TOKENS}
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
            tried = await _try_chat(endpoint)
            for attempt in (_try_image, _try_images, _try_schema, _try_tool):
                tried.append(await attempt(endpoint))
            return [listed, *tried, *await _try_speakers(endpoint)]
        finally:
            await endpoint.close()
    except ModelError as error:
        todo = "fix that and run this again"
        untried = (CheckResult(SECTION, name, "missing", "not tried", todo) for name in (*ABILITIES, *SPEAKERS))
        return [CheckResult(SECTION, CHAT, "broken", str(error), todo), *untried]


async def _list_models(role: Role) -> tuple[CheckResult, list[str]]:
    """Models that the server lists. Some servers list nothing and chat all the same."""
    import openai

    try:
        async with openai.AsyncOpenAI(base_url=role.base_url, api_key=api_key(role), max_retries=0) as client:
            names = [each.id async for each in await client.models.list()]
    except openai.APIConnectionError as error:
        raise provider_errors.connection_error(role, error) from error
    except (openai.OpenAIError, ValueError, AttributeError, TypeError) as error:  # its reply is no list
        return CheckResult(
            SECTION, LISTING, "missing", f"none listed ({provider_errors.clip(error, role)})", "name --model"
        ), []
    shown = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    return CheckResult(SECTION, LISTING, "ok", f"{role.place} lists {shown or 'none'}"), names


async def _try_chat(endpoint: Endpoint) -> list[CheckResult]:
    """The line of a reply, and the one of the tokens that the server counts for it."""
    began = time.monotonic()
    reply = await endpoint.complete(CompletionRequest([user_message(ECHO, (), None)], ProbeReply, 0.0, "text"))
    took = f"{time.monotonic() - began:.1f} s, {reply.input_tokens} tokens in, {reply.output_tokens} out"
    usage = CheckResult(SECTION, USAGE, "ok", "counts the tokens of a request")
    if not reply.usage_known:
        usage = CheckResult(SECTION, USAGE, "missing", "counts no tokens", "nothing: kinodex estimates and says so")
    return [CheckResult(SECTION, CHAT, "ok", f"{endpoint.role.model} said {_quoted(reply)} ({took})"), usage]


async def _try_image(endpoint: Endpoint) -> CheckResult:
    """Show a picture of one colour; a model that cannot name the colour does not see."""
    todo = "agents that look at frames need a model that sees; those that read do not"
    try:
        reply = await endpoint.complete(
            CompletionRequest([user_message(WHICH_COLOUR, [_picture()], None)], ProbeReply, 0.0, "text")
        )
    except ModelError as error:
        return CheckResult(SECTION, IMAGES, "missing", f"takes no picture ({error})", todo)
    if COLOUR not in reply.text.lower():
        return CheckResult(SECTION, IMAGES, "missing", f"says of a {COLOUR} picture: {_quoted(reply)}", todo)
    return CheckResult(SECTION, IMAGES, "ok", f"says of a {COLOUR} picture: {_quoted(reply)}")


async def _try_images(endpoint: Endpoint) -> CheckResult:
    """Show several pictures in one request, of a colour each."""
    request = CompletionRequest(
        [user_message(WHICH_COLOURS, [_picture(each) for each in COLOURS], None)], ProbeReply, 0.0, "text"
    )
    try:
        reply = await endpoint.complete(request)
    except ModelError as error:
        return CheckResult(SECTION, SEVERAL, "missing", str(error), "a model that sees")
    if most := endpoint.form.images:
        todo = f"set images = {most} for the role: more frames are then shown as contact sheets from the first request"
        return CheckResult(SECTION, SEVERAL, "missing", f"takes {most} in a request", todo)
    named = [each for each in COLOURS if each in reply.text.lower()]
    if len(named) < len(COLOURS):
        todo = "set images = 1 for the role if it reads one alone: frames are then shown as contact sheets"
        message = f"takes {len(COLOURS)} in a request, and names {len(named)} of their colours: {_quoted(reply)}"
        return CheckResult(SECTION, SEVERAL, "missing", message, todo)
    return CheckResult(SECTION, SEVERAL, "ok", f"takes and tells apart {len(COLOURS)} in a request")


async def _try_schema(endpoint: Endpoint) -> CheckResult:
    try:
        reply = await endpoint.complete(CompletionRequest([user_message(SKY, (), None)], ProbeReply, 0.0, "json"))
    except ModelError as error:
        return CheckResult(SECTION, SCHEMA, "missing", str(error))
    if endpoint.form.rung != SCHEMA:
        message = f"takes none; kinodex asks it for {endpoint.form.rung} and checks each reply"
        return CheckResult(SECTION, SCHEMA, "missing", message, "nothing; more replies may be invalid")
    if not _fits(reply):
        todo = "kinodex will ask again for a reply that does not fit; another server or model may keep to schemas"
        return CheckResult(SECTION, SCHEMA, "missing", f"takes one, and says {_quoted(reply)}", todo)
    return CheckResult(SECTION, SCHEMA, "ok", "keeps to a schema")


async def _try_tool(endpoint: Endpoint) -> CheckResult:
    todo = "nothing: agents with tools ask it for JSON instead"
    try:
        reply = await endpoint.complete(
            CompletionRequest([user_message(SKY, (), None)], ProbeReply, 0.0, "tools", (NameColour,))
        )
    except ModelError as error:
        return CheckResult(SECTION, TOOLS, "missing", str(error), todo)
    if not endpoint.form.supports_tools:
        return CheckResult(SECTION, TOOLS, "missing", "takes none", todo)
    if not reply.calls:
        return CheckResult(SECTION, TOOLS, "missing", f"takes some, called none and said {_quoted(reply)}", todo)
    return CheckResult(SECTION, TOOLS, "ok", f"called {_quoted(reply)}")


async def _try_speakers(endpoint: Endpoint) -> list[CheckResult]:
    """Try a message of the role "system", and look for thoughts beside the reply.

    kinodex sends no such message, so a server that takes none loses nothing; other tools may need to know.
    """
    user = user_message(ECHO, (), None)
    request = CompletionRequest([{"role": "system", "content": "Be brief."}, user], ProbeReply, 0.0, "text")
    system = CheckResult(SECTION, SYSTEM, "ok", "takes a system message; kinodex sends none")
    try:
        answer = await _raw_answer(endpoint, request)
    except ModelError as error:
        message = f"takes no system message ({error})"
        system = CheckResult(SECTION, SYSTEM, "missing", message, "nothing: kinodex sends none")
        try:
            answer = await _raw_answer(endpoint, replace(request, messages=[user]))
        except ModelError as second:
            return [system, CheckResult(SECTION, THOUGHTS, "missing", str(second))]
    return [system, _find_thoughts(answer)]


async def _raw_answer(endpoint: Endpoint, request: CompletionRequest) -> object:
    """Complete a request; gives the server's answer as it was sent."""
    answers: list[object] = []

    async def send(body: dict[str, object]) -> object:
        answers.append(await endpoint.post(body))
        return answers[-1]

    await Endpoint(endpoint.role, send).complete(request)
    return answers[-1]


def _find_thoughts(answer: object) -> CheckResult:
    if not (name := thoughts_field(answer)):
        return CheckResult(SECTION, THOUGHTS, "ok", "returns none beside the reply")
    said = f"returns them in {name}: kinodex reads a reply there if there is none beside them"
    return CheckResult(SECTION, THOUGHTS, "ok", f"{said}; max_tokens has to hold both")


def _picture(colour: str = COLOUR) -> ShownFrame:
    from PIL import Image

    jpeg = io.BytesIO()
    Image.new("RGB", (SIDE_PX, SIDE_PX), colour).save(jpeg, "JPEG")
    return ShownFrame("doctor", 0, 0.0, SIDE_PX, SIDE_PX, jpeg.getvalue())


def _fits(reply: Completion) -> bool:
    try:
        return any(ProbeReply.model_validate(value) for value in json_values(reply.text))
    except (InvalidReply, ValidationError):
        return False


def _quoted(reply: Completion) -> str:
    return repr(" ".join(reply.text.split())[:QUOTED])
