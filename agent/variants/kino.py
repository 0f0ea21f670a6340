"""Kino, an agent of our own: every frame goes where it promises most, over all of a video that is still open.

1. *Plan.* The question alone gives search texts and a route: the answer is at one moment, in what is said, or in the
   whole of the film. A time that the question names is a moment that no search has to find.
2. *First look.* Pictures and lines are searched together. The best match of each of some places is looked at, and if
   there are few, the frames that cover the rest best (`agent.search.coverage`). By the route "words" these are the
   places whose lines match; by "whole film" the frames are spread over all of it, and the answer follows at once.
3. *Tree.* Frames divide the video into segments. A model rates the new ones, 0 to 100, and notes in a log what the new
   frames show. A frame is worth, in a segment with n frames unseen,

       (rating / 100) ** sharpness * n,

   and each of a round's frames goes where it is worth most: in the middle of the segment, or to a match near there. It
   leaves two halves behind, each of which promises half as much: what is looked for is in one of them. So a round
   looks into several segments, a short one gets few frames and no dead one any, and a doubtful rating costs a frame
   or two and not a round. Where one segment promises far more than all others, its third frame is worth so little
   that ratings are asked for before more is shown: a look is a few rounds, each of as many frames as are worth it.
4. *Answer.* After a look the policy sees the log, the frames and the ratings, and answers or chooses a segment, which
   counts as a better rating. When a budget ends the search, the last call shows the frames in the order of time, the
   cited ones large.

EEA opens one segment a round, with six frames; and it weighs ratings against matches by the ratings' entropy, which
grows with their number. Here ratings decide where frames go between segments, and matches where within one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.requests.tree import DiscoverQueries, Queries
from kinodex.agent.search.anchors import drawing_order
from kinodex.agent.search.coverage import Times, cover
from kinodex.agent.search.memory import Pictures, remember
from kinodex.agent.search.named_times import question_anchors
from kinodex.agent.search.tree import Candidate, affordable, border_rewards, unseen_times
from kinodex.agent.search.video_choice import add_video_roots, limit_videos, new_queries
from kinodex.agent.session import Session
from kinodex.agent.traces.events import Acted, Expanded
from kinodex.agent.variants.base import Variant, check_at_least
from kinodex.agent.variants.eea.agent import EEASearch
from kinodex.agent.variants.words import Step
from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.index.kinds import LINE_KINDS

Route = Literal["moment", "words", "whole film"]
LEAST_RATING = 0.1
"""A segment of which nothing is expected counts as rated so: a rating errs, and what is found may not answer."""
CHOSEN = 2.0
"""Factor of the worth of the segment that the policy chose."""
LEAST_FIRST, LEAST_LOOK, LEAST_ROUND = 5, 4, 2
"""Frames of the first look, of a later one, and of a round, however few a budget has."""
MIDDLE = 0.5
"""The part of a segment, around its middle, in which a match draws a frame: beside a border it would tell little."""


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
    memory: int = 64
    """Frames kept from look to look, for the decisions and the answer."""
    slack: int = 8
    """Frames that the memory may hold beyond `memory` before it lets go of some, the new ones counted."""
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
    form = "ours"  # no setting: there is no paper's form

    def __post_init__(self) -> None:
        check_at_least(self, first=1, frames=1, anchor_frames=0, whole=1, memory=1, slack=0, rounds=1)
        check_at_least(self, matches=1, videos=1, sharpness=0, least_share=0)


class SearchPlan(Queries):
    """Texts to look for, and where in a film the answer is."""

    where: Route = Field(default="moment", description="where the answer is")


@dataclass(frozen=True, kw_only=True)
class PlanSearch(DiscoverQueries):
    """Name short texts to search for, from the question and its options alone, and where the answer is."""

    Reply = SearchPlan
    template: ClassVar[str] = "plan_search"


async def kino(session: Session, parameters: KinoParameters) -> Answer:
    """Answer as above. Raises `OutOfBudget` when a budget ends the search in the middle of a look."""
    return await _Search(session, parameters).run()


class _Search(EEASearch):
    """Beside what EEA keeps: the route."""

    around_s = 5.0  # what is said of a moment is seldom said in its very second

    def __init__(self, session: Session, parameters: KinoParameters) -> None:
        super().__init__(session, parameters, "reward")
        self.route: Route = "moment"
        self.log = () if parameters.log else None

    async def run(self) -> Answer:
        if whole := await self.answer_from_whole():
            return whole
        selected, times_s = await self._first_look()
        chosen, look, looked = {selected: times_s}, len(times_s), 0
        opened = self.tree.candidates[selected].segment
        while True:
            self.account.begin_round()
            count = sum(map(len, chosen.values()))
            evicted = self.memory.make_room(count)
            frames, parts = self._divide(chosen)
            if self.route == "whole film":
                remember(self.session, self.memory, frames, [None] * len(frames), evicted)
                return await self.session.conclude(self.last_word())
            scoring = self.scoring(None, frames, parts)
            self.keep_rewards(parts, await self.session.ask(scoring) if scoring else None, frames)
            self.emit_rewards()
            remember(self.session, self.memory, frames, border_rewards(frames, parts), evicted)
            looked += count
            if looked >= look or not count or self.session.over():  # nothing may be left to see
                decision = await self.decide(looked)
                if isinstance(decision, Answer):
                    return decision
                opened = self.tree.candidates[decision].segment
                look, looked = self._look(self.parameters.frames, 4, LEAST_LOOK), 0
            chosen = self._allot(opened, look - looked)

    def _look(self, frames: int, parts: int, least: int) -> int:
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
        self.matches += question_anchors(self.environment, self.question)
        self._search(queries)
        return add_video_roots(self.session, self.tree, self._unseen_anchors())

    async def _first_look(self) -> tuple[int, Times]:
        number = await self._begin()
        segment = self.tree.candidates[number].segment
        times_s = unseen_times(self.tree, self.environment, self.account, segment)
        if self.route == "whole film":
            return number, cover(times_s, times_s, times_s[:0], affordable(self.account, self.parameters.whole))
        count = self._look(self.parameters.first, 3, LEAST_FIRST)
        drawing = [each for each in drawing_order(self.clusters, ()) if each.video_id == segment.video_id]
        said = [each for each in drawing if each.by_words] if self.route == "words" else []
        drawn = said[:count] or drawing[: min(count, self.parameters.anchor_frames)]
        drawn_s = np.unique([each.time_s for each in drawn])
        rest_s = cover(times_s, np.setdiff1d(times_s, drawn_s), drawn_s, count - len(drawn_s))
        return number, np.union1d(drawn_s, rest_s)

    def _divide(self, chosen: Mapping[int, Times]) -> tuple[tuple[ShownFrame, ...], list[Candidate]]:
        frames: list[ShownFrame] = []
        parts: list[Candidate] = []
        for number, times_s in chosen.items():
            segment = self.tree.candidates[number].segment
            shown = self.session.label(self.environment.frames(segment.video_id, times_s))
            divided = self.tree.divide(number, shown)
            children = tuple(part.segment for part in divided)
            self.session.emit(Expanded(self.account.rounds, segment, children, shown))
            frames += shown
            parts += divided
        return tuple(frames), parts

    def _allot(self, opened: Segment, count: int) -> dict[int, Times]:
        """Return the times of a round by segment, `count` at most.

        A frame goes where it is worth most, and halves a promise.
        """
        stretches = [
            (self._worth(each, opened), number, times_s)
            for number, each in self.tree.candidates.items()
            if self.parameters.spread or _is_within(each.segment, opened)
            if len(times_s := unseen_times(self.tree, self.environment, self.account, each.segment))
        ]
        matches: dict[str, list[float]] = defaultdict(list)
        for match in drawing_order(self.clusters, self._seen()):
            matches[match.video_id].append(match.time_s)
        share = self.parameters.least_share
        least = max((share * worth * len(times_s) for worth, _, times_s in stretches), default=0.0)
        drawn, shown, chosen = 0, 0, defaultdict(list)
        while stretches and shown < count:
            best = max(range(len(stretches)), key=lambda at: stretches[at][0] * len(stretches[at][2]))
            worth, number, times_s = stretches.pop(best)
            if shown >= LEAST_ROUND and worth * len(times_s) < least:
                break
            near = _near_middle(times_s, matches[self.tree.candidates[number].segment.video_id])
            if near is not None and drawn < self.parameters.anchor_frames:
                time_s, drawn = near, drawn + 1
            else:
                time_s = float(times_s[(len(times_s) - 1) // 2])
            chosen[number].append(time_s)
            halves = times_s[times_s < time_s], times_s[times_s > time_s]
            stretches += [(worth / 2, number, half) for half in halves if len(half)]
            shown += 1
        return {number: np.sort(chosen[number]) for number in sorted(chosen)}

    def _worth(self, each: Candidate, opened: Segment) -> float:
        """Return the worth of a frame in a segment for each frame that is unseen there.

        A segment without a rating counts by its query score.
        """
        rating = each.query_score if each.reward is None else each.reward / 100
        worth: float = max(rating, LEAST_RATING) ** self.parameters.sharpness
        return worth * (CHOSEN if _is_within(each.segment, opened) else 1.0)


def _is_within(part: Segment, whole: Segment) -> bool:
    return part.video_id == whole.video_id and whole.start_s <= part.start_s and part.end_s <= whole.end_s


def _near_middle(times_s: Times, matches_s: list[float]) -> float | None:
    margin_s = (1 - MIDDLE) / 2 * (times_s[-1] - times_s[0])
    low_s, high_s = times_s[0] + margin_s, times_s[-1] - margin_s
    return next((time_s for time_s in matches_s if low_s <= time_s <= high_s), None)


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
    uses=LINE_KINDS,
    needs_pictures=True,
    plain=(
        "Decides by your question where to look: in what is said, at one moment, or all over the film. Spends its "
        "pictures on several promising parts at once."
    ),
    words={"plan": _planned},
)
