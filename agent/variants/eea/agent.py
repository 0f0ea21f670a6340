"""EEA, the exploration-exploitation agent (arXiv 2512.03500): Algorithm 1, sections 3.1 to 3.3, Tables 7 to 11.

What the paper leaves open, and what this agent does: frames of the library stand for the clips of a retriever without
a name (3.1), and their calibrated similarities for its scores (`agent.search.anchors`); a segment is covered rather
than the video (3.3, `agent.search.coverage`); the softmax behind H is taken over rewards from 0 to 100 as they are
(3.2, `agent.variants.eea.scores`); a frame in the memory has the higher reward of the two segments that it borders.
`docs/papers.md` has the whole list. Three parts can be switched off (Table 3): `semantic_guided_expansion` (frames are
then spread uniformly), `uncertainty_aware_fusion` (the score is then the reward) and `query_update`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinodex.agent.answer import Answer
from kinodex.agent.errors import BadSettings
from kinodex.agent.limits.parallel_calls import gather_all
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.videos import Anchor, Segment
from kinodex.agent.requests.tree import Queries, SegmentScores
from kinodex.agent.search.anchors import anchors, chains, find_matches, per_video
from kinodex.agent.search.coverage import Times, cover, spread
from kinodex.agent.search.tree import Candidate, affordable, border_rewards
from kinodex.agent.search.tree_search import TreeSearch, longest_search
from kinodex.agent.search.video_choice import add_video_roots, discover_queries, limit_videos, new_queries
from kinodex.agent.session import Session
from kinodex.agent.traces.events import CandidateScore, QueriesAdded, Scored
from kinodex.agent.variants.base import Variant, check_at_least
from kinodex.agent.variants.eea.requests import ProposeQueries, RewardSegments, SelectSegment
from kinodex.agent.variants.eea.scores import fuse, query_score, reward_entropy

SHORT_VIDEO_S = 300.0


@dataclass(frozen=True, slots=True)
class EEAParameters:
    """The paper's settings for long videos (section 6.2); `for_duration` gives those for short ones."""

    frames: int = 6
    """Frames sampled in a round: B."""
    anchor_frames: int = 3
    """How many of them may be anchors: B_s."""
    memory: int = 16
    """Frames kept from round to round, for the decisions and the answer."""
    matches: int = 16
    """Frames retrieved for a query from a video."""
    clip_s: float = 8.0
    """Length of the clip that a retrieved frame stands for."""
    videos: int = 16
    """How many videos are searched at most."""
    semantic_guided_expansion: bool = True
    """Segments are divided at their anchors; else at equal distances."""
    uncertainty_aware_fusion: bool = True
    """Rewards that do not tell segments apart give way to query scores; else rewards alone."""
    query_update: bool = True
    """New queries are made from what was seen; else only those of the question are searched."""
    rounds: int = 30
    """Segments opened at most. The paper sets no limit."""

    def __post_init__(self) -> None:
        check_at_least(self, frames=1, anchor_frames=0, memory=1, matches=1, videos=1, rounds=1)
        if self.anchor_frames > self.frames:
            raise BadSettings(
                f"got anchor_frames={self.anchor_frames} of frames={self.frames}; "
                "anchors are among the frames of a round, so lower the one or raise the other"
            )
        if self.clip_s <= 0:
            raise BadSettings(f"got clip_s={self.clip_s}; it is above 0")

    @classmethod
    def for_duration(cls, duration_s: float) -> EEAParameters:
        return cls(frames=4, memory=8) if duration_s < SHORT_VIDEO_S else cls()


async def eea(session: Session, parameters: EEAParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the search in the middle of a round."""
    return await _Search(session, parameters).run()


class _Search(TreeSearch):
    """Beside candidates, memory and history: queries C and what they match, of which the anchors A are made."""

    def __init__(self, session: Session, parameters: EEAParameters) -> None:
        super().__init__(session, parameters.memory)
        self.parameters = parameters
        self.queries: list[str] = []
        self.matches: list[Anchor] = []
        self.anchors: list[Anchor] = []

    async def run(self) -> Answer:
        selected = await self._begin()  # lines 1 to 6
        while True:
            self.account.begin_round()
            frames, parts = self._expand(selected)  # lines 9 and 10
            scores, queries = await self._evaluate(selected, frames, parts)  # lines 12 and 22
            self.keep_rewards(parts, scores)  # lines 15 and 19
            self._fuse(parts)  # lines 13 and 17
            self.remember(frames, border_rewards(frames, parts))  # line 20
            self._search(queries)  # line 23
            decision = await self.session.decide(self.step())  # line 25
            if isinstance(decision, Answer):
                return decision
            selected = decision

    async def _begin(self) -> int:
        """Discover queries, find their anchors, and choose the video to begin with."""
        discovered: list[str] = []
        if self.parameters.semantic_guided_expansion or self.parameters.uncertainty_aware_fusion:
            discovered = await discover_queries(self.session)
        limit_videos(self.session, discovered, self.parameters.videos, "frames")
        self._search(discovered)
        return add_video_roots(self.session, self.tree, self.anchors)

    def _expand(self, number: int) -> tuple[tuple[ShownFrame, ...], list[Candidate]]:
        """Divide a segment at its best anchors and at the frames that cover the rest of it best."""
        segment = self.tree.candidates[number].segment
        unseen_s = self.unseen_s(segment)
        count = affordable(self.account, self.parameters.frames)
        anchors_s = self._best_anchors(segment, unseen_s, min(count, self.parameters.anchor_frames))
        if not self.parameters.semantic_guided_expansion:
            return self.divide(number, spread(segment.start_s, segment.end_s, unseen_s, count))
        others_s = np.setdiff1d(unseen_s, anchors_s)
        cover_s = cover(unseen_s, others_s, anchors_s, count - len(anchors_s))
        return self.divide(number, np.union1d(anchors_s, cover_s), anchors_s.tolist())

    def _best_anchors(self, segment: Segment, unseen_s: Times, most: int) -> Times:
        inside = [each for each in self.anchors if each.video_id == segment.video_id and each.time_s in unseen_s]
        best = sorted(inside, key=lambda each: -each.similarity)[:most]
        return np.asarray(sorted(each.time_s for each in best), dtype=np.float64)

    async def _evaluate(
        self, parent: int, frames: tuple[ShownFrame, ...], parts: list[Candidate]
    ) -> tuple[SegmentScores | None, list[str]]:
        """Ask for the rewards of the new segments, and at once for new queries if another round can follow."""
        scoring = RewardSegments(
            question=self.question,
            videos=self.environment.videos,
            segments=tuple(part.segment for part in parts),
            frames=frames,
            history=tuple(self.history),
            parent=parent if self.history else None,
        )
        if not self.parameters.query_update or self.session.over():
            return await self.session.ask(scoring), []
        proposing = ProposeQueries(question=self.question, known=tuple(self.queries), frames=frames)
        calls: list[Coroutine[Any, Any, Any]] = [self.session.ask(scoring), self.session.ask(proposing)]
        scores: SegmentScores | None
        proposed: Queries | None
        scores, proposed = await gather_all(calls)
        return scores, new_queries(proposed.queries if proposed else [], self.queries)

    def _search(self, queries: Sequence[str]) -> None:
        """Retrieve for new queries only, merge with what was retrieved before, cluster again (section 3.1)."""
        if not queries:
            return
        self.queries += queries
        length_s, count = self.parameters.clip_s, self.parameters.matches
        gaps_s = per_video(self.environment, lambda video: length_s / 2)
        self.matches += find_matches(self.environment, queries, count, gaps_s, anchors_from="frames")
        self.anchors = anchors(chains(self.matches, per_video(self.environment, lambda video: length_s)))
        self.session.emit(QueriesAdded(self.account.rounds, tuple(queries), tuple(self.anchors)))

    def _fuse(self, parts: Sequence[Candidate]) -> None:
        """Pool query scores of the new segments, and weigh all rewards by their entropy (section 3.2)."""
        candidates = list(self.tree.candidates.values())
        for part in parts:
            part.query_score = query_score([each.similarity for each in self.anchors if _holds(part.segment, each)])
        rewards = [each.reward for each in candidates]
        is_rated = any(each.reward is not None for each in candidates)
        entropy = reward_entropy(rewards) if is_rated else 1.0
        weight = entropy if self.parameters.uncertainty_aware_fusion else 0.0
        for each, reward in zip(candidates, rewards, strict=True):
            each.fused = fuse(reward or 0.0, each.query_score, weight)
        scores = tuple(
            CandidateScore(each.segment.number, each.reward, each.query_score, each.fused, each.explanation)
            for each in candidates
        )
        self.session.emit(Scored(self.account.rounds, weight, scores))

    def step(self, *, must_answer: bool = False) -> SelectSegment:
        is_fused = self.parameters.uncertainty_aware_fusion
        return SelectSegment(
            question=self.question,
            videos=self.environment.videos,
            candidates=self.scored(lambda each: each.fused if is_fused else each.reward),
            frames=self.memory.in_time_order,
            scores="fused" if is_fused else "reward",
            must_answer=must_answer,
        )


def _holds(segment: Segment, anchor: Anchor) -> bool:
    return segment.video_id == anchor.video_id and segment.start_s <= anchor.time_s <= segment.end_s


EEA = Variant(
    "eea",
    "tree search led by what the index matches and by rewards, weighed by their entropy (arXiv 2512.03500)",
    eea,
    EEAParameters.for_duration,
    roles=("policy", "reward"),
    chooses=True,
    assumes=longest_search,
    ablations={
        "no semantic-guided expansion": {"semantic_guided_expansion": False},
        "no reward fusion": {"uncertainty_aware_fusion": False},
        "no query update": {"query_update": False},
    },
    needs_pictures=True,
    needs_vectors=True,
    plain=(
        "Finds the parts that fit your words, opens the most promising one, looks at a few pictures of it, and goes on "
        "from there until they show the answer."
    ),
)
