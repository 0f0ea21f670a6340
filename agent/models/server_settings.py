"""Settings of a model's server, as it tells them itself: the context in use, and the requests that it answers together.

llama.cpp has both in `/props`. Ollama has the context in `/api/ps`, once the model is loaded; before, its Modelfile's
may stand in `/api/show`. Other servers list the longest context of a model at most (`/models`). Ollama answers a longer
prompt with success, from a part of it, and takes no `num_ctx` from requests in OpenAI's form: so it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

CONTEXT_NAMES = ("max_model_len", "context_length", "context_window", "max_context_length")
LATEST = ":latest"
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)

Call = Callable[[str, dict[str, object] | None], Awaitable[object]]
"""Gets the JSON at a path of the server, or posts a body there; None if that fails."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of a server as far as it tells them; None is unsaid."""

    context_tokens: int | None = None
    served: int | None = None
    """Requests that it answers together."""


async def of_llama_cpp(call: Call) -> ServerSettings | None:
    """Ask llama.cpp for its settings; None if it is another server."""
    said = await call("/props", None)
    usual = said.get("default_generation_settings") if isinstance(said, Mapping) else None
    if not isinstance(said, Mapping) or not isinstance(usual, Mapping):
        return None
    return ServerSettings(_count(usual.get("n_ctx")), _count(said.get("total_slots")))


async def of_ollama(call: Call, model: str) -> ServerSettings | None:
    """Ask Ollama for the context of a model, which is loaded for that; None if it is another server."""
    loaded = await call("/api/ps", None)
    if not isinstance(loaded, Mapping) or not isinstance(loaded.get("models"), list):
        return None
    context_tokens = _context_in_use(loaded, model) or _of_modelfile(await call("/api/show", {"model": model}))
    if context_tokens is None and not _named(loaded["models"], model):
        await call("/api/generate", {"model": model})  # without a prompt it loads the model, as the question would
        context_tokens = _context_in_use(await call("/api/ps", None), model)
    return ServerSettings(context_tokens)


def listed_context(models: Sequence[Mapping[str, object]] | None, model: str) -> int | None:
    """Return the length of a model's context in a server's list.

    Servers such as vLLM, OpenRouter, Groq and Mistral call it differently.
    """
    for each in models or ():
        lengths = [_count(each.get(name)) for name in CONTEXT_NAMES] if each.get("id") == model else []
        known = [length for length in lengths if length is not None]
        if known:
            return known[0]
    return None


def _context_in_use(loaded: object, model: str) -> int | None:
    models = loaded.get("models") if isinstance(loaded, Mapping) else None
    return next((_count(each.get("context_length")) for each in _named(models, model)), None)


def _named(models: object, model: str) -> list[Mapping[str, object]]:
    known = [each for each in models if isinstance(each, Mapping)] if isinstance(models, list) else []
    names = {model, f"{model}{LATEST}"}
    return [each for each in known if names & {each.get("name"), each.get("model")}]


def _of_modelfile(shown: object) -> int | None:
    parameters = shown.get("parameters") if isinstance(shown, Mapping) else None
    found = _NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    return None if found is None else _count(int(found[1]))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
