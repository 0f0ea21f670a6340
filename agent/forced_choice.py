"""The last request of a question that has to be answered by an option: for its letter, and nothing else.

It is asked where the replies before it could not be used, of what was shown for them. So a question that has to be
answered ends without an option only if no reply came at all, or none that names one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kinodex.agent.answer import Answer
from kinodex.agent.errors import AllRejected, ModelRejected, OutOfBudget
from kinodex.agent.evidence import Shown
from kinodex.agent.protocol.exchange import Models, policy_has_language
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.replies.schema import Bounds, Schema, only
from kinodex.agent.requests.answer import AnswerRequest, Conclusion, answer_in_words, letters
from kinodex.agent.requests.named_option import named_option
from kinodex.agent.session import LastWord, Session

WITHOUT_REPLY = ("invalid", "insufficient_evidence")
_LETTER = re.compile(r"(?<![\w'’])[A-Z](?![\w'’]|\s+(?!(?:or|and|is)\b)[a-z])")
"""A letter that stands alone, and does not begin a sentence as "A" and "I" do."""


@dataclass(frozen=True, kw_only=True)
class ChooseLetter(AnswerRequest):
    """Choose the letter of an option from `frames` and `notes`, or from neither."""

    template: ClassVar[str] = "choose_letter"
    role: ClassVar[str] = "policy"
    temperature: ClassVar[float] = 0.0
    frames: tuple[ShownFrame, ...] = ()
    notes: tuple[Note, ...] = ()

    def schema(self, *, reasoning: bool = True) -> Schema:
        return only(super().schema(reasoning=reasoning), "option" if self.question.options else "answer")

    def bounds(self) -> Bounds:
        return letters(self.question, or_null=False)

    def in_words(self, text: str) -> Conclusion | None:
        """Read the one letter of an option that a text has, whatever stands around it."""
        named = {*_LETTER.findall(text)} & {letter for letter, _ in self.question.lettered}
        if named_option(text, self.question.options) is None and len(named) == 1:
            text = named.pop()
        decision = answer_in_words(self.question, text)
        return None if decision is None else Conclusion.model_validate(decision)


@dataclass(frozen=True, kw_only=True)
class ChooseLetterBySight(ChooseLetter):
    """Choose it by the model that sees, where that was asked before."""

    role: ClassVar[str] = "vision"


async def with_choice(session: Session, answer: Answer, models: Models) -> Answer:
    """Return an answer with an option where one has to be chosen and the replies so far named none."""
    is_due = session.rules.at_the_end == "never" and session.question.options and answer.status in WITHOUT_REPLY
    if not is_due or not policy_has_language(models) or session.account.exhausted() or session.stop.stopped:
        return answer
    request = _request(session, session.last_word or session.last_resort())
    try:
        with suppress(OutOfBudget):
            reply = await session.ask(request, final=True)
            if reply is not None:
                shown: Shown = (*request.frames, *request.notes)
                return session.accept(reply, shown, sufficient=True, forced=True, reason=answer.reason)
    except AllRejected:
        raise
    except ModelRejected:
        return answer
    return replace(answer, ledger=session.account.ledger)


def _request(session: Session, last: LastWord | None) -> ChooseLetter:
    kind = ChooseLetterBySight if last is not None and last.role == "vision" else ChooseLetter
    shown: Mapping[str, Any] = {} if last is None else {"frames": last.frames, "notes": getattr(last, "notes", ())}
    return kind(question=session.question, videos=session.environment.videos, declining="never", **shown)
