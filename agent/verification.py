"""The gate of all agents: a second look at an answer's evidence alone, which must come to the same answer.

The second look is shown the frames and notes that the answer cites (all that its model was shown, if it cites none),
not the conversation, and not the answer if there are options. If it comes to another answer, or to none, a search that
can go on does so, with that doubt; an answer that stands all the same is marked as not `supported`. The calls are in
the answer's ledger. A doubt is raised once: an agent that gives the same answer on the same evidence again has
considered it. A second look that the server refuses (a filter of content, too many tokens), or to which no valid reply
comes, says nothing of an answer, which stands as not verified; only a server that refuses every request ends a run.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from agent.answer import Answer
from agent.core.protocol import ShownFrame, request_key
from agent.core.question import Note
from agent.errors import AllRejected, ModelRejected, OutOfBudget
from agent.evidence import Shown, cited_items
from agent.requests.answer import Answered, Conclusion
from agent.requests.verify import Verify, VerifyNotes
from agent.session import Session, answer_text
from agent.trace.events import Acted

Claim = tuple[str, int | None]
INVALID = "no reply of the second look was valid"
UNAFFORDABLE = "no budget was left for a second look"
STOPPED = "the run was stopped before a second look"


class Gate:
    """The second looks of one run; `session.doubt` asks it from now on."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._looks: dict[str, Conclusion | None] = {}
        self._refusals: dict[str, str] = {}
        self._doubted: set[tuple[str, Claim]] = set()
        session.doubt = self.doubt

    async def doubt(self, reply: Answered, shown: Shown) -> str:
        """Say why an answer is in doubt; "" if it is not, if it was before, or without a budget for a second look."""
        request = self._request(reply, shown)
        key = (request_key(request), self._claim(reply)) if request else ("", self._claim(reply))
        if key in self._doubted:
            return ""
        supported: bool | None = None
        with suppress(OutOfBudget):
            supported = await self._is_supported(reply, request, final=False)
        if supported is not False:
            return ""
        self._doubted.add(key)
        self.session.tentative = reply, shown  # better than none, should the search end without another one
        return self._why(request)

    async def mark(self, answer: Answer) -> Answer:
        """The answer of the run with its `supported`, or with the reason why it could not be verified."""
        if self.session.basis is None or (answer.text is None and answer.option is None):
            return answer
        reply, shown = self.session.basis
        request = self._request(reply, shown)
        try:
            supported = await self._is_supported(reply, request, final=not self.session.stop.stopped)
            unverified = self._refusals.get(request_key(request), INVALID) if request and supported is None else ""
        except OutOfBudget:
            supported, unverified = None, STOPPED if self.session.stop.stopped else UNAFFORDABLE
        return replace(answer, supported=supported, unverified=unverified, ledger=self.session.account.ledger)

    async def _is_supported(self, reply: Answered, request: Verify | None, *, final: bool) -> bool | None:
        """True if the second look comes to the same answer, None if it was invalid twice or refused."""
        if request is None:  # nothing was shown, or all looks failed
            return False
        key = request_key(request)
        if key not in self._looks:
            look = self._looks[key] = await self._look(request, final=final)
            self._record(reply, look, self._refusals.get(key, ""))
        look = self._looks[key]
        return None if look is None else self._agrees(look, reply)

    async def _look(self, request: Verify, *, final: bool) -> Conclusion | None:
        try:
            return await self.session.ask(request, final=final)
        except ModelRejected as error:
            if isinstance(error, AllRejected):
                raise
            self._refusals[request_key(request)] = f"the second look was refused: {error}"
            return None

    def _record(self, reply: Answered, look: Conclusion | None, refusal: str) -> None:
        """Emit what a second look found, beside the answer that it was to find."""
        found = "nothing valid" if look is None else look.action if look.declines else self._words(look)
        problem = f"not verified, {refusal or INVALID}"
        if look is not None:
            agrees = self._agrees(look, reply)
            problem = "" if agrees else "it does not come to the answer that rests on this evidence"
        arguments = {"answer": self._words(reply), "second_look": "refused" if refusal else found}
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
        look = self._looks[request_key(request)]
        if look is None or look.declines:
            return "a second look at the evidence of that answer alone does not find it there; look for what shows it"
        return f"a second look at the evidence of that answer alone says: {self._words(look)}; look for what settles it"

    def _words(self, reply: Answered) -> str:
        text, option = answer_text(self.session.question, reply)
        return (text or "") if option is None else ". ".join(self.session.question.lettered[option])

    def _claim(self, reply: Answered) -> Claim:
        """The part of a reply that two have in common if they are one answer."""
        text, option = answer_text(self.session.question, reply)
        return (" ".join((text or "").casefold().split()).strip(" .\"'"), option)
