"""Tell a model that takes no pictures from one that sees, before an agent that looks at frames asks it anything.

In this order: the role's own setting `images`, what was found before (kept by address and model), the server's list of
models, and a small picture, shown once. Only that a model sees is kept on disk: what does not see today may be served
with its vision tomorrow, under the same name. Any other failure decides nothing.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from kinodex.agent.errors import ModelError, TakesNoPictures
from kinodex.agent.models import provider_errors
from kinodex.agent.models.accepted_form import CompletionRequest
from kinodex.agent.models.completion import Completion
from kinodex.agent.models.endpoint import Endpoint
from kinodex.agent.models.response_cache import ResponseCache, cache_key
from kinodex.agent.models.roles import Role
from kinodex.agent.prompts.messages import user_message
from kinodex.agent.protocol.frames import ShownFrame

SIDE_PX = 64
COLOUR = "blue"
WHICH_COLOUR = "Which colour is this picture? Reply with one word."


class ProbeReply(BaseModel):
    """Name of a colour."""

    colour: str


def coloured(colour: str) -> ShownFrame:
    from PIL import Image

    jpeg = io.BytesIO()
    Image.new("RGB", (SIDE_PX, SIDE_PX), colour).save(jpeg, "JPEG")
    return ShownFrame("probe", 0, 0.0, SIDE_PX, SIDE_PX, jpeg.getvalue())


def which_colour() -> CompletionRequest:
    """Ask for the colour of a small picture: what does not name it does not see."""
    return CompletionRequest([user_message(WHICH_COLOUR, [coloured(COLOUR)], None)], ProbeReply, 0.0, "text")


def names_colour(reply: Completion) -> bool:
    return COLOUR in reply.text.lower()


def sight_key(role: Role) -> str:
    return cache_key({"sight": role.model, "base_url": role.base_url})


def listed_sight(models: Sequence[Mapping[str, object]] | None, model: str) -> bool | None:
    """Return the sight of a model in a server's list, as OpenRouter, Mistral, llama.cpp and Ollama write it; None:
    unsaid.
    """
    for each in models or ():
        if model not in (each.get("id"), each.get("name"), each.get("model")):
            continue
        kinds, able = each.get("architecture"), each.get("capabilities")
        modalities = kinds.get("input_modalities") if isinstance(kinds, Mapping) else each.get("input_modalities")
        if isinstance(modalities, Sequence) and modalities:
            return "image" in modalities
        if isinstance(able, Mapping) and isinstance(able.get("vision"), bool):
            return bool(able["vision"])
        if isinstance(able, Sequence) and {"vision", "multimodal"} & {*able}:
            return True
    return None


@dataclass(frozen=True, slots=True)
class Look:
    """The outcome of looking: the problem of a model that takes no pictures, and its reply to one, if it was shown."""

    problem: TakesNoPictures | None = None
    reply: Completion | None = None


@dataclass(eq=False)
class Sight:
    """The sight of the model of a role, found out once."""

    role: Role
    cache: ResponseCache | None = None
    _found: Look | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look(self, endpoint: Endpoint) -> Look:
        """Find out if the model takes pictures; the first to ask gets the reply too, and pays for it."""
        async with self._turn:
            if self._found is not None:
                return self._found
            look = await self._look(endpoint)
            self._found = Look(look.problem)
            return look

    async def _look(self, endpoint: Endpoint) -> Look:
        role, key = self.role, sight_key(self.role)
        if role.images is not None:
            return Look(self._blind("its images are set to 0") if role.images == 0 else None)
        if self.cache is not None and self.cache.get(key) is not None:
            return Look()
        listed = listed_sight(await endpoint.list_models(), role.model)
        if listed is not None:
            return Look(None if listed else self._blind("its server lists it without"))
        trial = Endpoint(role.model_copy(update={"attempts": 1}))
        try:
            reply = await trial.complete(which_colour())
        except TakesNoPictures as problem:
            return Look(problem)
        except ModelError:
            return Look()
        finally:
            await trial.close()
        if reply.finish_reason != "stop" or not reply.text.strip():  # cut off, or refused: that says nothing
            return Look(reply=reply)
        if not names_colour(reply):
            return Look(self._blind(f"it says of a {COLOUR} one: {provider_errors.clip(reply.text, role)}"), reply)
        if self.cache is not None:
            self.cache.put(key, {"sees": True})
        return Look(reply=reply)

    def _blind(self, said: str) -> TakesNoPictures:
        return provider_errors.takes_no_pictures(self.role, said)
