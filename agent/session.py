"""A session: one question while it is answered, with what all agents share.

Every request passes through it, so that frames are counted, replies checked and budgets enforced in one place. After
an invalid reply the request is repeated once, with the fault; the reply is never replaced by a guess. If that fails
too, the best answer so far is asked for. A reply that gives up while there is more to look at is asked for again, as
`AnswerRules` say; a run whose models make no sense for several rounds ends (`UsableReplies`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from kinodex.agent.answer import Answer, Status
from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.attempts import ATTEMPTS, ask_once, ask_until_usable
from kinodex.agent.errors import BadSettings, NoUsableReply, OutOfBudget
from kinodex.agent.evidence import Shown, evidence_ranges, shown_numbers
from kinodex.agent.limits.account import Account
from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.parallel_calls import gather_all
from kinodex.agent.limits.stop import StopSignal
from kinodex.agent.limits.work_clock import time_limit
from kinodex.agent.prompts.shortening import fit_pictures, fit_request
from kinodex.agent.prompts.tokens import estimate_request
from kinodex.agent.protocol.exchange import Exchange, Model, Models, model_for, policy_has_language
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import R, Reply
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import ScoredSegment
from kinodex.agent.requests.answer import (
    Answered,
    AnswerRequest,
    Conclusion,
    Recall,
    chosen_option,
)
from kinodex.agent.requests.tree import Decide, Decision
from kinodex.agent.traces.events import Decided, Event, Exchanged
from kinodex.agent.traces.replay import ReplayModel
from kinodex.agent.usable_replies import UsableReplies
from kinodex.agent.videos.environment import Environment

A = TypeVar("A")
Emit = Callable[[Event], None]
Doubt = Callable[[Answered, Shown], Awaitable[str]]
"""Says why an answer that rests on what was shown is in doubt; "" if it is not."""
LastWord = Decide | AnswerRequest
"""A request that ends in an answer, or in there being none."""
REPLY_TOKENS = 256
"""Of a reply that is expected, where tokens are limited: reasons in three sentences and what they are for."""
NO_DECISION = "the model gave no valid decision in two attempts; this is its best answer so far"
NO_ANSWER = "no valid answer in two attempts"
READ = "words of {moments} moments were read in the place of pictures"
DOCTOR = "`kinodex doctor --base-url URL` finds out what the endpoint can do"


class Session:
    """The environment, the models and the account of one question; `emit` receives every event."""

    def __init__(
        self,
        question: Question,
        environment: Environment,
        models: Models,
        budget: Budget,
        emit: Emit,
        rules: AnswerRules = USUAL,
        stop: StopSignal | None = None,
    ) -> None:
        self.question = question
        self.environment = environment
        self.account = Account(budget, environment.index_frames)
        self.emit = emit
        self.rules = rules
        self.stop = stop or StopSignal()
        self.replies = UsableReplies()
        self._models = models
        self._labels: dict[tuple[str, int], int] = {}
        self.prior_frames: tuple[ShownFrame, ...] = ()
        """In a follow-up question, the frames that the answers before it rest on, by video and in time order."""
        self.prior_notes: tuple[Note, ...] = ()
        """The same of notes."""
        self.cited: set[tuple[str, int]] = set()
        """Video and number of the frames that findings of the run cite."""
        self.chapters: tuple[Note, ...] = ()
        """Scenes and chapters that the prompts of the run list (`kinodex.agent.search.chapters`)."""
        self.tentative: tuple[Answered, Shown] | None = None
        """An answer that the agent has but is not content with, and what it rests on."""
        self.basis: tuple[Answered, Shown] | None = None
        """The reply that the answer was made of, and what was shown."""
        self.last_word: LastWord | None = None
        """The last request for the answer."""
        self.doubt: Doubt = _no_doubt
        """The gate, for a search that could go on; set by `kinodex.agent.gate`."""
        self.last_resort: Callable[[], LastWord | None] = lambda: None
        """The request for the best answer so far, should a budget end the run; None while nothing was seen."""
        self.sees = True
        """False if no model of the agent's roles takes pictures."""

    async def ask(self, request: Request[R], *, final: bool = False) -> R | None:
        """Ask for a checked reply, twice at most; None if both were invalid. What a reply leaves out is asked for too.

        Raises `OutOfBudget` if the budget does not allow the call; all but a `final` one leave enough for a final one.
        """
        return (await ask_until_usable(partial(self.exchange, final=final), request)).given

    async def ask_to_search(self, request: Request[R]) -> R | None:
        """Ask for the next step of a search as `ask` does, and again if the reply gives up and may not.

        The reply is what was said at last: it may still give up, and then does not end the search.
        """
        reply = await self.ask(request)
        if reply is None or not reply.declines or request.declining == "allowed":
            return reply
        self.account.count_declined()
        if request.declining == "never":  # the request does not offer it: asked again, the model would say it again
            return reply
        second = await self.ask(_told(request, ATTEMPTS, request.refusal(), reply))
        if second is None:
            return reply
        if second.declines:
            self.account.count_declined()
        return second

    async def ask_all(self, requests: Sequence[Request[R]]) -> list[R | None]:
        """Ask requests that do not depend on each other at once; the replies are those of `ask`."""
        return await gather_all([self.ask(request) for request in requests])

    async def decide(self, request: Decide) -> int | Answer:
        """Ask for the number of the segment to explore next, or the answer.

        An answer is demanded if nothing is left to explore or the budget would not last for another round
        like this.
        """
        over = self.over()
        if over is not None or not any(candidate.explorable for candidate in request.candidates):
            return await self.conclude(replace(request, must_answer=True), over or "")
        request = replace(request, declining=self.rules.while_searching)
        decision = await self.ask_to_search(request)
        if decision is None:
            return await self.conclude(replace(request, must_answer=True), reason=NO_DECISION)
        if decision.declines and request.declining != "allowed":
            return self._explore(_most_promising(request.candidates), forced=True)
        if decision.action == "explore" and decision.segment is not None:
            return self._explore(decision.segment, forced=False)
        if decision.action == "answer" and (doubt := await self.doubt(decision, _shown(request))):
            return await self._explore_in_doubt(request, decision, doubt)
        return self._concluded(request, decision)

    async def _explore_in_doubt(self, request: Decide, answer: Decision, doubt: str) -> int:
        """Ask where to look after an answer that is in doubt; without a reply to that, where the score is highest."""
        decision = await self.ask(_told(request, 2 * ATTEMPTS, doubt, answer))
        if decision is not None and decision.action == "explore" and decision.segment is not None:
            return self._explore(decision.segment, forced=False)
        return self._explore(_most_promising(request.candidates), forced=True)

    def _explore(self, segment: int, *, forced: bool) -> int:
        self.emit(Decided(self.account.rounds, "explore", segment, forced))
        return segment

    def label(self, frames: Sequence[ShownFrame]) -> tuple[ShownFrame, ...]:
        """Number frames in the order of their arrival in this run; a frame keeps its number for good."""
        for frame in frames:
            self._labels.setdefault((frame.video_id, frame.frame_no), len(self._labels) + 1)
        return tuple(replace(each, label=self._labels[each.video_id, each.frame_no]) for each in frames)

    def over(self) -> str | None:
        """Return the budget that would not last for another round like the present one, if one would not; or a stop."""
        return self.stop.over() or self.account.exhausted_by_round()

    async def conclude(self, request: LastWord, over: str = "", reason: str = "") -> Answer:
        """Ask for the answer. `over` is the budget that forces it, `reason` what else does, if anything.

        The frames stand in the order of time, and those that findings cite at full detail.
        """
        if request.frames:
            frames = sorted(request.frames, key=lambda each: (each.video_id, each.time_s))
            cited = [(each.video_id, each.frame_no) in self.cited for each in frames]
            shown = [replace(each, detail="auto") if it else each for each, it in zip(frames, cited, strict=True)]
            request = cast(LastWord, replace(cast(Any, request), frames=tuple(shown)))
        request = cast(LastWord, replace(cast(Any, request), declining=self.rules.at_the_end))
        self.last_word = request
        reply = await self.ask(cast(Request[Any], request), final=True)
        return self._concluded(request, reply, over, reason, forced=True)

    async def best_so_far(self, over: str = "", reason: str = "") -> Answer:
        """End the run because a budget is spent or the models make no sense: one last request for an answer.

        It is left out if it is not affordable any more, or would take too long after a stop; then, and if it fails, an
        answer is taken that the agent had before.
        """
        request = self.last_resort()
        if request is not None and not self.account.exhausted() and self._in_grace:
            with suppress(OutOfBudget):  # the time ran out, or a first reply that was invalid took the rest
                return await self.conclude(request, over, reason)
        if self.tentative is None and over:
            return self.answer(None, (), "budget_exhausted", over)
        return self._answer_without_reply(over, reason)

    @property
    def _in_grace(self) -> bool:
        """False after a stop, where the agent has an answer already or its models took longer than the grace is."""
        return not self.stop.stopped or (self.tentative is None and self.account.longest_call_s <= self.stop.grace_s)

    def _answer_without_reply(self, over: str, reason: str) -> Answer:
        """Return the answer that the agent had before the request for one failed, else none.

        Without one there is no answer, since the replies were invalid.
        """
        if self.tentative is not None:
            return self.accept(*self.tentative, sufficient=True, over=over, forced=True, reason=reason or NO_ANSWER)
        loss = self.replies.loss(self.account.rounds + 1)
        if not loss and not self.replies.none_usable:
            return self.answer(None, (), "invalid", NO_ANSWER)
        since = f" {loss}" if loss else ""
        fault = f"no reply of {self.replies.model} could be used{since}, the last because: {self.replies.fault}"
        return replace(self.answer(None, (), "invalid", f"{fault}; {DOCTOR}"), senseless=True)

    async def recall(self) -> Answer | None:
        if not self.prior_frames and not self.prior_notes:
            return None
        request = Recall(
            question=self.question, videos=self.environment.videos, frames=self.prior_frames, notes=self.prior_notes
        )
        reply = await self.ask(request)
        if reply is None or reply.action == "insufficient_evidence":
            return None
        return self._concluded(request, reply)

    def _concluded(
        self,
        request: LastWord,
        reply: Conclusion | Decision | None,
        over: str = "",
        reason: str = "",
        *,
        forced: bool = False,
    ) -> Answer:
        shown = _shown(request)
        if reply is None:
            return self._answer_without_reply(over, reason)
        sufficient = reply.action == "answer"
        if why := self._nothing_compared(request, reply):
            over, reason = over if sufficient else "", why
        return self.accept(reply, shown, sufficient=sufficient, over=over, forced=forced, reason=reason)

    def _nothing_compared(self, request: LastWord, reply: Answered) -> str:
        """Say why a reply of `similarity` rests on no comparison of pictures, nor on a line; "" if it does."""
        lines = shown_numbers(_shown(request))[len(request.frames) :]
        if policy_has_language(self._models) or any(number in reply.evidence for number in lines):
            return ""
        return self.environment.incomparable(self.question.options or (self.question.text,))

    def accept(
        self, reply: Answered, shown: Shown, *, sufficient: bool, over: str = "", forced: bool = False, reason: str = ""
    ) -> Answer:
        """Make the answer of a checked reply, or of evidence that is not `sufficient` for one.

        `over` is the budget that ended the search, `reason` what else did.
        """
        unfit: Status = "insufficient_evidence"
        if reply.evidence and not self.question.options and not policy_has_language(self._models):
            unfit = "evidence_only"
        self.emit(Decided(self.account.rounds, "answer" if sufficient else unfit, None, forced))
        if not sufficient:
            return self.answer(reply if unfit == "evidence_only" else None, shown, unfit, over or reason)
        return self.answer(reply, shown, "budget_exhausted" if over else "answered", over or reason)

    def answer(self, reply: Answered | None, shown: Shown, status: Status, reason: str = "") -> Answer:
        """Make the answer of a checked reply, with evidence among what was shown and the final bill."""
        text, option = (None, None) if reply is None else answer_text(self.question, reply)
        self.basis = None if reply is None else (reply, shown)
        evidence = () if reply is None else evidence_ranges(self.environment, shown, reply.evidence)
        is_cited = reply is not None and any(number in reply.evidence for number in shown_numbers(shown))
        bill = (self.account.rounds, self.account.ledger)
        if (moments := self.account.ledger.read_moments) and not reason:
            reason = READ.format(moments=moments)
        return Answer(status, text, option, evidence, *bill, reason, evidence_cited=is_cited)

    async def exchange(self, request: Request[R], *, final: bool = False) -> Exchange[R]:
        """Ask once, for agents that read invalid replies too; raises `OutOfBudget` as `ask` does.

        Raises `NoUsableReply` if the rounds before this one had only invalid replies, or too many replies.
        """
        over = self.stop.over(final=final)
        over = over or (self.account.exhausted() if final else self.account.exhausted_by_call())
        if over:
            raise OutOfBudget(over)
        if not final and (loss := self.replies.loss(self.account.rounds)):
            raise NoUsableReply(f"no reply could be used {loss}; this is the best answer so far")
        model = self._model(request.role)
        request, tokens = self._within_tokens(request, final=final)
        self.account.begin_call(request.frames, tokens)
        try:
            with self.account.clock.serving() as service:
                exchange = _decided(request, await self.in_time(ask_once(model, request), final=final), final=final)
        finally:
            self.account.end_call(tokens)
        waited_s = service.waited_s
        exchange = replace(exchange, seconds=max(0.0, exchange.seconds - waited_s), waited_s=waited_s)
        self.account.charge(
            exchange.usage, cached=exchange.cached, invalid=exchange.reply is None, seconds=exchange.seconds
        )
        if not request.any_text:
            self.replies.count(self.account.rounds, model.name, exchange.invalid)
        self.emit(Exchanged(self.account.rounds, model.name, request, exchange))
        return exchange

    def _within_tokens(self, request: Request[R], *, final: bool) -> tuple[Request[R], int]:
        """Return a request, and the tokens that it may take; 0 without a budget of tokens.

        A `final` one is shortened to what is left: what it quotes, then its pictures, those that findings cite last.
        Raises `OutOfBudget` for one that is too long all the same.
        """
        if (left := self.account.tokens_left) is None:
            return request, 0
        left -= REPLY_TOKENS
        if final:
            request = fit_request(request, left, estimate_request)
            request = fit_pictures(request, left, estimate_request, self.cited)
        if (tokens := estimate_request(request)) > left:
            raise OutOfBudget("tokens")
        return request, tokens + REPLY_TOKENS

    async def in_time(self, call: Awaitable[A], *, final: bool = False) -> A:
        """Await a call; raises `OutOfBudget` if a stop, or the end of the seconds of work that are left, cuts it."""
        try:
            async with self.stop.limit(final=final) as stop, time_limit(lambda: self.account.seconds_left) as limit:
                return await call
        except TimeoutError as error:
            if stop.expired() or limit.expired():
                raise OutOfBudget(self.stop.over(final=final) or "seconds") from error
            raise

    async def compute(self, function: Callable[..., A], *arguments: Any) -> A:
        """Call a function that computes for long in a thread, in time; its work counts from its beginning there."""

        def work() -> A:
            with self.account.clock.working():
                return function(*arguments)

        return await self.in_time(asyncio.to_thread(work))

    @property
    def known_videos(self) -> set[str]:
        """Ids of the videos with evidence from the questions before a follow-up question."""
        return {each.video_id for each in self.prior_frames} | {each.video_id for each in self.prior_notes}

    def with_model(self, model: Model) -> Session:
        """Return this session with one model for all roles, on the same account; a replayed one as it is."""
        if isinstance(self._models, ReplayModel):
            return self
        session = copy(self)
        session._models = model
        return session

    def model_name(self, role: str) -> str:
        """Return the name of the model of a role, in a replayed run of the one recorded: captions are stored under
        it.
        """
        model = self._model(role)
        return model.recorded_name(role) if isinstance(model, ReplayModel) else model.name

    def recording(self, role: str) -> ReplayModel | None:
        """Return the trace that answers requests of a role, if one is replayed."""
        model = self._model(role)
        return model if isinstance(model, ReplayModel) else None

    def _model(self, role: str) -> Model:
        model = model_for(self._models, role)
        if model is None:
            held = sorted(self._models) if isinstance(self._models, Mapping) else []
            raise BadSettings(f"no model for the role {role!r}, only for {held}; name a default one")
        return model


def _shown(request: LastWord) -> Shown:
    """Return the frames and notes that evidence may cite, in the order of their numbers."""
    return (*request.frames, *getattr(request, "notes", ()))


async def _no_doubt(reply: Answered, shown: Shown) -> str:
    return ""


def _told(request: Request[R], later: int, complaint: str, reply: Reply) -> Request[R]:
    """Return the request for another attempt, with a reply that could be read and what is wrong with it."""
    attempt, said = request.attempt + later, reply.model_dump_json()
    return replace(request, attempt=attempt, complaint=complaint, bad_reply=said)


def _most_promising(candidates: Sequence[ScoredSegment]) -> int:
    """Return the number of the segment with the highest score that can be explored.

    Of equals, one that was not explored before is taken.
    """
    open_ones = [each for each in candidates if each.explorable]
    return max(open_ones, key=lambda each: (each.score or 0.0, not each.divided)).segment.number


def answer_text(question: Question, reply: Answered) -> tuple[str | None, int | None]:
    option = chosen_option(question, reply)
    return (reply.answer, None) if option is None else (question.options[option], option)


def _decided(request: Request[R], exchange: Exchange[R], *, final: bool) -> Exchange[R]:
    """Return the last reply of a run that has to choose is invalid if it gives up."""
    if final and exchange.reply is not None and exchange.reply.declines and request.declining == "never":
        return replace(exchange, reply=None, invalid=request.refusal())
    return exchange
