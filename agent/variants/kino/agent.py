"""Kino, an agent of our own: every frame goes where it promises most, over all of a video that is still open.

1. *Plan.* The question alone gives search texts and a route: the answer is at one moment, in what is said, or in the
   whole of the film. A time that the question names is a moment that no search has to find.
2. *First look.* Pictures and lines are searched together. The best match of each of some places is looked at, and if
   there are few, the frames that cover the rest best (`agent.search.coverage`). By the route "words" these are the
   places whose lines match; by "whole film" the frames are spread over all of it, and the answer follows at once.
3. *Tree.* Frames divide the video into segments. A model rates the new ones, 0 to 100, and notes in a log what the new
   frames show. Ratings decide where frames go between segments, and matches where within one
   (`kinodex.agent.variants.kino.allotment`). Where one segment promises far more than all others, its third frame is
   worth so little that ratings are asked for before more is shown: a look is a few rounds, each of as many frames as
   are worth it.
4. *Answer.* After a look the policy sees the log, the frames and the ratings, and answers or chooses a segment, which
   counts as a better rating. When a budget ends the search, the last call shows the frames in the order of time, the
   cited ones large. A video of no more frames than the memory holds is shown whole, in one call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from kinodex.agent.answer import Answer
from kinodex.agent.errors import NeedsPictures
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import LogEntry, Note
from kinodex.agent.protocol.videos import Anchor, ScoredSegment, Segment
from kinodex.agent.search.anchors import Cluster, anchors, chains, drawing_order, find_matches, per_video
from kinodex.agent.search.chapters import first_level_s, show_chapters
from kinodex.agent.search.coverage import Times, cover
from kinodex.agent.search.named_times import question_anchors
from kinodex.agent.search.tree import Candidate, affordable, border_rewards
from kinodex.agent.search.tree_search import TreeSearch, reward_of
from kinodex.agent.search.video_choice import add_video_roots, limit_videos, new_queries
from kinodex.agent.session import Session
from kinodex.agent.traces.events import Acted, QueriesAdded
from kinodex.agent.variants.base import Variant, check_at_least
from kinodex.agent.variants.kino.allotment import Stretch, allot, is_within, worth_of
from kinodex.agent.variants.kino.log import new_entries
from kinodex.agent.variants.kino.requests import (
    ChooseStep,
    PlanSearch,
    RateSegments,
    Route,
    SearchPlan,
    SegmentRatings,
)
from kinodex.agent.variants.words import Step
from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.index.kinds import LINE_KINDS

LEAST_FIRST, LEAST_LOOK = 5, 4
"""Frames of the first look, and of a later one, however few a budget has."""
MOST_QUOTED = 60
"""Lines beside the frames of a request; of more, those said while a frame is on screen, of the latest ones first."""
AROUND_S = 5.0
"""Lines so long before and after a frame stand beside it too: what is said of a moment is seldom said in its second."""
MOST_READ = 120
"""Lines in the place of pictures: those of the latest moments stay where there are more."""
Pictures = Literal["small", "new large", "large"]


@dataclass(frozen=True, slots=True)
class KinoParameters:
    first: int = 8
    """Frames of the first look; of a short budget a third."""
    frames: int = 8
    """Frames of each later look; of a short budget a quarter."""
    anchor_frames: int = 8
    """How many frames of a round may be matches of the search; 0: matches draw none."""
    sharpness: float = 4.0
    """How much more a frame is worth in a segment with a higher rating: the exponent of the rating."""
    least_share: float = 0.1
    """A round ends before a frame that is worth less than this share of its best one; 0: a look is one round."""
    spread: bool = True
    """A round's frames may go to several segments; else all go to the one that the policy chose, and its parts."""
    route: bool = True
    """The question decides how to search; else it is always for a moment."""
    whole: int = 64
    """Frames spread over the film for a question about all of it."""
    log: bool = True
    """What was seen is kept as a log in words."""
    memory: int = 72
    """Frames kept from look to look, for the decisions and the answer."""
    matches: int = 16
    """Frames retrieved for a query from a video."""
    clip_s: float = 8.0
    """Length of the clip that a retrieved frame stands for."""
    videos: int = 16
    """How many videos are searched at most."""
    rounds: int = 12
    """Rounds at most."""
    pictures: Pictures = "small"
    """The size at which frames are shown: all at low detail, the new ones at full, or all at full."""
    quotes: bool = True
    """Requests show what is said and stands on screen around their frames; else they see only pictures."""
    anchors_from: AnchorsFrom = "all"
    """Where queries find matches: in pictures, in words (speech, text on screen, captions), or in both."""
    chapters: bool = False
    """Scenes or chapters of the library are the first level of the tree, and prompts list their summaries."""

    def __post_init__(self) -> None:
        check_at_least(self, first=1, frames=1, anchor_frames=0, whole=1, memory=1, rounds=1)
        check_at_least(self, matches=1, videos=1, sharpness=0, least_share=0)


async def kino(session: Session, parameters: KinoParameters) -> Answer:
    """Answer as above. Raises `OutOfBudget` when a budget ends the search in the middle of a look."""
    return await _Search(session, parameters).run()


class _Search(TreeSearch):
    """Beside candidates, memory and history: queries and their matches, the log, and the route."""

    def __init__(self, session: Session, parameters: KinoParameters) -> None:
        super().__init__(session, parameters.memory)
        self.parameters = parameters
        self.matches: list[Anchor] = []
        self.clusters: list[Cluster] = []
        self.log: tuple[LogEntry, ...] | None = () if parameters.log else None
        self.route: Route = "moment"
        self.new = 0

    async def run(self) -> Answer:
        if whole := await self._answer_from_whole():
            return whole
        selected, times_s = await self._first_look()
        chosen, look, seen = {selected: times_s}, len(times_s), 0
        opened = self.tree.candidates[selected].segment
        while True:
            self.account.begin_round()
            count = sum(map(len, chosen.values()))
            await self._see(chosen, count)
            if self.route == "whole film":
                return await self.session.conclude(self.step(must_answer=True))
            seen += count
            if seen >= look or not count or self.session.over():  # nothing may be left to see
                self.new = seen
                decision = await self.session.decide(self.step())
                if isinstance(decision, Answer):
                    return decision
                opened = self.tree.candidates[decision].segment
                look, seen = self._look_size(self.parameters.frames, 4, LEAST_LOOK), 0
            chosen = self._allot(opened, look - seen)

    async def _answer_from_whole(self) -> Answer | None:
        """Answer in one call about videos of no more frames than the memory holds, and a budget allows; else None."""
        environment, most = self.environment, affordable(self.account, self.parameters.memory)
        if self.session.prior_frames or environment.index_frames > most:
            return None
        times_s = {video.video_id: environment.times(video.video_id) for video in environment.videos}
        if sum(map(len, times_s.values())) > most:
            return None
        whole = self.session.label([frame for each in times_s.items() for frame in self.frames_at(*each)])
        self.account.begin_round()
        self.remember(whole, [None] * len(whole))
        return await self.session.conclude(self.step(must_answer=True))

    def _look_size(self, frames: int, parts: int, least: int) -> int:
        """Return the frames of a look: where a budget has few, more looks of fewer find more."""
        budget = self.account.budget.frames
        return affordable(self.account, frames if budget is None else min(frames, max(least, budget // parts)))

    async def _begin(self) -> int:
        """Plan the search, look for the texts of the plan, and choose the video to begin with."""
        plan = await self.session.ask(PlanSearch(question=self.question))
        queries = new_queries(plan.queries if plan else [], known=())
        where = plan.where if isinstance(plan, SearchPlan) and self.parameters.route else "moment"
        self.route = "moment" if where == "whole film" and len(self.environment.videos) > 1 else where
        self.session.emit(Acted(self.account.rounds, "plan", {"where": self.route}))
        limit_videos(self.session, queries, self.parameters.videos, self.parameters.anchors_from)
        if not self.session.sees and not any(
            self.environment.lines(video.video_id, LINE_KINDS) for video in self.environment.videos
        ):
            raise NeedsPictures(
                "no model takes pictures, and the library holds no words to read in their place; name a model with "
                "vision, or add words: kinodex add captions LIBRARY, add speech, add screen-text"
            )
        if self.parameters.chapters:
            show_chapters(self.session)
        self._match(queries)
        return add_video_roots(self.session, self.tree, anchors(self.clusters, self._seen()))

    def _match(self, queries: Sequence[str]) -> None:
        """Find what the queries and the times of the question match, in chains that are no longer than their share.

        Without an end to chains all matches of a video of three minutes would hang together.
        """
        clip_s, count, environment = self.parameters.clip_s, self.parameters.matches, self.environment
        lengths_s = per_video(environment, lambda video: min(clip_s, video.duration_s / count))
        longest_s = per_video(environment, lambda video: max(clip_s, video.duration_s / count))
        gaps_s = {video_id: length_s / 2 for video_id, length_s in lengths_s.items()}
        kind = self.parameters.anchors_from
        found = find_matches(environment, queries, count, gaps_s, anchors_from=kind)
        self.clusters = chains([*question_anchors(environment, self.question), *found], lengths_s, longest_s)
        if queries:
            best = tuple(anchors(self.clusters, self._seen()))
            self.session.emit(QueriesAdded(self.account.rounds, tuple(queries), best))

    def _seen(self) -> set[tuple[str, int]]:
        """Return video and number of the frames that were shown: as matches they draw no more."""
        ids = [video.video_id for video in self.environment.videos]
        return self.tree.sampled | {(each, number) for each in ids for number in self.account.shown_frame_nos(each)}

    async def _first_look(self) -> tuple[int, Times]:
        number = await self._begin()
        segment = self.tree.candidates[number].segment
        times_s = self.unseen_s(segment)
        if self.route == "whole film":
            return number, cover(times_s, times_s, times_s[:0], affordable(self.account, self.parameters.whole))
        count = self._look_size(self.parameters.first, 3, LEAST_FIRST)
        parts_s = first_level_s(self.environment, segment, times_s, count) if self.parameters.chapters else ()
        if len(parts_s):
            return number, np.asarray(parts_s)
        drawing = [match for match in drawing_order(self.clusters, ()) if match.video_id == segment.video_id]
        said = [match for match in drawing if match.by_words] if self.route == "words" else []
        drawn = said[:count] or drawing[: min(count, self.parameters.anchor_frames)]
        drawn_s = np.unique([match.time_s for match in drawn])
        rest_s = cover(times_s, np.setdiff1d(times_s, drawn_s), drawn_s, count - len(drawn_s))
        return number, np.union1d(drawn_s, rest_s)

    async def _see(self, chosen: Mapping[int, Times], count: int) -> None:
        """Show frames by segment: divide the segments there, have their parts rated, and remember the frames."""
        evicted = self.memory.make_room(count)  # before they come: what a round shows is seen by all its requests
        frames: list[ShownFrame] = []
        parts: list[Candidate] = []
        for number, times_s in chosen.items():
            shown, divided = self.divide(number, times_s)
            frames += shown
            parts += divided
        if self.route != "whole film":
            await self._rate(frames, parts)
        self.remember(frames, border_rewards(frames, parts), evicted)

    def frames_at(self, video_id: str, times_s: Times) -> tuple[ShownFrame, ...]:
        """Return frames, or moments without a picture where the model or the library has none for them."""
        if self.session.sees and self.environment.pictured(video_id):
            return super().frames_at(video_id, times_s)
        moments = self.environment.moments(video_id, times_s)
        self.account.count_read(len(moments))
        return moments

    async def _rate(self, frames: Sequence[ShownFrame], parts: Sequence[Candidate]) -> None:
        """Ask for ratings of the segments in which something is left to see, and for new entries of the log."""
        held = (*self.memory.frames, *frames)
        shown = self._at_detail(held, len(frames))
        rated = tuple(part.segment for part in parts if len(self.unseen_s(part.segment)))
        if not rated:
            return
        notes = self._quotes(held)
        reply = await self.session.ask(
            RateSegments(
                question=self.question,
                videos=self.environment.videos,
                segments=rated,
                frames=shown,
                notes=notes,
                history=self._open_history(),
                chapters=self.session.chapters,
                log=self.log,
                fresh=sum(bool(frame.jpeg) for frame in frames),
            )
        )
        self.keep_rewards(parts, reply)
        self.emit_rewards()
        if self.log is not None and isinstance(reply, SegmentRatings):
            after = max((frame.label for frame in held), default=0)
            entries = new_entries(reply.findings, shown, notes, self.log, after)
            self.log += entries
            cited = {entry.frame for entry in entries} - {0}
            self.session.cited |= {(frame.video_id, frame.frame_no) for frame in shown if frame.label in cited}

    def _open_history(self) -> tuple[ScoredSegment, ...]:
        return tuple(each for each in self.history if each.segment.number in self.tree.candidates)

    def _at_detail(self, frames: Sequence[ShownFrame], new: int) -> tuple[ShownFrame, ...]:
        """Return the frames that have a picture, at its detail; the last `new` are of this round."""
        new = sum(bool(frame.jpeg) for frame in frames[len(frames) - new :])
        frames = [frame for frame in frames if frame.jpeg]
        if self.parameters.pictures == "large":
            return tuple(frames)
        older = len(frames) - (new if self.parameters.pictures == "new large" else 0)
        return (*(replace(frame, detail="low") for frame in frames[:older]), *frames[older:])

    def _quotes(self, frames: Sequence[ShownFrame]) -> tuple[Note, ...]:
        """Return the lines beside some frames, and all words of moments, as notes by video and time, each once."""
        moments = [frame for frame in reversed(frames) if not frame.jpeg]
        read = [line for moment in moments for line in self.environment.words_of(moment, AROUND_S)]
        kept = dict.fromkeys(read[:MOST_READ])
        kept |= dict.fromkeys(self._lines_beside([frame for frame in frames if frame.jpeg]))
        self.account.count_screen_text(kept)
        return tuple(sorted(kept, key=lambda note: (note.video_id, note.start_s, note.end_s, note.text)))

    def _lines_beside(self, frames: Sequence[ShownFrame]) -> list[Note]:
        """Return the lines that are said or shown while frames are on screen, then those around them."""
        if not self.parameters.quotes:
            return []
        ranges_s = [(frame.video_id, *self.environment.shown_range(frame)) for frame in reversed(frames)]
        beside = [
            self.environment.quoted(video_id, start_s - around_s, end_s + around_s)
            for around_s in (0.0, AROUND_S)
            for video_id, start_s, end_s in ranges_s
        ]
        return list(dict.fromkeys(line for each in beside for line in each))[:MOST_QUOTED]

    def step(self, *, must_answer: bool = False) -> ChooseStep:
        frames = self._at_detail(self.memory.frames, 0 if must_answer else self.new)
        return ChooseStep(
            question=self.question,
            videos=self.environment.videos,
            candidates=self.scored(reward_of),
            frames=frames,
            must_answer=must_answer,
            notes=self._quotes(self.memory.frames),
            log=self.log,
            chapters=self.session.chapters,
        )

    def _allot(self, opened: Segment, count: int) -> dict[int, Times]:
        """Return the times of a round by segment, `count` at most."""
        matches_s: dict[str, list[float]] = defaultdict(list)
        for match in drawing_order(self.clusters, self._seen()):
            matches_s[match.video_id].append(match.time_s)
        stretches = [
            Stretch(number, each.segment.video_id, self._worth(each, opened), self.unseen_s(each.segment))
            for number, each in self.tree.candidates.items()
            if self.parameters.spread or is_within(each.segment, opened)
        ]
        return allot(stretches, matches_s, count, self.parameters.anchor_frames, self.parameters.least_share)

    def _worth(self, candidate: Candidate, opened: Segment) -> float:
        return worth_of(candidate, opened, self.parameters.sharpness)


def _planned(step: Step) -> str:
    where = {"words": "what is said", "whole film": "the whole film"}.get(step["arguments"].get("where"), "one moment")
    return f"looked for the answer in {where}"


KINO = Variant(
    "kino",
    "a tree search that spends each frame where it promises most, over all that is open; the question gives the route",
    kino,
    lambda longest_s: KinoParameters(),
    roles=("policy", "reward"),
    ablations={
        "no route": {"route": False},
        "no matches": {"anchor_frames": 0},
        "one segment a look": {"spread": False},
        "no sharpness": {"sharpness": 1.0},
        "one rating a look": {"least_share": 0.0},
        "no log": {"log": False},
        "no words": {"anchors_from": "frames"},
    },
    uses=(*LINE_KINDS, "detections"),
    prefers_pictures=True,
    plain=(
        "Decides by your question where to look: in what is said, at one moment, or all over the film. Spends its "
        "pictures on several promising parts at once."
    ),
    words={"plan": _planned},
)
