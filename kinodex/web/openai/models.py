"""Names of models for clients of OpenAI's API: a library and an agent, `films:eea`, or the library alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from kinodex.agent.catalogue import VARIANTS
from kinodex.agent.variants.base import Variant
from kinodex.web.openai.errors import RequestRefused

SEPARATOR = ":"
OFFERED = 12
"""Names that an error lists."""


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A model as a client names it: a library by its number, and an agent, None being the server's own."""

    name: str
    library: int
    agent: str | None = None


def library_names(uris: Sequence[str]) -> tuple[str, ...]:
    """Name each library by the last part of its place; one whose name was taken before gets a number, `films-2`."""
    names: list[str] = []
    for uri in uris:
        path = urlsplit(uri).path if "://" in uri else uri
        plain = PurePosixPath(path.replace("\\", "/")).name.replace(SEPARATOR, "-") or "library"
        free = (f"{plain}-{number}" if number > 1 else plain for number in range(1, len(uris) + 2))
        names.append(next(each for each in free if each not in names))
    return tuple(names)


def chat_models(names: Sequence[str], own: Variant, *, has_language: bool) -> list[ChatModel]:
    """Return all models of the named libraries.

    Each is there by itself, and with each agent that sees videos and can be asked here.
    """
    offered = [own, *(each for each in VARIANTS if has_language or not each.needs_language)]
    agents = dict.fromkeys(each.name for each in offered if each.sees_video)
    return [
        ChatModel(name if agent is None else f"{name}{SEPARATOR}{agent}", number, agent)
        for number, name in enumerate(names)
        for agent in (None, *agents)
    ]


def find_model(models: Sequence[ChatModel], name: str) -> ChatModel:
    found = next((each for each in models if each.name == name), None)
    if found is None:
        some = ", ".join(each.name for each in models[:OFFERED])
        more = ", ..." if len(models) > OFFERED else ""
        raise RequestRefused(
            f"the model {name[:100]!r} does not exist; the models are {some}{more} (GET /v1/models)",
            "model",
            "model_not_found",
            404,
        )
    return found
