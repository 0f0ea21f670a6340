"""Attributes of spans by the GenAI semantic conventions of OpenTelemetry, from the events of a run.

Source: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md and gen-ai-agent-spans.md
(status: development, 2026). Names that begin with "kinodex." are ours. No prompt and no picture goes along: frames
are named by library, video and number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.traces.events import Acted, Exchanged, Finished, RunStarted
from kinodex.jobs.models import SIMILARITY
from kinodex.redaction import redact, redact_uri

Value = str | int | float | bool | list[str]
Attributes = dict[str, Value]

OWN_PROVIDER, ENDPOINT_PROVIDER = "kinodex", "openai"
"""Provider of `similarity`, and the one whose protocol all endpoints speak, which is what the name stands for."""
MOST_TEXT = 4000
"""Characters of a text."""
INVALID = "invalid_reply"


def run_attributes(event: RunStarted, library: str) -> Attributes:
    """Attributes of the span of a whole run, at its start."""
    question = event.question.text
    for letter, option in event.question.lettered:
        question += f"\n{letter}. {option}"
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": event.agent,
        "gen_ai.provider.name": OWN_PROVIDER,
        "gen_ai.input.messages": _message("user", question),
        "kinodex.library": redact_uri(library),
        "kinodex.space": event.space,
        "kinodex.videos": [video.video_id for video in event.videos[:100]],
        "kinodex.video_count": len(event.videos),
    }
    if names := sorted(set(event.models.values())):
        attributes["gen_ai.request.model"] = ", ".join(names)
    return attributes


def end_attributes(event: Finished, library: str) -> Attributes:
    """Attributes that a run has at its end: the answer, what it rests on and what it cost."""
    answer, ledger = event.answer, event.answer.ledger
    place = redact_uri(library)
    text = answer.text if answer.letter is None else f"{answer.letter}. {answer.text or ''}"
    return {
        "gen_ai.output.messages": _message(
            "assistant", text or "", "stop" if answer.status == "answered" else "length"
        ),
        "gen_ai.usage.input_tokens": ledger.input_tokens,
        "gen_ai.usage.output_tokens": ledger.output_tokens,
        "kinodex.status": answer.status,
        "kinodex.reason": redact(answer.reason)[:MOST_TEXT],
        "kinodex.rounds": answer.rounds,
        "kinodex.calls": ledger.calls,
        "kinodex.frames_shown": ledger.frames,
        "kinodex.cost": ledger.cost,
        "kinodex.evidence": [f"{place}/{it.video_id}/{it.start_s:.3f}-{it.end_s:.3f}" for it in answer.evidence],
    }


def chat_attributes(event: Exchanged, library: str) -> Attributes:
    """Attributes of a call of a model: an exchange of request and reply."""
    request, exchange = event.request, event.exchange
    is_own = event.model == SIMILARITY
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": OWN_PROVIDER if is_own else ENDPOINT_PROVIDER,
        "gen_ai.request.model": event.model,
        "gen_ai.request.temperature": float(request.temperature),
        "gen_ai.output.type": "text" if request.form == "text" else "json",
        **_usage(exchange.usage),
        "kinodex.round": event.round,
        "kinodex.role": request.role,
        "kinodex.request": type(request).__name__,
        "kinodex.cached": exchange.cached,
        "kinodex.waited_s": exchange.waited_s,
        "kinodex.frames": [f"{redact_uri(library)}/{it.video_id}/{it.frame_no}" for it in request.frames],
    }
    if exchange.reply is not None:
        attributes["gen_ai.output.messages"] = _message("assistant", exchange.reply.model_dump_json(), "stop")
    if exchange.invalid is not None:
        attributes["error.type"] = INVALID
    return attributes


def tool_attributes(event: Acted) -> Attributes:
    """Attributes of a step of an agent with tools."""
    attributes: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": event.action,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.arguments": redact(json.dumps(dict(event.arguments), default=str))[:MOST_TEXT],
        "kinodex.round": event.round,
        "kinodex.notes": len(event.notes),
    }
    if event.problem:
        attributes["error.type"] = "tool_error"
    return attributes


def flat(fields: Mapping[str, object]) -> Attributes:
    """Plain values of an event's fields as attributes; lists and objects as their number of entries."""
    values: Attributes = {}
    for name, value in fields.items():
        if isinstance(value, str):
            values[f"kinodex.{name}"] = redact(value)[:MOST_TEXT]
        elif isinstance(value, bool | int | float):
            values[f"kinodex.{name}"] = value
        elif isinstance(value, list | dict):
            values[f"kinodex.{name}.count"] = len(value)
    return values


def _usage(usage: Usage) -> Attributes:
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "kinodex.cost": usage.cost,
    }


def _message(role: str, text: str, finish: str | None = None) -> str:
    """Return one message as the conventions write them: a JSON list of roles with parts."""
    message: dict[str, object] = {"role": role, "parts": [{"type": "text", "content": redact(text)[:MOST_TEXT]}]}
    if finish is not None:
        message["finish_reason"] = finish
    return json.dumps([message], ensure_ascii=False)
