"""VCA's ablation "w/o tree search" (section 4.3): the policy names the frames that it wants to see, without segments.

The paper says no more than that. Decided here: the first frames are equally spaced, as in VCA; each later round
shows the unseen frames nearest to the times that the policy names; the oldest frames leave the memory, since without
segments there are no rewards. A model that twice gives up while frames are unseen is shown frames spread over the
rest.
"""

from __future__ import annotations

import numpy as np

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.search.coverage import Times, nearest, spread
from kinodex.agent.search.tree import affordable
from kinodex.agent.search.tree_search import TreeSearch
from kinodex.agent.search.video_choice import start_multi_video
from kinodex.agent.session import NO_DECISION, Session
from kinodex.agent.traces.events import Acted, Decided
from kinodex.agent.variants.vca.frame_choice import ChooseFrames
from kinodex.agent.variants.vca.parameters import VCAParameters
from kinodex.agent.variants.vca.requests import ExploreSegment


async def without_tree(session: Session, parameters: VCAParameters) -> Answer:
    """Answer from frames chosen one by one; raises `OutOfBudget` as VCA does."""
    return await _Frames(session, parameters).run()


class _Frames(TreeSearch):
    """A search whose tree is never divided: its candidates are the whole videos."""

    def __init__(self, session: Session, parameters: VCAParameters) -> None:
        super().__init__(session, parameters.memory)
        self.parameters = parameters
        self.seen: list[tuple[str, float]] = []

    async def run(self) -> Answer:
        number = await start_multi_video(self.session, self.tree, self.parameters.videos)
        first = self.tree.candidates[number].segment
        video_id, count = first.video_id, affordable(self.account, self.parameters.frames)
        chosen_s = spread(first.start_s, first.end_s, self.unseen_s(first), count)
        while True:
            self.account.begin_round()
            self._look(video_id, chosen_s)
            choice = await self._choose(affordable(self.account, self.parameters.frames))
            if isinstance(choice, Answer):
                return choice
            video_id, chosen_s = choice

    def _look(self, video_id: str, times_s: Times) -> None:
        frames = self.session.label(self.environment.frames(video_id, times_s))
        self.tree.sampled |= {(video_id, frame.frame_no) for frame in frames}
        self.seen += [(video_id, frame.time_s) for frame in frames]
        times = tuple(times_s.tolist())
        self.session.emit(Acted(self.account.rounds, "look", {"video": video_id, "times_s": times}))
        self.remember(frames, [None] * len(frames))

    def step(self, *, must_answer: bool = False) -> ExploreSegment:
        return ExploreSegment(
            question=self.question,
            videos=self.environment.videos,
            candidates=(),
            frames=self.memory.in_time_order,
            scores="none",
            must_answer=must_answer,
        )

    async def _choose(self, count: int) -> tuple[str, Times] | Answer:
        """Return the next video and the times of its unseen frames nearest to those requested, or the answer."""
        session, frames = self.session, self.memory.in_time_order
        wholes = (Segment(0, each.video_id, each.start_s, each.end_s) for each in self.environment.videos)
        unseen_s = {each.video_id: self.unseen_s(each) for each in wholes}
        over = session.over()
        if over or not any(len(times_s) for times_s in unseen_s.values()):
            return await session.conclude(self.step(must_answer=True), over or "")
        request = ChooseFrames(
            question=session.question,
            videos=self.environment.videos,
            frames=frames,
            seen=tuple(self.seen),
            count=count,
            declining=session.rules.while_searching,
            exhausted=tuple(video_id for video_id, times_s in unseen_s.items() if not len(times_s)),
        )
        reply = await session.ask_to_search(request)
        if reply is None:
            return await session.conclude(self.step(must_answer=True), reason=NO_DECISION)
        doubt = await session.doubt(reply, frames) if reply.action == "answer" else ""
        if doubt or (reply.declines and request.declining != "allowed"):
            video_id = max(unseen_s, key=lambda each: len(unseen_s[each]))
            left_s = unseen_s[video_id]
            return video_id, spread(float(left_s[0]), float(left_s[-1]), left_s, count)
        if reply.action == "look":
            session.emit(Decided(self.account.rounds, reply.action, None, forced=False))
            video_id = self.environment.video(reply.video).video_id
            return video_id, nearest(np.asarray(reply.times_s), unseen_s[video_id])
        return session.accept(reply, frames, sufficient=reply.action == "answer")
