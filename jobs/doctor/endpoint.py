"""An OpenAI-compatible endpoint, tried with four small requests: does it answer, see, keep to a schema, call a tool?"""

from __future__ import annotations

import asyncio
import io
import time
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ValidationError

from agent.core.protocol import ShownFrame
from agent.errors import InvalidReply, ModelError, ModelUnknown
from agent.models import provider_errors as refusals
from agent.models.chat_messages import user_message
from agent.models.endpoint import Ask, Endpoint
from agent.models.role_config import Role, api_key, read_roles
from agent.models.structured_output import json_values
from jobs.doctor.finding import Finding

if TYPE_CHECKING:
    from agent.models.completion import Completion

SECTION = "endpoint"
CHAT, LISTING = "chat", "model list"
IMAGES, SCHEMA, TOOLS = ABILITIES = "images", "json_schema", "tools"
MAX_TOKENS = 512
"""Models that think before they answer need some."""
TIMEOUT_S = 60.0
SIDE_PX = 64
COLOUR = "blue"
LISTED, QUOTED = 8, 60
ECHO = "Reply with the one word: ready"
WHICH_COLOUR = "Which colour is this picture? Reply with one word."
SKY = "Which colour is the sky on a clear day? Reply as asked for."


class Seen(BaseModel):
    """What is in a picture."""

    colour: str


class NameColour(BaseModel):
    """Say which colour is asked for."""

    tool: Literal["name_colour"]
    colour: str


def endpoint(base_url: str, model: str | None, key_env: str | None) -> list[Finding]:
    """What a server at `base_url` lists and can do with `model`, or with the first that it lists.

    Raises BadSettings for a URL that is none.
    """
    settings: dict[str, object] = {"base_url": base_url, "model": model or "?", "max_tokens": MAX_TOKENS}
    settings |= {"attempts": 1, "timeout_s": TIMEOUT_S} | ({"key_env": key_env} if key_env else {})
    role = read_roles({"default": settings})["default"]
    return asyncio.run(_looked_into(role, model))


async def _looked_into(role: Role, model: str | None) -> list[Finding]:
    try:
        listed, names = await _models(role)
        chosen = model or (names[0] if names else None)
        if chosen is None:
            raise ModelUnknown(f"{role.base_url} lists no model; name one with --model")
        tried = Endpoint(role.model_copy(update={"model": chosen}))
        try:
            chat = await _chat(tried)
            return [listed, chat, await _images(tried), await _schema(tried), await _tools(tried)]
        finally:
            await tried.close()
    except ModelError as error:
        todo = "put that right, and run this again"
        untried = (Finding(SECTION, name, "missing", "not tried", todo) for name in ABILITIES)
        return [Finding(SECTION, CHAT, "broken", str(error), todo), *untried]


async def _models(role: Role) -> tuple[Finding, list[str]]:
    """What the server lists. Some list nothing and chat all the same."""
    import openai

    try:
        async with openai.AsyncOpenAI(base_url=role.base_url, api_key=api_key(role), max_retries=0) as client:
            names = [each.id async for each in await client.models.list()]
    except openai.APIConnectionError as error:
        raise refusals.unreachable(role, error) from error
    except (openai.OpenAIError, ValueError, AttributeError, TypeError) as error:  # whatever it sent is no list
        return Finding(SECTION, LISTING, "missing", f"none listed ({refusals.clipped(error)})", "name --model"), []
    shown = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    return Finding(SECTION, LISTING, "ok", f"{role.base_url} lists {shown or 'none'}"), names


async def _chat(tried: Endpoint) -> Finding:
    began = time.monotonic()
    said = await tried.complete(Ask([user_message(ECHO, (), None)], Seen, 0.0, "text"))
    took = f"{time.monotonic() - began:.1f} s, {said.input_tokens} tokens in, {said.output_tokens} out"
    return Finding(SECTION, CHAT, "ok", f"{tried.role.model} said {_quoted(said)} ({took})")


async def _images(tried: Endpoint) -> Finding:
    """A picture of one colour: whoever cannot name it does not see."""
    todo = "agents that look at frames need a model that sees; those that read do not"
    try:
        said = await tried.complete(Ask([user_message(WHICH_COLOUR, [_picture()], None)], Seen, 0.0, "text"))
    except ModelError as error:
        return Finding(SECTION, IMAGES, "missing", f"takes no picture ({error})", todo)
    if COLOUR not in said.text.lower():
        return Finding(SECTION, IMAGES, "missing", f"says of a {COLOUR} picture: {_quoted(said)}", todo)
    return Finding(SECTION, IMAGES, "ok", f"says of a {COLOUR} picture: {_quoted(said)}")


async def _schema(tried: Endpoint) -> Finding:
    try:
        said = await tried.complete(Ask([user_message(SKY, (), None)], Seen, 0.0, "json"))
    except ModelError as error:
        return Finding(SECTION, SCHEMA, "missing", str(error))
    if tried.rung != SCHEMA:
        asked = f"takes none; kinodex asks it for {tried.rung} and checks what comes"
        return Finding(SECTION, SCHEMA, "missing", asked, "nothing; more replies may be invalid")
    if not _fits(said):
        todo = "replies will be asked for again; another server or model may keep to schemas"
        return Finding(SECTION, SCHEMA, "missing", f"takes one, and says {_quoted(said)}", todo)
    return Finding(SECTION, SCHEMA, "ok", "keeps to a schema")


async def _tools(tried: Endpoint) -> Finding:
    todo = "nothing: agents with tools ask it for JSON instead"
    try:
        said = await tried.complete(Ask([user_message(SKY, (), None)], Seen, 0.0, "tools", (NameColour,)))
    except ModelError as error:
        return Finding(SECTION, TOOLS, "missing", str(error), todo)
    if not tried.takes_tools:
        return Finding(SECTION, TOOLS, "missing", "takes none", todo)
    if not said.calls:
        return Finding(SECTION, TOOLS, "missing", f"takes some, called none and said {_quoted(said)}", todo)
    return Finding(SECTION, TOOLS, "ok", f"called {_quoted(said)}")


def _picture() -> ShownFrame:
    from PIL import Image

    jpeg = io.BytesIO()
    Image.new("RGB", (SIDE_PX, SIDE_PX), COLOUR).save(jpeg, "JPEG")
    return ShownFrame("doctor", 0, 0.0, SIDE_PX, SIDE_PX, jpeg.getvalue())


def _fits(said: Completion) -> bool:
    try:
        return any(Seen.model_validate(value) for value in json_values(said.text))
    except (InvalidReply, ValidationError):
        return False


def _quoted(said: Completion) -> str:
    return repr(" ".join(said.text.split())[:QUOTED])
