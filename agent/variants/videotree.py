"""VideoTree, a tree of captions that grows where the question needs it (CVPR 2025, arXiv 2405.19209, section 3).

Captions are made of the frames in the middle of clusters only, when they are needed, by the role "captioner".
`docs/papers.md` says what the paper leaves open, what was decided, and where the published code departs from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from kinodex.agent.anchors import choose_videos
from kinodex.agent.answer import Answer
from kinodex.agent.environment import AnchorsFrom, Environment
from kinodex.agent.errors import BadSettings
from kinodex.agent.models.rules import relevances, rule
from kinodex.agent.protocol import EXACT_S, REASONING_NAMES, Note, Reasoned, Reply, Request, described
from kinodex.agent.replies import WholeNumber, whole_number
from kinodex.agent.requests.answer import AnswerNotes, InParts, OfRun
from kinodex.agent.session import Session
from kinodex.agent.tools.captions import FrameTime, caption_frames, in_order
from kinodex.agent.trace import Acted
from kinodex.agent.tree import first_level_cuts_s, show_chapters
from kinodex.agent.variants.base import Variant, check_at_least, counted_frames


@dataclass(frozen=True, slots=True)
class VideoTreeParameters:
    """The paper's settings, and of VCA's re-implementation for long videos (VCA, supplement 8.2)."""

    breadth: int = 8
    """Clusters of the first round; doubled from round to round."""
    max_breadth: int = 32
    """Clusters beyond which the breadth is not doubled."""
    highly_relevant: int = 4
    """With so many highly relevant clusters the tree is broad enough."""
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
    chapters: bool = False
    """Scenes or chapters of the library are the first clusters, and prompts list their summaries."""

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
        self.by_chapters = False
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
        if self.parameters.chapters:
            show_chapters(self.session, summaries=True)
        environment = self.session.environment
        videos = [environment.source.in_memory(video.video_id) for video in environment.videos]
        for video, memory in zip(environment.videos, videos, strict=True):
            self.frames += [(video.video_id, float(time_s)) for time_s in memory.stored.time_s]
        self.units = np.concatenate([memory.units for memory in videos])

    async def _broaden(self) -> tuple[list[Cluster], dict[int, int]]:
        """Adaptive breadth (3.1): clusters, ever more until enough are highly relevant; and their relevances."""
        count, clusters = self.parameters.breadth, list[Cluster]()
        while True:
            self.session.account.begin_round()
            before, clusters = clusters, await self._clusters(count, clusters)
            await self._read([cluster.middle for cluster in clusters], "broaden")
            relevances = await self._relevances(clusters)
            high = sum(level == HIGHLY_RELEVANT for level in relevances.values())
            all_apart = len(clusters) == len(before) if self.by_chapters else len(clusters) < count
            broad = high >= self.parameters.highly_relevant or all_apart
            count = 2 * len(clusters)
            if broad or count > self.parameters.max_breadth or self.session.over():
                return clusters, relevances

    async def _clusters(self, count: int, before: list[Cluster]) -> list[Cluster]:
        """Cluster the frames for a round after one with the clusters `before`: by the library's parts if it has some.

        Computed aside, since the frames of many hours take seconds, in which other questions are to be answered.
        """
        session, limits = self.session, self.parameters
        if limits.chapters and not before:
            breadths = limits.max_breadth, limits.breadth
            first = chapter_clusters(session.environment, self.units, *breadths, limits.seed)
            self.by_chapters = bool(first)
            if first:
                return first
        if self.by_chapters:
            return await session.compute(halve, before, self.units, limits.seed)
        return await session.compute(k_means, self.units, count, limits.seed)

    async def _relevances(self, clusters: list[Cluster]) -> dict[int, int]:
        """The relevance of each cluster, 1 to 3, by the frame in its middle."""
        read = [cluster.middle for cluster in clusters if self.frames[cluster.middle] in self.captions]
        read.sort(key=lambda at: self.frames[at])
        if not read:
            return {}
        reply = await self.session.ask(
            JudgeRelevance(
                question=self.session.question,
                videos=self.session.environment.videos,
                notes=tuple(self.captions[self.frames[at]] for at in read),
                chapters=self.session.chapters,
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
        """The middles of a cluster's parts, of their parts, and so on for some levels."""
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
        """The budget that left some of these frames without a caption, if one did."""
        if all(self.frames[at] in self.captions for at in nodes):
            return None
        account = self.session.account
        return "frames" if account.frames_left == 0 else account.exhausted_by_call()

    def _answering(self, captions: Iterable[Note]) -> AnswerNotes:
        """Make the request for the answer from the captions in the order of time, each once (section 3.3)."""
        session, notes = self.session, in_order([*captions, *self.session.prior_notes])
        videos, chapters = session.environment.videos, session.chapters
        return AnswerNotes(question=session.question, videos=videos, notes=notes, chapters=chapters)


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
    ablations={"no adaptive breadth": {"max_breadth": 8}, "no depth": {"depth": 1}},
    plain="Puts pictures from all over the video into words, more of them where they matter.",
    words={
        "broaden": lambda step: f"put {counted_frames(step)} from all over the video into words",
        "deepen": lambda step: f"put {counted_frames(step, 'more ')} like the relevant ones into words",
    },
    assumes=_assumed,
)


# Clusters of the first level by the library's scenes or chapters, and of the next levels by halving them.
#
# VideoTree clusters frames that look alike, wherever they stand. Where a library knows the parts of a film, each part
# is a cluster, and more breadth divides parts in two in the place of clustering all frames again.

Units = NDArray[np.float32]


def chapter_clusters(environment: Environment, units: Units, most: int, breadth: int, seed: int) -> list[Cluster]:
    """Cluster the frames of the videos, unit vectors [n, dim] video by video, by the parts of each video.

    At most about `most` parts in all, shared out equally. Videos without parts are clustered together as usual, into
    `breadth` clusters at most. Empty if no video has parts.
    """
    share = max(2, most // len(environment.videos))
    clusters: list[Cluster] = []
    without: list[NDArray[np.intp]] = []
    first = 0
    for video in environment.videos:
        times_s = environment.times(video.video_id)
        cuts_s = first_level_cuts_s(environment, video.video_id, share)
        inner = np.searchsorted(times_s, np.array(cuts_s[1:-1]) - EXACT_S)
        members = [np.arange(first + low, first + high) for low, high in pairwise([0, *inner, len(times_s)])]
        parts = [each for each in members if cuts_s and len(each)]
        clusters += [Cluster(each, _parts(units, each, 1, seed)[0].middle) for each in parts]
        without += [] if cuts_s else members
        first += len(times_s)
    if clusters and without:
        clusters += _parts(units, np.concatenate(without), breadth, seed)
    return clusters


def halve(clusters: Sequence[Cluster], units: Units, seed: int) -> list[Cluster]:
    """Divide each cluster in two by its frames' likeness; one whose frames are all alike stays."""
    return [half for cluster in clusters for half in _parts(units, cluster.members, 2, seed)]


def _parts(units: Units, members: NDArray[np.intp], count: int, seed: int) -> list[Cluster]:
    return [Cluster(members[part.members], int(members[part.middle])) for part in k_means(units[members], count, seed)]


# Clusters of frames that look alike: k-means by cosine.
#
# Not scikit-learn's: it would add 200 MB to an install (scipy among them), is slower on frames, raises where fewer
# frames differ than clusters are wanted, and clusters differently, so that older traces could not be replayed.

ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Cluster:
    """Positions of its frames among those that were clustered, ascending, and of the one nearest to its middle."""

    members: NDArray[np.intp]
    middle: int


def k_means(units: NDArray[np.float32], count: int, seed: int = 0) -> list[Cluster]:
    """At most `count` clusters of unit vectors [n, dim], by their first members; the same for the same seed.

    There are fewer where fewer vectors differ.
    """
    centres = _scattered(units, count, np.random.default_rng(seed))
    nearest = np.argmax(units @ centres.T, axis=1)
    for _ in range(ROUNDS):
        centres = np.stack([_middle(units[nearest == which]) for which in np.unique(nearest)])
        moved = np.argmax(units @ centres.T, axis=1)
        if np.array_equal(moved, nearest):
            break
        nearest = moved
    clusters = [np.flatnonzero(nearest == which) for which in range(len(centres))]
    found = [
        Cluster(members, int(members[np.argmax(units[members] @ centre)]))
        for members, centre in zip(clusters, centres, strict=True)
        if len(members)
    ]
    return sorted(found, key=lambda cluster: int(cluster.members[0]))


def _scattered(units: NDArray[np.float32], count: int, chance: np.random.Generator) -> NDArray[np.float32]:
    """First centres (k-means++): each is a vector, the more likely the farther it is from those before."""
    chosen = [int(chance.integers(len(units)))]
    apart = 1 - units @ units[chosen[0]]
    while len(chosen) < count and (total := float(np.maximum(apart, 0).sum())) > 1e-6:
        chosen.append(int(chance.choice(len(units), p=np.maximum(apart, 0) / total)))
        apart = np.minimum(apart, 1 - units @ units[chosen[-1]])
    return units[chosen]


def _middle(units: NDArray[np.float32]) -> NDArray[np.float32]:
    total: NDArray[np.float32] = units.sum(axis=0)
    length = np.linalg.norm(total)
    return total / length if length > 0 else units[0]


# The request of VideoTree: the relevance of each cluster (arXiv 2405.19209, section 3).

HIGHLY_RELEVANT = 3
"""The top of the scale: 1, not relevant; 2, somewhat relevant; 3, highly relevant."""
Level = Annotated[int, Field(ge=1, le=HIGHLY_RELEVANT), BeforeValidator(whole_number)]


class Relevance(Reply):
    """The relevance of one cluster, from 1 to 3."""

    model_config = described("How relevant one cluster is, from 1 to 3.")

    cluster: WholeNumber = Field(description="its number")
    relevance: Level = Field(description="a whole number")


class Relevances(Reasoned):
    """One relevance for each cluster, by its number."""

    clusters: list[Relevance] = Field(description="one for each cluster")

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if isinstance(value, list):
            return {"clusters": value}
        if isinstance(value, Mapping) and "clusters" not in value:
            named = {name: each for name, each in value.items() if str(name).casefold() not in REASONING_NAMES}
            return {**value, "clusters": [{"cluster": name, "relevance": each} for name, each in named.items()]}
        return value


@dataclass(frozen=True, kw_only=True)
class JudgeRelevance(OfRun[Relevances], InParts[Relevances]):
    """Rate the relevance of each cluster by the caption of the frame in its middle (section 3.1).

    `notes` are those captions, in time order: cluster 1 is the first note's.
    """

    Reply = Relevances
    template: ClassVar[str] = "judge_relevance"
    parts: ClassVar[tuple[str, str, str]] = ("notes", "clusters", "cluster")
    notes: tuple[Note, ...]


@rule.register(JudgeRelevance)
def _judge_by_rule(request: JudgeRelevance, environment: Environment) -> dict[str, Any]:
    levels = enumerate(relevances(request.question, request.notes), start=1)
    return {"clusters": [{"cluster": number, "relevance": level} for number, level in levels]}
