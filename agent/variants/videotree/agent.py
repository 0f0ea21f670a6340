"""VideoTree, a tree of captions that grows where the question needs it (CVPR 2025, arXiv 2405.19209, section 3).

Captions are made of the frames in the middle of clusters only, when they are needed, by the role "captioner".
`docs/papers.md` says what the paper leaves open, what was decided, and where the published code departs from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.answer import Answer
from kinodex.agent.errors import BadSettings
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.answer import AnswerNotes
from kinodex.agent.search.video_choice import choose_videos
from kinodex.agent.session import Session
from kinodex.agent.tools.captions import FrameTime, caption_frames, in_order
from kinodex.agent.traces.events import Acted
from kinodex.agent.variants.base import Variant, check_at_least
from kinodex.agent.variants.videotree.k_means import Cluster, k_means
from kinodex.agent.variants.videotree.requests import HIGHLY_RELEVANT, JudgeRelevance
from kinodex.agent.variants.words import counted_frames
from kinodex.agent.videos.library_videos import AnchorsFrom


@dataclass(frozen=True, slots=True)
class VideoTreeParameters:
    """The paper's settings, and of VCA's re-implementation for long videos (VCA, supplement 8.2)."""

    breadth: int = 8
    """Clusters of the first round; doubled from round to round."""
    max_breadth: int = 32
    """Clusters beyond which the breadth is not doubled."""
    highly_relevant: int = 4
    """The tree stops growing broader once it has this many highly relevant clusters."""
    depth: int = 3
    """Levels of the tree below highly relevant clusters, the first one counted."""
    branches: int = 4
    """Parts into which a relevant cluster is divided."""
    seed: int = 0
    """Of the clusters' first centres."""
    videos: int = 16
    """How many videos are searched at most."""
    rounds: int = 4
    """8, 16 and 32 clusters, then the depth."""
    anchors_from: AnchorsFrom = "all"
    """By what videos are chosen from many: pictures, words (speech, text on screen, captions), or both."""

    def __post_init__(self) -> None:
        check_at_least(self, breadth=1, highly_relevant=1, depth=1, branches=2, videos=1, rounds=1)
        if self.max_breadth < self.breadth:
            raise BadSettings(f"got max_breadth={self.max_breadth} and breadth={self.breadth}; raise the first")


async def videotree(session: Session, parameters: VideoTreeParameters) -> Answer:
    """Answer from the captions of a tree. Raises `OutOfBudget` when a budget ends its growth in the middle."""
    return await _Tree(session, parameters).run()


class _Tree:
    """All frames of the videos, their unit vectors, and the captions of those that are nodes."""

    def __init__(self, session: Session, parameters: VideoTreeParameters) -> None:
        self.session, self.parameters = session, parameters
        self.frames: list[FrameTime] = []
        self.units = np.empty((0, 0), np.float32)
        self.captions: dict[FrameTime, Note] = {}
        session.last_resort = lambda: self._answering(self.captions.values()) if self.captions else None

    async def run(self) -> Answer:
        await self._begin()
        clusters, relevances = await self._broaden()
        nodes = [cluster.middle for cluster in clusters]
        over = self.session.over()
        if not over:
            self.session.account.begin_round()
            below = await self.session.compute(self._deepen, clusters, relevances)
            await self._read(below, "deepen")
            over = self._cut(below)
            nodes += below
        read = [self.captions[frame] for frame in map(self.frames.__getitem__, nodes) if frame in self.captions]
        return await self.session.conclude(self._answering(read), over or "")

    async def _begin(self) -> None:
        await choose_videos(self.session, self.parameters.videos, self.parameters.anchors_from)
        environment = self.session.environment
        videos = [environment.source.in_memory(video.video_id) for video in environment.videos]
        for video, memory in zip(environment.videos, videos, strict=True):
            self.frames += [(video.video_id, float(time_s)) for time_s in memory.stored.time_s]
        self.units = np.concatenate([memory.units for memory in videos])

    async def _broaden(self) -> tuple[list[Cluster], dict[int, int]]:
        """Adaptive breadth (3.1): clusters, ever more until enough are highly relevant; and their relevances."""
        count = self.parameters.breadth
        while True:
            self.session.account.begin_round()
            clusters = await self.session.compute(k_means, self.units, count, self.parameters.seed)
            await self._read([cluster.middle for cluster in clusters], "broaden")
            relevances = await self._relevances(clusters)
            high = sum(level == HIGHLY_RELEVANT for level in relevances.values())
            broad = high >= self.parameters.highly_relevant or len(clusters) < count
            count = 2 * len(clusters)
            if broad or count > self.parameters.max_breadth or self.session.over():
                return clusters, relevances

    async def _relevances(self, clusters: list[Cluster]) -> dict[int, int]:
        """Return the relevance of each cluster, 1 to 3, by the frame in its middle."""
        read = [cluster.middle for cluster in clusters if self.frames[cluster.middle] in self.captions]
        read.sort(key=lambda at: self.frames[at])
        if not read:
            return {}
        reply = await self.session.ask(
            JudgeRelevance(
                question=self.session.question,
                videos=self.session.environment.videos,
                notes=tuple(self.captions[self.frames[at]] for at in read),
            )
        )
        return {read[each.cluster - 1]: each.relevance for each in reply.clusters} if reply else {}

    def _deepen(self, clusters: list[Cluster], relevances: dict[int, int]) -> list[int]:
        """Depth by relevance (3.2): nothing below irrelevant clusters, one level below somewhat relevant ones, two
        below highly relevant ones."""
        below: list[int] = []
        for cluster in clusters:
            levels = min(relevances.get(cluster.middle, 1), self.parameters.depth) - 1
            below += self._below(cluster.members, levels)
        return below

    def _below(self, members: NDArray[np.intp], levels: int) -> list[int]:
        """Return the middles of a cluster's parts, of their parts, and so on for some levels."""
        if levels == 0:
            return []
        middles: list[int] = []
        for part in k_means(self.units[members], self.parameters.branches, self.parameters.seed):
            middles += [int(members[part.middle]), *self._below(members[part.members], levels - 1)]
        return middles

    async def _read(self, middles: Iterable[int], action: str) -> None:
        new = {self.frames[at] for at in middles} - self.captions.keys()
        captions = await caption_frames(self.session, new)
        self.captions |= captions
        rounds, notes = self.session.account.rounds, in_order(captions.values())
        self.session.emit(Acted(rounds, action, {"frames": len(new)}, notes=notes))

    def _cut(self, nodes: Iterable[int]) -> str | None:
        """Return the budget that left some of these frames without a caption, if one did."""
        if all(self.frames[at] in self.captions for at in nodes):
            return None
        account = self.session.account
        return "frames" if account.frames_left == 0 else account.exhausted_by_call()

    def _answering(self, captions: Iterable[Note]) -> AnswerNotes:
        """Make the request for the answer from the captions in the order of time, each once (section 3.3)."""
        session, notes = self.session, in_order([*captions, *self.session.prior_notes])
        return AnswerNotes(question=session.question, videos=session.environment.videos, notes=notes)


def _assumed(request: Request[Any]) -> Mapping[str, Any] | None:
    """Few clusters are highly relevant and all others somewhat, so that breadth and depth both grow."""
    if not isinstance(request, JudgeRelevance):
        return None
    levels = [HIGHLY_RELEVANT if at < 3 else HIGHLY_RELEVANT - 1 for at in range(len(request.notes))]
    clusters = [{"cluster": number, "relevance": level} for number, level in enumerate(levels, start=1)]
    return {**request.example(), "clusters": clusters}


VIDEOTREE = Variant(
    "videotree",
    "baseline: captions of clustered frames, more of them where they are relevant (arXiv 2405.19209)",
    videotree,
    lambda longest_s: VideoTreeParameters(),
    roles=("policy", "captioner"),
    chooses=True,
    needs_language=True,
    needs_vectors=True,
    ablations={"no adaptive breadth": {"max_breadth": 8}, "no depth": {"depth": 1}},
    plain="Puts pictures from all over the video into words, more of them where they matter.",
    words={
        "broaden": lambda step: f"put {counted_frames(step)} from all over the video into words",
        "deepen": lambda step: f"put {counted_frames(step, 'more ')} like the relevant ones into words",
    },
    assumes=_assumed,
)
