"""Offers of a server to those who ask: agents, models, limits, and the ways to a language model where there is none."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kinodex.agent.catalogue import VARIANTS
from kinodex.index.library import Library
from kinodex.jobs.collection.question import ALL
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice, describe_models
from kinodex.jobs.verification.kept_verdicts import looking_role
from kinodex.redaction import redact_uri, redact_values

if TYPE_CHECKING:
    from kinodex.web.serve_settings import ServeSettings

WAYS = (
    (
        "A server of your own",
        "vLLM, Ollama, or any other that speaks OpenAI's form; it needs no key. A model that sees, in a folder, is "
        "served so too: vllm serve FOLDER.",
        "--model qwen3-vl --base-url http://127.0.0.1:11434/v1",
    ),
    (
        "A provider",
        "Its key stays in the environment: export OPENAI_API_KEY=... For another one than OpenAI add --base-url URL.",
        "--model gpt-4o",
    ),
    (
        "A language model in a folder",
        'In this process, by transformers: model = "local:FOLDER" under [policy] of models.toml. It reads and does not '
        "see, so [default] there names one of the other two for what looks at frames.",
        "--models models.toml --agent longvideoagent",
    ),
)
"""The three ways to give a model: name, what it is for, and options of `kinodex serve`."""


def offer(settings: ServeSettings, libraries: Sequence[Library]) -> dict[str, Any]:
    """Return all that the page needs to know to ask; without a language model, the ways to give one too."""
    has_language = settings.choice.has_language
    known = [each for each in VARIANTS if each.name != settings.agent.name]
    known += [ALL] if settings.choice.may_use_endpoints else []
    agents = [each for each in (settings.agent, *known) if has_language or not each.needs_language]
    start = "kinodex serve {} {}"
    places = [shlex.quote(redact_uri(each.uri)) for each in libraries]
    value = {
        "has_language": has_language,
        "agents": [{"name": each.name, "summary": each.line, "plain": each.plain} for each in agents],
        "agent": settings.agent.name,
        "models": describe_models(settings.choice),
        "looks": _looking_model(settings.choice),
        "max_questions": settings.at_once,
        "usd_a_day": settings.usd_a_day,
        "libraries": [
            {
                "key": number,
                "ways": [
                    {"name": name, "about": about, "command": start.format(place, options)}
                    for name, about, options in (() if has_language else WAYS)
                ],
            }
            for number, place in enumerate(places)
        ],
    }
    redacted: dict[str, Any] = redact_values(value)
    return redacted


def _looking_model(choice: ModelChoice) -> str | None:
    """Return the model that can look at the moments of a search; None where there is none that sees."""
    try:
        return looking_role(choice).model
    except UsageError:
        return None
