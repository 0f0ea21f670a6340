"""EEA, the exploration-exploitation agent (arXiv 2512.03500): Algorithm 1, sections 3.1 to 3.3, Tables 7 to 11.

What the paper leaves open, and what was decided (`frame_choice` and `environment` state theirs):

- A segment's number is unique in a run, so that it cannot be mistaken for a label of an earlier round.
- Several videos are children of one root, ranked by the first queries' anchors (`frame_choice`).
- Rewarding the children and proposing queries do not depend on each other and run side by side. So the new
  anchors are there before the fusion, and the query scores of all candidates follow them, not only the children's.
- An anchor on the border of two segments counts for both; a frame shown once is never sampled again.
- A frame's reward in the memory is the larger one of the two segments that it borders.
- A child that the reward model left out, in two attempts, has no reward and counts as the lowest.
- A segment without unseen frames cannot be explored, so every round shows something new and the search ends by
  itself if no budget ends it before (`Session.decide`). The paper sets no limit of rounds; here it is 10, as for VCA.
- The settings are given by benchmark; those of EgoSchema, whose videos last three minutes, are for videos under five.

Reward fusion (section 3.2) weighs the model's rewards against the queries' matches. The softmax behind the entropy is
taken over rewards on the 0 to 100 scale (on 0 to 1 the entropy of seven segments never falls below 0.95 and the fusion
degenerates); rewards and query scores are mixed on one 0 to 1 scale; with one candidate the entropy is 0; a candidate
without a reward counts as the lowest, 0, and if none has one the entropy is 1; a segment without anchors has the lowest
query score, 0. The paper's formula pools anchors by the mean, so that a weak anchor lowers the score of a strong one,
although its prompt calls the score how many relevant clips a segment holds (Table 9). Here they are summed, as that
says: in simulated search it shows evidence more often, and on sketch films it needs no more frames
(docs/simulation.md).

Three parts can be switched off (Table 3): `semantic_guided_expansion` (frames are then spread uniformly),
`uncertainty_aware_fusion` (the score is then the intrinsic reward alone) and `query_update`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agent.answer import Answer
from agent.core.protocol import ShownFrame
from agent.core.question import Anchor, ScoredSegment, Segment
from agent.environment import Environment
from agent.errors import BadSettings
from agent.requests.tree import Decide, ProposeQueries, ScoreSegments
from agent.session import Session, gather_pair
from agent.trace.events import CandidateScore, Expanded, QueriesAdded, Scored
from agent.tree_search.frame_choice import (
    Times,
    add_video_roots,
    anchors,
    cover,
    discover_queries,
    find_matches,
    limit_videos,
    new_queries,
    spread,
)
from agent.tree_search.search_state import (
    Candidate,
    Tree,
    affordable,
    border_rewards,
    final_request,
    remember,
    shown_candidates,
    start_memory,
    unseen_times,
)
from agent.variants.base import Variant, check_at_least

SHORT_VIDEO_S = 300.0
QUERY_TEMPERATURE = 0.1
REWARD_TEMPERATURE = 1.0
Pooling = Literal["mean", "sum", "best"]
POOLING: Pooling = "sum"


@dataclass(frozen=True, slots=True)
class EEAParameters:
    """The paper's settings for long videos (section 6.2); `for_duration` gives those for short ones."""

    frames: int = 6
    """Frames sampled in a round: B."""
    anchor_frames: int = 3
    """How many of them may be anchors: B_s."""
    memory: int = 16
    query_temperature: float = QUERY_TEMPERATURE
    pooling: Pooling = POOLING
    """How the anchors of a segment make its query score."""
    reward_temperature: float = REWARD_TEMPERATURE
    """Of the softmax whose entropy weighs rewards against query scores, in points of reward."""
    matches: int = 16
    """Frames retrieved for a query from a video."""
    clip_s: float = 8.0
    """Length of the clip that a retrieved frame stands for."""
    videos: int = 16
    """How many videos are searched at most."""
    semantic_guided_expansion: bool = True
    uncertainty_aware_fusion: bool = True
    query_update: bool = True
    rounds: int = 10

    def __post_init__(self) -> None:
        check_at_least(self, frames=1, anchor_frames=0, memory=1, matches=1, videos=1, rounds=1)
        if self.anchor_frames > self.frames:
            raise BadSettings(
                f"got anchor_frames={self.anchor_frames} of frames={self.frames}; "
                "anchors are among the frames of a round, so lower the one or raise the other"
            )
        positive = ("query_temperature", "reward_temperature", "clip_s")
        wrong = next((name for name in positive if getattr(self, name) <= 0), None)
        if wrong is not None:
            raise BadSettings(f"got {wrong}={getattr(self, wrong)}; it is above 0")

    @classmethod
    def for_duration(cls, duration_s: float) -> EEAParameters:
        return cls(frames=4, anchor_frames=3, memory=8) if duration_s < SHORT_VIDEO_S else cls()


async def eea(session: Session, parameters: EEAParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the search in the middle of a round."""
    return await _Search(session, parameters).run()


class _Search:
    """The state of Algorithm 1: candidates S, memory M, history H_r, queries C and anchors A."""

    def __init__(self, session: Session, parameters: EEAParameters) -> None:
        self.session, self.parameters = session, parameters
        self.question, self.account = session.question, session.account
        self.tree = Tree()
        self.memory = start_memory(session, parameters.memory)
        self.history: list[ScoredSegment] = []
        self.queries: list[str] = []
        self.matches: list[Anchor] = []
        self.anchors: list[Anchor] = []
        session.last_resort = lambda: self._last_word() if self.memory.frames else None

    async def run(self) -> Answer:
        selected = await self._begin()  # lines 1 to 6
        while True:
            self.account.begin_round()
            frames, parts = self._expand(selected)  # lines 9 and 10
            await self._evaluate(selected, frames, parts)  # line 12, beside 22 and 23
            self._fuse()  # lines 13 to 17
            remember(self.session, self.memory, frames, border_rewards(frames, parts))  # lines 19 and 20
            decision = await self.session.decide(self._candidates(), self.memory.frames)  # line 25
            if isinstance(decision, Answer):
                return decision
            selected = decision

    @property
    def environment(self) -> Environment:
        return self.session.environment

    async def _begin(self) -> int:
        """Discover queries, find their anchors, and choose the video to begin with."""
        discovered: list[str] = []
        if self.parameters.semantic_guided_expansion or self.parameters.uncertainty_aware_fusion:
            discovered = await discover_queries(self.session)
        limit_videos(self.session, discovered, self.parameters.videos)
        self._search(discovered)
        return add_video_roots(self.session, self.tree, self.anchors)

    def _expand(self, number: int) -> tuple[tuple[ShownFrame, ...], list[Candidate]]:
        """Divide a segment at its best anchors and at the frames that cover the rest of it best."""
        segment = self.tree.candidates[number].segment
        unseen_s = unseen_times(self.tree, self.environment, self.account, segment)
        count = affordable(self.account, self.parameters.frames)
        anchors_s = self._best_anchors(segment.video_id, unseen_s, count)
        if self.parameters.semantic_guided_expansion:
            others_s = np.setdiff1d(unseen_s, anchors_s)
            chosen_s = np.union1d(anchors_s, cover(unseen_s, others_s, anchors_s, count - len(anchors_s)))
        else:
            chosen_s = spread(segment.start_s, segment.end_s, unseen_s, count)
        frames = self.environment.frames(segment.video_id, chosen_s)
        parts = self.tree.divide(number, frames)
        children = tuple(part.segment for part in parts)
        anchored = tuple(frame.frame_no for frame in frames if frame.time_s in anchors_s)
        self.session.emit(Expanded(self.account.rounds, segment, children, frames, anchored))
        return frames, parts

    def _best_anchors(self, video_id: str, unseen_s: Times, count: int) -> Times:
        inside = [each for each in self.anchors if each.video_id == video_id and each.time_s in unseen_s]
        inside.sort(key=lambda each: -each.similarity)
        wanted = min(self.parameters.anchor_frames, count) if self.parameters.semantic_guided_expansion else 0
        return np.asarray(sorted(each.time_s for each in inside[:wanted]), dtype=np.float64)

    async def _evaluate(self, parent: int, frames: tuple[ShownFrame, ...], parts: list[Candidate]) -> None:
        """Ask for the children's intrinsic rewards and, from the same frames, for new queries."""
        scoring = ScoreSegments(
            question=self.question,
            videos=self.environment.videos,
            segments=tuple(part.segment for part in parts),
            frames=frames,
            history=tuple(self.history),
            parent=parent if self.history else None,
        )
        if self.parameters.query_update:
            proposing = ProposeQueries(question=self.question, known=tuple(self.queries), frames=frames)
            scores, proposed = await gather_pair(self.session.ask(scoring), self.session.ask(proposing))
            self._search(new_queries(proposed.queries if proposed else [], self.queries))
        else:
            scores = await self.session.ask(scoring)
        by_number = {score.segment: score for score in scores.segments} if scores else {}
        for part in parts:
            if score := by_number.get(part.segment.number):
                part.reward, part.explanation = score.score, score.reasoning
        self.history += [ScoredSegment(part.segment, part.reward, part.explanation) for part in parts]

    def _search(self, queries: Sequence[str]) -> None:
        """Retrieve for new queries only, merge with what was retrieved before, cluster again (section 3.1)."""
        if queries:
            self.queries += queries
            gap_s = self.parameters.clip_s / 2
            self.matches += find_matches(self.environment, queries, self.parameters.matches, gap_s)
            self.anchors = anchors(self.matches, self.parameters.clip_s)
            self.session.emit(QueriesAdded(self.account.rounds, tuple(queries), tuple(self.anchors)))

    def _query_score(self, part: Segment) -> float:
        inside = [
            each.similarity
            for each in self.anchors
            if each.video_id == part.video_id and part.start_s <= each.time_s <= part.end_s
        ]
        return query_score(inside, self.parameters.query_temperature, self.parameters.pooling)

    def _fuse(self) -> None:
        """Weigh rewards against query scores by the entropy of the rewards, over all candidates (section 3.2)."""
        candidates = list(self.tree.candidates.values())
        entropy = reward_entropy([each.reward for each in candidates], self.parameters.reward_temperature)
        if not self.parameters.uncertainty_aware_fusion:
            entropy = 0.0
        for each in candidates:
            each.query_score = self._query_score(each.segment)
            each.fused = fuse(each.reward, each.query_score, entropy)
        self.session.emit(
            Scored(
                self.account.rounds,
                entropy,
                tuple(
                    CandidateScore(each.segment.number, each.reward, each.query_score, each.fused, each.explanation)
                    for each in candidates
                ),
            )
        )

    def _candidates(self) -> tuple[ScoredSegment, ...]:
        return shown_candidates(self.tree, self.environment, self.account, lambda each: each.fused)

    def _last_word(self) -> Decide:
        return final_request(self.session, self.memory, self._candidates(), "fused")


def query_score(
    similarities: Sequence[float], temperature: float = QUERY_TEMPERATURE, pooling: Pooling = POOLING
) -> float:
    """Softmax pooling of a segment's anchors, `tau * log(sum(exp(phi / tau)))`, 1 at most; 0 without anchors.

    "mean" takes the mean instead of the sum, as the paper does; "best" is the highest similarity alone.
    """
    if not similarities:
        return 0.0
    scaled = np.asarray(similarities, dtype=np.float64) / temperature
    peak = float(scaled.max())
    if pooling == "best":
        return temperature * peak
    pooled = np.exp(scaled - peak).sum() / (len(scaled) if pooling == "mean" else 1)
    return min(1.0, temperature * (peak + float(np.log(pooled))))


def reward_entropy(rewards: Sequence[float | None], temperature: float = REWARD_TEMPERATURE) -> float:
    """Entropy of softmax(rewards / temperature), divided by its largest value, so from 0 to 1; rewards: 0 to 100."""
    if all(reward is None for reward in rewards):
        return 1.0
    if len(rewards) == 1:
        return 0.0
    known = np.asarray([reward or 0.0 for reward in rewards], dtype=np.float64)
    weights = np.exp((known - known.max()) / temperature)
    shares = weights / weights.sum()
    shares = shares[shares > 0]
    return float(np.clip(-(shares * np.log(shares)).sum() / np.log(len(rewards)), 0.0, 1.0))


def fuse(reward: float | None, query: float, entropy: float) -> float:
    """`(1 - H) r + H u` with the reward brought from 0..100 to 0..1."""
    return (1.0 - entropy) * (reward or 0.0) / 100.0 + entropy * query


EEA = Variant(
    "eea",
    "tree search led by what the index matches and by rewards, weighed by their entropy (arXiv 2512.03500)",
    eea,
    EEAParameters.for_duration,
    roles=("policy", "reward"),
    ablations={
        "no semantic-guided expansion": {"semantic_guided_expansion": False},
        "no reward fusion": {"uncertainty_aware_fusion": False},
        "no query update": {"query_update": False},
    },
    needs_pictures=True,
)
