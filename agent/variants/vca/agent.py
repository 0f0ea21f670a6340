"""VCA, the video curious agent (ICCV 2025): Algorithm 1, sections 3.1 to 3.3, and the ablations of 4.3 and 5.2.

What the paper leaves open, and what this agent does: N (of 6 and 4, EEA 6.2, which compares itself with VCA); a frame
in the memory has the higher reward of the two segments that it borders; a segment that is opened again is divided by
the frames that cover best what was not seen of it. `docs/papers.md` has the whole list.
"""

from __future__ import annotations

import numpy as np

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.videos import ScoredSegment
from kinodex.agent.requests.tree import SegmentScores
from kinodex.agent.search.coverage import cover, spread
from kinodex.agent.search.tree import Candidate, affordable, border_rewards
from kinodex.agent.search.tree_search import TreeSearch, longest_search, reward_of
from kinodex.agent.search.video_choice import start_multi_video
from kinodex.agent.session import Session
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.vca.parameters import VCAParameters
from kinodex.agent.variants.vca.requests import ExploreSegment, RewardSegments, Round
from kinodex.agent.variants.vca.without_tree import without_tree
from kinodex.agent.variants.words import Step
from kinodex.agent.videos.scale import calibrate
from kinodex.index.times import clock


async def vca(session: Session, parameters: VCAParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the search in the middle of a round."""
    if not parameters.tree_search:
        return await without_tree(session, parameters)
    return await _Search(session, parameters).run()


class _Search(TreeSearch):
    """Beside candidates, memory and history: the conversation with the exploration agent."""

    def __init__(self, session: Session, parameters: VCAParameters) -> None:
        super().__init__(session, parameters.memory)
        self.parameters = parameters
        self.dialogue: list[Round] = []

    async def run(self) -> Answer:
        selected = await start_multi_video(self.session, self.tree, self.parameters.videos)  # lines 1 to 4
        while True:
            self.account.begin_round()
            frames, parts = self._uniform_sample(selected)  # lines 8 and 12
            self.keep_rewards(parts, await self._evaluate(selected, frames, parts))  # lines 10 and 14
            if self.parameters.reward != "none":
                self.emit_rewards()
            self.remember(frames, border_rewards(frames, parts))  # line 16
            decision = await self.session.decide(self.step())  # line 18
            if isinstance(decision, Answer):
                return decision
            new = tuple(ScoredSegment(part.segment, part.reward, rated=part.reward is not None) for part in parts)
            self.dialogue.append(Round(new, decision))
            selected = decision

    def _uniform_sample(self, number: int) -> tuple[tuple[ShownFrame, ...], list[Candidate]]:
        """Divide a segment at N equally spaced frames; it stays a candidate itself."""
        selected = self.tree.candidates[number]
        segment, unseen_s = selected.segment, self.unseen_s(selected.segment)
        count = affordable(self.account, self.parameters.frames)
        if selected.divided:
            stored_s = self.environment.times(segment.video_id)
            inside_s = stored_s[(stored_s >= segment.start_s) & (stored_s < segment.end_s)]
            seen_s = np.union1d(np.setdiff1d(inside_s, unseen_s), [segment.start_s, segment.end_s])
            chosen_s = cover(unseen_s, unseen_s, seen_s, count)
        else:
            chosen_s = spread(segment.start_s, segment.end_s, unseen_s, count)
        is_only_video = len(self.environment.videos) == 1 and self.account.rounds == 1
        return self.divide(number, chosen_s, keep=not is_only_video)

    async def _evaluate(
        self, parent: int, frames: tuple[ShownFrame, ...], parts: list[Candidate]
    ) -> SegmentScores | None:
        """Reward the new segments, with an explanation before each score, in view of the history (section 3.1)."""
        if self.parameters.reward == "image":
            self._compare_borders(parts)
        if self.parameters.reward != "model":
            return None
        return await self.session.ask(
            RewardSegments(
                question=self.question,
                videos=self.environment.videos,
                segments=tuple(part.segment for part in parts),
                frames=frames,
                history=tuple(self.history),
                parent=parent if self.history else None,
            )
        )

    def step(self, *, must_answer: bool = False) -> ExploreSegment:
        return ExploreSegment(
            question=self.question,
            videos=self.environment.videos,
            candidates=self.scored(reward_of),
            frames=self.memory.in_time_order,
            scores="none" if self.parameters.reward == "none" else "reward",
            must_answer=must_answer,
            dialogue=tuple(self.dialogue),
        )

    def _compare_borders(self, parts: list[Candidate]) -> None:
        environment = self.environment
        among = [video.video_id for video in environment.videos]
        for part in parts:
            segment = part.segment
            similar = calibrate(environment.deviations([self.question.text], segment.video_id, among))[:, 0]
            times_s = environment.times(segment.video_id)
            borders = [np.argmin(np.abs(times_s - border_s)) for border_s in (segment.start_s, segment.end_s)]
            part.reward = 100 * float(similar[borders].mean())


def _chose_frames(step: Step) -> str:
    times_s = step["arguments"].get("times_s") or ()
    if not times_s:
        return "chose frames to look at"
    first, last = clock(min(times_s)), clock(max(times_s))
    return f"chose frames {f'at {first}' if first == last else f'from {first} to {last}'}"


VCA = Variant(
    "vca",
    "tree search with uniform frames, led by the rewards that the model itself gives (ICCV 2025)",
    vca,
    VCAParameters.for_duration,
    roles=("policy", "reward"),
    chooses=True,
    assumes=longest_search,
    ablations={
        "no reward": {"reward": "none"},
        "no tree search": {"tree_search": False},
        "image reward": {"reward": "image"},
    },
    needs_pictures=True,
    plain=(
        "The same without a search by words first: it looks at pictures spread over the video and opens what seems "
        "most useful."
    ),
    words={"look": _chose_frames},
)
