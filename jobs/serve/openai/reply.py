"""A reply in OpenAI's form: the answer as content, its costs as usage, and the rest of it under `kinodex`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agent.answer import Answer
from agent.core.budget import Ledger
from index.library import Library
from jobs.serve.openai.pictures import Moment, clock
from jobs.serve.running import Running

PREFIX = "chatcmpl-"
NO_ANSWER = {
    "insufficient_evidence": "No answer: what the agent saw does not show it.",
    "budget_exhausted": "No answer: the budget was spent before there was one.",
    "invalid": "No answer: no reply of the model could be used.",
}
CITED = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """A question under way for a client: its model's name, the library, and the moments of its pictures.

    `videos` are the ids of those that it is about; none are all.
    """

    running: Running
    model: str
    library: Library
    moments: Sequence[Moment] = ()
    cite: bool = False
    videos: frozenset[str] = frozenset()

    @property
    def completion_id(self) -> str:
        """Id of the reply; `kinodex.after` takes it."""
        return f"{PREFIX}{self.running.key}"


def completion(asked: Asked, answer: Answer) -> dict[str, Any]:
    """The whole reply."""
    message = {"role": "assistant", "content": content(asked, answer), "refusal": None}
    return {
        **heading(asked, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage(answer.ledger),
        "kinodex": own_fields(asked, answer),
    }


def chunk(asked: Asked, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    """A piece of a streamed reply."""
    choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}
    return {**heading(asked, "chat.completion.chunk"), "choices": [choice]}


def heading(asked: Asked, kind: str) -> dict[str, Any]:
    """Fields that a reply and its pieces begin with."""
    created = int(asked.running.asked_at.timestamp())
    return {"id": asked.completion_id, "object": kind, "created": created, "model": asked.model}


def content(asked: Asked, answer: Answer) -> str:
    """The answer as a text. That to options begins with the letter: programs look for it there."""
    options = asked.running.request.question.options
    if answer.option is not None:
        text = f"{answer.letter}. {options[answer.option]}"
    else:
        text = answer.text or NO_ANSWER.get(answer.status, "No answer.")
    if asked.cite and answer.evidence:
        text += f"\n\nSeen in {cited(asked, answer)}."
    return text


def cited(asked: Asked, answer: Answer) -> str:
    """The first ranges of evidence in words: `film-01` 0:21 to 0:25."""
    rows = [(asked.library.video(each.video_id), each) for each in answer.evidence[:CITED]]
    named = [f"{row.title} {clock(each.start_s)} to {clock(each.end_s)}" for row, each in rows]
    more = len(answer.evidence) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def usage(ledger: Ledger) -> dict[str, Any]:
    """Tokens of the models' calls; those of servers that count none are estimated, among those of the prompt."""
    prompt = ledger.input_tokens + ledger.estimated_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": ledger.output_tokens,
        "total_tokens": prompt + ledger.output_tokens,
        "prompt_tokens_details": {"cached_tokens": ledger.cached_tokens},
    }


def own_fields(asked: Asked, answer: Answer) -> dict[str, Any]:
    """Fields of kinodex's own: status, evidence, costs, and where the trace can be looked at."""
    return {
        "key": asked.running.key,
        "status": answer.status,
        "letter": answer.letter,
        "reason": answer.reason,
        "rounds": answer.rounds,
        "supported": answer.supported,
        "evidence": [
            {
                "video_id": each.video_id,
                "title": asked.library.video(each.video_id).title,
                "start_s": each.start_s,
                "end_s": each.end_s,
            }
            for each in answer.evidence
        ],
        "pictures": [asdict(each) for each in asked.moments],
        "ledger": asdict(answer.ledger),
        "trace": f"/#/trace/{asked.running.key}",
    }
