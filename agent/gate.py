"""The gate of all agents: a second look at an answer's evidence alone, which must come to the same answer.

The second look is shown the frames and notes that the answer cites (all that its model was shown, if it cites none),
not the conversation, and not the answer if there are options. If it comes to another answer, or to none, a search
that can go on does so, with that doubt; an answer that stands all the same is marked as not `supported`. The calls
are in the answer's ledger. A doubt is raised once: an agent that gives the same answer on the same evidence again
has considered it. A second look that the server refuses (a filter of content, too many tokens), or to which no valid
reply comes, says nothing of an answer, which stands as not verified; only a server that refuses every request ends a
run.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from kinodex.agent.answer import Answer
from kinodex.agent.errors import AllRejected, ModelRejected, OutOfBudget
from kinodex.agent.evidence import Shown, cited_items
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.request_key import request_key
from kinodex.agent.requests.answer import Answered, Conclusion
from kinodex.agent.requests.verify import Verify, VerifyNotes
from kinodex.agent.session import Session, answer_text
from kinodex.agent.traces.events import Acted

Claim = tuple[str, int | None]
INVALID = "no reply of the second look was valid"
UNAFFORDABLE = "no budget was left for a second look"
STOPPED = "the run was stopped before a second look"


class Gate:
    """The second looks of one run; `session.doubt` asks it from now on."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._looks: dict[str, tuple[Conclusion | None, str]] = {}
        """By the key of a request: what it found, or why it came to nothing."""
        self._doubted: set[tuple[str, Claim]] = set()
        session.doubt = self.doubt

    async def doubt(self, reply: Answered, shown: Shown) -> str:
        """Say why an answer is in doubt; "" if it is not, if it was before, or without a budget for a second look."""
        request = self._request(reply, shown)
        key = (request_key(request) if request else "", self._claim(reply))
        with suppress(OutOfBudget):
            if key not in self._doubted and await self._is_supported(reply, request, final=False) is False:
                self._doubted.add(key)
                self.session.tentative = reply, shown  # better than none, should the search end without another one
                return self._why(request)
        return ""

    async def mark(self, answer: Answer) -> Answer:
        """Return the answer of the run with its `supported`, or with the reason why it could not be verified."""
        if self.session.basis is None or (answer.text is None and answer.option is None):
            return answer
        reply, shown = self.session.basis
        request, stopped = self._request(reply, shown), self.session.stop.stopped
        try:
            supported = await self._is_supported(reply, request, final=not stopped)
            unverified = self._looks[request_key(request)][1] if request else ""
        except OutOfBudget:
            supported, unverified = None, STOPPED if self.session.stop.stopped else UNAFFORDABLE
        return replace(answer, supported=supported, unverified=unverified, ledger=self.session.account.ledger)

    async def _is_supported(self, reply: Answered, request: Verify | None, *, final: bool) -> bool | None:
        """Return True if the second look comes to the same answer, None if it was invalid twice or refused."""
        if request is None:  # nothing was shown, or all looks failed
            return False
        key = request_key(request)
        if key not in self._looks:
            self._looks[key] = await self._look(request, final=final)
            self._record(reply, *self._looks[key])
        look, _ = self._looks[key]
        return None if look is None else self._agrees(look, reply)

    async def _look(self, request: Verify, *, final: bool) -> tuple[Conclusion | None, str]:
        try:
            look = await self.session.ask(request, final=final)
        except AllRejected:
            raise
        except ModelRejected as error:
            return None, f"the second look was refused: {error}"
        return look, INVALID if look is None else ""

    def _record(self, reply: Answered, look: Conclusion | None, why: str) -> None:
        """Emit what a second look found, beside the answer that it was to find."""
        if look is None:
            found, problem = "nothing valid" if why == INVALID else "refused", f"not verified, {why}"
        else:
            found = look.action if look.declines else self._words(look)
            agrees = self._agrees(look, reply)
            problem = "" if agrees else "it does not come to the answer that rests on this evidence"
        arguments = {"answer": self._words(reply), "second_look": found}
        self.session.emit(Acted(self.session.account.rounds, "verify", arguments, problem=problem))

    def _agrees(self, look: Conclusion, reply: Answered) -> bool:
        return not look.declines and self._claim(look) == self._claim(reply)

    def _request(self, reply: Answered, shown: Shown) -> Verify | None:
        items = cited_items(shown, reply.evidence)
        if not items:
            return None
        question, videos = self.session.question, self.session.environment.videos
        claim = "" if question.options else self._words(reply)
        # A search shows frames of earlier rounds at low detail; what an answer rests on is looked at in full.
        frames = tuple(replace(each, detail="auto") for each in items if isinstance(each, ShownFrame))
        notes = tuple(each for each in items if isinstance(each, Note))
        kind = Verify if frames else VerifyNotes
        declining = self.session.rules.at_the_end
        return kind(question=question, videos=videos, claim=claim, frames=frames, notes=notes, declining=declining)

    def _why(self, request: Verify | None) -> str:
        if request is None:
            return "the answer rests on nothing that was seen; look for what shows it"
        look, _ = self._looks[request_key(request)]
        if look is None or look.declines:
            return "a second look at the evidence of that answer alone does not find it there; look for what shows it"
        return f"a second look at the evidence of that answer alone says: {self._words(look)}; look for what settles it"

    def _words(self, reply: Answered) -> str:
        text, option = answer_text(self.session.question, reply)
        return (text or "") if option is None else ". ".join(self.session.question.lettered[option])

    def _claim(self, reply: Answered) -> Claim:
        """Return the part of a reply that two have in common if they are one answer."""
        text, option = answer_text(self.session.question, reply)
        return (" ".join((text or "").casefold().split()).strip(" .\"'"), option)
