"""EEA, the exploration-exploitation agent (arXiv 2512.03500): Algorithm 1, sections 3.1 to 3.3, Tables 7 to 11.

`docs/papers.md` says what the paper leaves open, what was decided, and where ours differs (`form=paper` restores the
paper); `anchors`, `tree` and `environment` state theirs. Three parts can be switched off (Table 3):
`semantic_guided_expansion` (frames are then spread uniformly), `uncertainty_aware_fusion` (the score is then the
intrinsic reward alone, and is shown as such) and `query_update`.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinodex.agent.answer import Answer
from kinodex.agent.errors import BadSettings
from kinodex.agent.limits.parallel_calls import gather_all
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.videos import Anchor, Segment
from kinodex.agent.requests.tree import ProposeQueries, ScoreKind, ScoresAndQueries, ScoreSegments, SegmentScores
from kinodex.agent.search.anchors import Cluster, anchors, chains, drawing_order, find_matches, per_video
from kinodex.agent.search.chapters import first_level_s, show_chapters
from kinodex.agent.search.coverage import Times, cover, spread
from kinodex.agent.search.memory import Pictures, remember
from kinodex.agent.search.named_times import question_anchors
from kinodex.agent.search.tree import Candidate, affordable, border_rewards, unseen_times
from kinodex.agent.search.tree_search import Form, TreeSearch
from kinodex.agent.search.video_choice import MOST_QUERIES, add_video_roots, discover_queries, limit_videos, new_queries
from kinodex.agent.session import Session
from kinodex.agent.traces.events import CandidateScore, Expanded, QueriesAdded, Scored
from kinodex.agent.variants.base import PAPER_FORM, Variant, check_at_least, restore_paper
from kinodex.agent.variants.eea.requests import ScoreAndPropose
from kinodex.agent.variants.eea.scores import (
    POOLING,
    QUERY_TEMPERATURE,
    REWARD_TEMPERATURE,
    Pooling,
    fuse,
    query_score,
    reward_entropy,
)
from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.index.kinds import LINE_KINDS

SHORT_VIDEO_S = 300.0
KNOWN_QUERIES = 6
"""Of the queries so far, as many of the latest are named when new ones are asked for."""
WORTHLESS_BELOW = 25.0
"""Rewards, from 0 to 100, below which both segments beside a frame promise nothing."""
PAPER: Mapping[str, object] = {"slack": 0, "pictures": "large", "quotes": False, "anchors_from": "frames"}
"""Settings of `form=paper`."""


@dataclass(frozen=True, slots=True)
class EEAParameters:
    """The paper's settings for long videos (section 6.2); `for_duration` gives those for short ones."""

    frames: int = 6
    """Frames sampled in a round: B."""
    anchor_frames: int = 3
    """How many of them may be anchors: B_s."""
    memory: int = 16
    """Frames kept from round to round, for the decisions and the answer."""
    query_temperature: float = QUERY_TEMPERATURE
    """Of the softmax that pools a segment's anchors: the lower, the more the best one counts."""
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
    """Segments are divided at their anchors; else at equal distances."""
    uncertainty_aware_fusion: bool = True
    """Rewards that do not tell segments apart give way to query scores; else rewards alone."""
    query_update: bool = True
    """New queries are made from what was seen; else only those of the question are searched."""
    rounds: int = 10
    """Segments opened at most."""
    slack: int = 20
    """Frames that the memory may hold beyond `memory` before it lets go of some, the new ones counted."""
    pictures: Pictures = "small"
    """The size at which frames are shown: all at low detail, the new ones at full, or all at full."""
    quotes: bool = True
    """Requests show what is said and stands on screen at the times of their frames; else they see only pictures."""
    anchors_from: AnchorsFrom = "all"
    """Where queries find anchors: in pictures, in words (speech, text on screen, captions), or in both."""
    chapters: bool = False
    """Scenes or chapters of the library are the first level of the tree, and prompts list their summaries."""
    form: Form = "ours"
    """"paper": the paper's rules where ours differ, those of `slack`, `pictures`, `quotes` and `anchors_from` too."""

    def __post_init__(self) -> None:
        restore_paper(self, PAPER)
        check_at_least(self, frames=1, anchor_frames=0, memory=1, matches=1, videos=1, rounds=1, slack=0)
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
        return cls(frames=4, anchor_frames=3, memory=8, slack=6) if duration_s < SHORT_VIDEO_S else cls()


async def eea(session: Session, parameters: EEAParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the search in the middle of a round."""
    scores: ScoreKind = "fused" if parameters.uncertainty_aware_fusion else "reward"
    return await EEASearch(session, parameters, scores).run()


class EEASearch(TreeSearch):
    """Beside what VCA keeps: queries C and anchors A."""

    def __init__(self, session: Session, parameters: Any, scores: ScoreKind) -> None:
        super().__init__(session, parameters, scores)
        self.queries: list[str] = []
        self.matches: list[Anchor] = []
        self.clusters: list[Cluster] = []
        self.worthless: set[tuple[str, int]] = set()
        self.proposed: list[str] = []

    async def run(self) -> Answer:
        if whole := await self.answer_from_whole():
            return whole
        selected = await self._begin()  # lines 1 to 6
        while True:
            self.account.begin_round()
            evicted = self.memory.make_room(affordable(self.account, self.parameters.frames))
            before = self.tree.candidates[selected].reward
            frames, parts = self._expand(selected)  # lines 9 and 10
            scores = await self._scores_and_queries(self.scoring(selected, frames, parts), frames)  # line 12, with 22
            self.keep_rewards(parts, scores, frames)
            rewards = border_rewards(frames, parts, None if self.literal else before)
            self._judge(frames, rewards)
            self._fuse(parts)  # lines 13 to 17
            remember(self.session, self.memory, frames, rewards, evicted)  # lines 19 and 20
            self._search(self.proposed)  # line 23, by the paper
            decision = await self.decide(len(frames))  # line 25
            if isinstance(decision, Answer):
                return decision
            selected = decision

    async def _begin(self) -> int:
        """Discover queries, find their anchors, and choose the video to begin with."""
        discovered: list[str] = []
        if self.parameters.semantic_guided_expansion or self.parameters.uncertainty_aware_fusion:
            discovered = await discover_queries(self.session)
        limit_videos(self.session, discovered, self.parameters.videos, self.parameters.anchors_from)
        if self.parameters.chapters:
            show_chapters(self.session, summaries=True)
        if not self.literal:
            self.matches += question_anchors(self.environment, self.question)
        self._search(discovered)
        return add_video_roots(self.session, self.tree, self._unseen_anchors())

    def _expand(self, number: int) -> tuple[tuple[ShownFrame, ...], list[Candidate]]:
        """Divide a segment at its best anchors and at the frames that cover the rest of it best."""
        segment = self.tree.candidates[number].segment
        unseen_s = unseen_times(self.tree, self.environment, self.account, segment)
        count = affordable(self.account, self.parameters.frames)
        anchors_s = self._best_anchors(segment.video_id, unseen_s, count)
        parts_s = first_level_s(self.environment, segment, unseen_s, count) if self.parameters.chapters else ()
        if len(parts_s):
            chosen_s = np.asarray(parts_s)
        elif self.parameters.semantic_guided_expansion:
            others_s = np.setdiff1d(unseen_s, anchors_s)
            chosen_s = np.union1d(anchors_s, cover(unseen_s, others_s, anchors_s, count - len(anchors_s)))
        else:
            chosen_s = spread(segment.start_s, segment.end_s, unseen_s, count)
        frames = self.session.label(self.environment.frames(segment.video_id, chosen_s))
        parts = self.tree.divide(number, frames)
        children = tuple(part.segment for part in parts)
        anchored = tuple(frame.frame_no for frame in frames if frame.time_s in anchors_s)
        self.session.emit(Expanded(self.account.rounds, segment, children, frames, anchored))
        return frames, parts

    def _best_anchors(self, video_id: str, unseen_s: Times, count: int) -> Times:
        drawing = drawing_order(self.clusters, self._seen())
        inside = [each for each in drawing if each.video_id == video_id and each.time_s in unseen_s]
        most = min(self.parameters.anchor_frames, count) if self.parameters.semantic_guided_expansion else 0
        return np.asarray(sorted(each.time_s for each in inside[:most]), dtype=np.float64)

    async def _scores_and_queries(
        self, scoring: ScoreSegments | None, new: tuple[ShownFrame, ...]
    ) -> SegmentScores | None:
        """Ask for scores, and for new queries if another round can follow; search for those, by the paper later."""
        if scoring is None:
            return None
        known = tuple(self.queries if self.literal else self.queries[-KNOWN_QUERIES:])
        if not self.parameters.query_update or self.session.over():
            return await self.session.ask(scoring)
        if self.literal:
            proposing = ProposeQueries(question=self.question, known=known, frames=new)
            calls: list[Coroutine[Any, Any, Any]] = [self.session.ask(scoring), self.session.ask(proposing)]
            scores: SegmentScores | None
            scores, proposed = await gather_all(calls)
            self.proposed = new_queries(proposed.queries if proposed else [], self.queries)
            return scores
        both = await self.session.ask(ScoreAndPropose(**vars(scoring), known=known))
        if isinstance(both, ScoresAndQueries):
            self._search(new_queries(both.queries, self.queries))
        return both

    def _search(self, queries: Sequence[str]) -> None:
        """Retrieve for new queries only, merge with what was retrieved before, cluster again (section 3.1)."""
        literal, clip_s, count = self.literal, self.parameters.clip_s, self.parameters.matches
        lengths_s = per_video(
            self.environment, lambda video: clip_s if literal else min(clip_s, video.duration_s / count)
        )
        if queries:
            gaps_s = {video_id: length_s / 2 for video_id, length_s in lengths_s.items()}
            beside = () if literal else self.queries[:MOST_QUERIES]
            self.queries += queries
            kind = self.parameters.anchors_from
            self.matches += find_matches(self.environment, queries, count, gaps_s, beside, kind)
        longest_s = per_video(self.environment, lambda video: max(clip_s, video.duration_s / count))
        self.clusters = chains(self.matches, lengths_s, None if literal else longest_s)
        self.proposed = []
        if queries:
            self.session.emit(QueriesAdded(self.account.rounds, tuple(queries), tuple(self._unseen_anchors())))

    def _unseen_anchors(self) -> list[Anchor]:
        return anchors(self.clusters, self._seen())

    def _seen(self) -> Collection[tuple[str, int]]:
        """Return the frames that are anchors no more: those that were shown.

        In the paper's form seen ones stand for their clusters.
        """
        ids = () if self.literal else [video.video_id for video in self.environment.videos]
        shown = {(video_id, number) for video_id in ids for number in self.account.shown_frame_nos(video_id)}
        return () if self.literal else self.tree.sampled | shown

    def _judge(self, frames: Sequence[ShownFrame], rewards: Sequence[float | None]) -> None:
        """Note the frames beside which nothing is expected: as anchors they draw the search no more."""
        worth = zip(frames, rewards, strict=True)
        self.worthless |= {
            (frame.video_id, frame.frame_no)
            for frame, reward in worth
            if reward is not None and reward < WORTHLESS_BELOW
        }

    def _query_score(self, part: Segment, found: Sequence[Anchor]) -> float:
        inside = [
            each.similarity
            for each in found
            if each.video_id == part.video_id and part.start_s <= each.time_s <= part.end_s
        ]
        return query_score(inside, self.parameters.query_temperature, self.parameters.pooling)

    def _fuse(self, parts: Sequence[Candidate]) -> None:
        """Weigh rewards against query scores by the entropy of the rewards of what is open (section 3.2).

        A segment that hides fewer frames than a round shows is worth that share of its score.
        """
        candidates = list(self.tree.candidates.values())
        found = anchors(self.clusters, () if self.literal else self.worthless)
        zeros = self.literal and any(each.reward is not None for each in candidates)
        unseen = [len(unseen_times(self.tree, self.environment, self.account, each.segment)) for each in candidates]
        rewards = [0.0 if each.reward is None and zeros else each.reward for each in candidates]
        live = [reward for reward, left in zip(rewards, unseen, strict=True) if left or self.literal]
        entropy = reward_entropy(live, self.parameters.reward_temperature)
        if not self.parameters.uncertainty_aware_fusion:
            entropy = 0.0
        for each, reward, left in zip(candidates, rewards, unseen, strict=True):
            if each in parts or not self.literal:  # by the paper others keep the one that they came with
                each.query_score = self._query_score(each.segment, found)
            each.fused = fuse(reward, each.query_score, entropy)
            each.fused *= 1.0 if self.literal else min(1.0, left / self.parameters.frames)
        scores = tuple(
            CandidateScore(each.segment.number, each.reward, each.query_score, each.fused, each.explanation)
            for each in candidates
        )
        self.session.emit(Scored(self.account.rounds, entropy, scores))


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
        "no words": {"anchors_from": "frames"},
        "no pictures": {"anchors_from": "words"},
        **PAPER_FORM,
    },
    uses=LINE_KINDS,
    needs_pictures=True,
    plain=(
        "Finds the parts that fit your words, opens the most promising one, looks at a few pictures of it, and goes on "
        "from there until they show the answer. A good first choice."
    ),
)
