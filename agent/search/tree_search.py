"""A search over the tree in the hands of an agent: segments, memory, and history of rewards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import ScoredSegment, Segment
from kinodex.agent.requests.tree import Decide, SegmentScores
from kinodex.agent.search.coverage import Times
from kinodex.agent.search.memory import Memory
from kinodex.agent.search.tree import Candidate, Tree, unseen_times
from kinodex.agent.session import Session
from kinodex.agent.traces.events import CandidateScore, Expanded, Remembered, Scored
from kinodex.agent.videos.environment import Environment

WHOLE_ROUND_S = 10.0
"""A segment as long as this has frames for a round, at a frame a second."""


class TreeSearch:
    """The state of a search: candidates S, memory M and reward history H_r (VCA and EEA, Algorithm 1 of both)."""

    def __init__(self, session: Session, capacity: int) -> None:
        self.session, self.question, self.account = session, session.question, session.account
        self.tree = Tree()
        self.memory = Memory(capacity, cited=session.cited)
        self.history: list[ScoredSegment] = []
        session.last_resort = lambda: self.step(must_answer=True) if self.memory.frames else None
        if session.prior_frames:  # the evidence before a follow-up question
            frames = session.label(session.prior_frames)[-capacity:]
            self.remember(frames, [None] * len(frames))

    @property
    def environment(self) -> Environment:
        return self.session.environment

    def step(self, *, must_answer: bool = False) -> Decide:
        """Return the agent's request for the next step, or with `must_answer` for the answer."""
        raise NotImplementedError

    def unseen_s(self, segment: Segment) -> Times:
        """Return the times of the frames in a segment that were not shown yet."""
        return unseen_times(self.tree, self.environment, self.account, segment)

    def frames_at(self, video_id: str, times_s: Times) -> tuple[ShownFrame, ...]:
        """Return the frames of a video at some times."""
        return self.environment.frames(video_id, times_s)

    def divide(
        self, number: int, times_s: Times, anchors_s: Sequence[float] = (), *, keep: bool = False
    ) -> tuple[tuple[ShownFrame, ...], list[Candidate]]:
        """Divide a segment at the frames of these times, of which some are anchors; or `keep` it beside its parts."""
        segment = self.tree.candidates[number].segment
        frames = self.session.label(self.frames_at(segment.video_id, times_s))
        parts = self.tree.divide(number, frames, keep=keep)
        anchored = tuple(frame.frame_no for frame in frames if frame.time_s in anchors_s)
        children = tuple(part.segment for part in parts)
        self.session.emit(Expanded(self.account.rounds, segment, children, frames, anchored))
        return frames, parts

    def keep_rewards(self, parts: Sequence[Candidate], reply: SegmentScores | None) -> None:
        """Note the rewards of a reply in the segments and in the history."""
        by_number = {score.segment: score for score in reply.segments} if reply else {}
        for part in parts:
            if score := by_number.get(part.segment.number):
                part.reward, part.explanation = score.score, score.reasoning
        self.history += [
            ScoredSegment(part.segment, part.reward, part.explanation) for part in parts if part.reward is not None
        ]

    def remember(
        self,
        frames: Sequence[ShownFrame],
        rewards: Sequence[float | None],
        evicted: Sequence[ShownFrame] = (),
    ) -> None:
        """Add the frames of a round to the memory; `evicted` are those that left it before they came."""
        left = self.memory.add(frames, rewards)
        self.session.emit(Remembered(self.account.rounds, tuple(frames), (*evicted, *left)))

    def scored(self, score: Callable[[Candidate], float | None]) -> tuple[ScoredSegment, ...]:
        """Return the candidates with their scores; those without unseen frames cannot be explored."""
        return tuple(
            ScoredSegment(
                each.segment,
                score(each),
                each.explanation,
                explorable=len(self.unseen_s(each.segment)) > 0,
                divided=each.divided,
                rated=each.reward is not None,
            )
            for each in self.tree.candidates.values()
        )

    def emit_rewards(self) -> None:
        """Emit the candidates with their rewards, where nothing is fused."""
        scores = (
            CandidateScore(each.segment.number, each.reward, 0.0, (each.reward or 0.0) / 100, each.explanation)
            for each in self.tree.candidates.values()
        )
        self.session.emit(Scored(self.account.rounds, None, tuple(scores)))


def longest_search(request: Request[Any]) -> Mapping[str, Any] | None:
    """Assume for a dry run the search that costs most: of segments with frames for a whole round the shortest.

    Where there is none, the shortest of all: so a search of a short video takes most rounds.
    """
    if not isinstance(request, Decide) or request.must_answer or not request.listed:
        return None
    lengths_s = {each.segment.number: each.segment.end_s - each.segment.start_s for each in request.listed}
    chosen = min(lengths_s, key=lambda number: (lengths_s[number] < WHOLE_ROUND_S, lengths_s[number]))
    return {**request.example(), "action": "explore", "segment": chosen}


def reward_of(candidate: Candidate) -> float | None:
    """Return the reward of a candidate, None if it has none."""
    return candidate.reward
