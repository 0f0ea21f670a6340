"""EEA, the exploration-exploitation agent (arXiv 2512.03500): Algorithm 1, sections 3.1 to 3.3, Tables 7 to
11.

What the paper leaves open, and what was decided (the formulas' own gaps: `fusion`, `anchors`, `coverage`):

- Segments have numbers that are unique in a run, so that a choice cannot be misread as a label of an
  earlier round.
- Several videos are several roots; the first segment is the video with the highest query score, the rest
  stay candidates.
- Rewarding the children and proposing queries do not depend on each other and run side by side. So the new
  anchors are there before the fusion, and the query scores of all candidates, not of the new ones alone,
  follow them.
- An anchor on the border of two segments counts for both, and a frame seen once is never sampled again.
- A frame's reward in the memory is the larger of the two segments it borders.
- The reward model sees the history of all rounds; a segment that it leaves out has no reward, which counts
  as the lowest.
- A segment without unseen frames cannot be explored, so every round shows something new and the search ends
  by itself; usually a budget ends it before (`Session.decide`).

Parts can be switched off as in Table 3: `semantic_guided_expansion` (then frames are spread uniformly),
`uncertainty_aware_fusion` (then the score is the intrinsic reward alone), `query_update`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agent.anchors import Anchor, anchors
from agent.answer import Answer
from agent.coverage import Times, cover, spread
from agent.environment import Match
from agent.errors import BadSettings
from agent.events import CandidateScore, Expanded, QueriesAdded, Remembered, Scored
from agent.fusion import QUERY_TEMPERATURE, fuse, query_score, reward_entropy
from agent.memory import Memory
from agent.model import ShownFrame
from agent.question import ScoredSegment
from agent.requests import Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from agent.session import Session, together
from agent.tree import Candidate, Tree, border_rewards, unseen_times

SHORT_VIDEO_S = 300.0
MAX_NEW_QUERIES = 5


@dataclass(frozen=True, slots=True)
class EEAParameters:
    """The paper's settings for long videos; `for_duration` gives those for short ones. Times in seconds."""

    frames: int = 6
    """Frames sampled a round, B."""
    anchor_frames: int = 3
    """How many of them may be anchors, B_s."""
    memory: int = 16
    query_temperature: float = QUERY_TEMPERATURE
    matches: int = 16
    """Frames retrieved for each query in each video."""
    clip_s: float = 8.0
    semantic_guided_expansion: bool = True
    uncertainty_aware_fusion: bool = True
    query_update: bool = True

    def __post_init__(self) -> None:
        if self.frames < 1 or self.memory < 1 or not 0 <= self.anchor_frames <= self.frames:
            raise BadSettings(f"got frames={self.frames}, anchor_frames={self.anchor_frames}, "
                              f"memory={self.memory}; frames and memory are at least 1, anchor_frames is from "
                              "0 to frames")

    @classmethod
    def for_duration(cls, duration_s: float) -> EEAParameters:
        return cls(frames=4, anchor_frames=3, memory=8) if duration_s < SHORT_VIDEO_S else cls()


async def eea(session: Session, parameters: EEAParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the search midway."""
    return await _Search(session, parameters).run()


class _Search:
    """The state of Algorithm 1: candidates S, memory M, reward history H_r, queries C and anchors A."""

    def __init__(self, session: Session, parameters: EEAParameters) -> None:
        self.session, self.parameters = session, parameters
        self.environment, self.account = session.environment, session.account
        self.tree = Tree.over(self.environment.videos)
        self.memory = Memory(parameters.memory)
        self.history: list[ScoredSegment] = []
        self.queries: list[str] = []
        self.matches: list[Match] = []
        self.anchors: list[Anchor] = []
        session.last_resort = self._last_resort

    async def run(self) -> Answer:
        if self.parameters.semantic_guided_expansion or self.parameters.uncertainty_aware_fusion:
            discovered = await self.session.ask(DiscoverQueries(question=self.session.question))
            self._add_queries(discovered.queries if discovered else [])
        self._score_queries()
        selected = max(self.tree.candidates.values(), key=lambda each: each.query_score).segment.number
        while True:
            self.account.begin_round()
            frames, parts = self._expand(selected)
            await self._evaluate(selected, frames, parts)
            self._remember(frames, parts)
            decision = await self.session.decide(self._scored(), self.memory.frames)
            if isinstance(decision, Answer):
                return decision
            selected = decision

    def _expand(self, number: int) -> tuple[tuple[ShownFrame, ...], list[Candidate]]:
        """Lines 9 and 10: the best anchors of the segment, then whatever covers the rest of it best."""
        segment = self.tree.candidates[number].segment
        unseen = unseen_times(self.environment, self.account, segment)
        left = self.account.frames_left
        count = self.parameters.frames if left is None else min(self.parameters.frames, left)
        chosen_s, anchors_s = spread(segment.start_s, segment.end_s, unseen, count), unseen[:0]
        if self.parameters.semantic_guided_expansion:
            anchors_s = self._best_anchors(segment.video_id, unseen, count)
            others_s = np.setdiff1d(unseen, anchors_s)
            chosen_s = np.union1d(anchors_s, cover(unseen, others_s, anchors_s, count - len(anchors_s)))
        frames = tuple(self.environment.frames(segment.video_id, chosen_s.tolist()))
        parts = self.tree.divide(number, frames)
        anchor_frame_nos = tuple(frame.frame_no for frame in frames if frame.time_s in anchors_s)
        children = tuple(part.segment for part in parts)
        self.session.emit(Expanded(self.account.rounds, segment, children, frames, anchor_frame_nos))
        return frames, parts

    def _best_anchors(self, video_id: str, unseen: Times, count: int) -> Times:
        inside = [each for each in self.anchors if each.video_id == video_id and each.time_s in unseen]
        inside.sort(key=lambda each: -each.similarity)
        best = inside[: min(self.parameters.anchor_frames, count)]
        return np.asarray(sorted(each.time_s for each in best), dtype=np.float64)

    async def _evaluate(self, parent: int, frames: tuple[ShownFrame, ...], parts: list[Candidate]) -> None:
        """Lines 12 to 19, 22 and 23: intrinsic rewards beside new queries, query scores, fusion, history."""
        scoring = ScoreSegments(question=self.session.question, videos=self.environment.videos,
                                segments=tuple(part.segment for part in parts), frames=frames,
                                history=tuple(self.history), parent=parent if self.history else None)
        if self.parameters.query_update:
            proposing = ProposeQueries(question=self.session.question, known=tuple(self.queries), frames=frames)
            scores, proposed = await together(self.session.ask(scoring), self.session.ask(proposing))
            self._add_queries(proposed.queries if proposed else [])
        else:
            scores = await self.session.ask(scoring)
        by_number = {score.segment: score for score in scores.segments} if scores else {}
        for part in parts:
            if score := by_number.get(part.segment.number):
                part.reward, part.explanation = score.score, score.explanation
        self._score_queries()
        self._fuse()
        self.history += [ScoredSegment(part.segment, part.reward, part.explanation) for part in parts]

    def _add_queries(self, proposed: Sequence[str]) -> None:
        """Retrieve for the new queries only, merge with what was retrieved before, cluster again (section 3.1)."""
        known = {query.casefold() for query in self.queries}
        new = list(dict.fromkeys(query.strip() for query in proposed if query.strip().casefold() not in known))
        self.queries += new[:MAX_NEW_QUERIES]
        for query in new[:MAX_NEW_QUERIES]:
            for video in self.environment.videos:
                self.matches += self.environment.search(query, video.video_id, self.parameters.matches,
                                                        self.parameters.clip_s / 2)
        self.anchors = anchors(self.matches, self.parameters.clip_s)
        self.session.emit(QueriesAdded(self.account.rounds, tuple(new[:MAX_NEW_QUERIES]), tuple(self.anchors)))

    def _score_queries(self) -> None:
        for candidate in self.tree.candidates.values():
            segment = candidate.segment
            inside = [anchor.similarity for anchor in self.anchors if anchor.video_id == segment.video_id
                      and segment.start_s <= anchor.time_s <= segment.end_s]
            candidate.query_score = query_score(inside, self.parameters.query_temperature)

    def _fuse(self) -> None:
        candidates = list(self.tree.candidates.values())
        entropy = reward_entropy([candidate.reward for candidate in candidates])
        if not self.parameters.uncertainty_aware_fusion:
            entropy = 0.0
        for each in candidates:
            each.fused = fuse(each.reward, each.query_score, entropy)
        self.session.emit(Scored(self.account.rounds, entropy, tuple(
            CandidateScore(each.segment.number, each.reward, each.query_score, each.fused, each.explanation)
            for each in candidates)))

    def _remember(self, frames: tuple[ShownFrame, ...], parts: list[Candidate]) -> None:
        """Line 20: the frames enter the memory, those with the lowest rewards leave it."""
        evicted = self.memory.add(frames, border_rewards(frames, parts))
        self.session.emit(Remembered(self.account.rounds, frames, tuple(evicted)))

    def _scored(self) -> list[ScoredSegment]:
        """The candidates as the policy sees them."""
        return [ScoredSegment(each.segment, each.fused, each.explanation,
                              len(unseen_times(self.environment, self.account, each.segment)) > 0)
                for each in self.tree.candidates.values()]

    def _last_resort(self) -> Decide | None:
        request = Decide(question=self.session.question, videos=self.environment.videos,
                         candidates=tuple(self._scored()), frames=self.memory.frames, must_answer=True)
        return request if self.memory.frames else None
