"""The answer in words, with its film and times and links to them, and as data: under `kinodex`, and its tokens."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kinodex.agent.answer import Answer
from kinodex.agent.limits.ledger import Ledger
from kinodex.index.times import clock

if TYPE_CHECKING:
    from kinodex.web.openai.question import Asked

NO_ANSWER = {
    "insufficient_evidence": "No answer: what the agent saw does not show it.",
    "evidence_only": "No answer in words without a language model: these moments fit the question best.",
    "budget_exhausted": "No answer: the budget was spent before there was one.",
    "invalid": "No answer: no reply of the model could be used.",
}
CITED = 5


@dataclass(frozen=True, slots=True)
class Citation:
    """A place of a written answer, `text[start_index:end_index]`, and the page of the film at that second."""

    start_index: int
    end_index: int
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Written:
    text: str
    citations: tuple[Citation, ...] = ()


def write(asked: Asked, answer: Answer) -> Written:
    """Return an answer with the first ranges of its evidence.

    An answer to options begins with the letter, as programs expect.
    """
    options = asked.running.request.options
    if answer.option is not None:
        text = f"{answer.letter}. {options[answer.option]}"
    else:
        text = answer.text or NO_ANSWER.get(answer.status, "No answer.")
    whole = len(text)
    is_cited = bool(answer.evidence) and (not options if asked.own.cite is None else asked.own.cite)
    citations = []
    for number, each in enumerate(answer.evidence[:CITED]):
        title = asked.library.video(each.video_id).title
        place = f"{title} {clock(each.start_s)} to {clock(each.end_s)}"
        if is_cited:
            text += (", " if number else "\n\nSeen in ") + place
        span = (len(text) - len(place), len(text)) if is_cited else (0, whole)
        page = f"#/library/{asked.running.library}/video/{quote(each.video_id)}/{each.start_s:g}"
        citations.append(Citation(*span, place, f"{asked.site}{page}"))
    more = f" and {len(answer.evidence) - CITED} more" if len(answer.evidence) > CITED else ""
    return Written(f"{text}{more}." if is_cited else text, tuple(citations))


def own_fields(asked: Asked, answer: Answer) -> dict[str, Any]:
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


def usage(ledger: Ledger, read: str, written: str) -> dict[str, Any]:
    """Count the tokens of an answer under names that begin with `read` and `written`, the words of the form."""
    tokens_read = ledger.input_tokens + ledger.estimated_tokens
    return {
        f"{read}_tokens": tokens_read,
        f"{written}_tokens": ledger.output_tokens,
        "total_tokens": tokens_read + ledger.output_tokens,
        f"{read}_tokens_details": {"cached_tokens": ledger.cached_tokens, "cache_write_tokens": 0},
        f"{written}_tokens_details": {"reasoning_tokens": 0},
    }
