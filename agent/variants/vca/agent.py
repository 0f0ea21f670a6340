"""VCA, the video curious agent (ICCV 2025): Algorithm 1, sections 3.1 to 3.3, and the ablations of 4.3 and 5.2.

`docs/papers.md` says what the paper leaves open, what was decided, and where ours differs (`form=paper` restores the
paper); `agent.search` states its own.
"""

from __future__ import annotations

import numpy as np

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.search.chapters import first_level_s, show_chapters
from kinodex.agent.search.coverage import cover, spread
from kinodex.agent.search.memory import remember
from kinodex.agent.search.tree import Candidate, affordable, border_rewards, unseen_times
from kinodex.agent.search.tree_search import TreeSearch
from kinodex.agent.search.video_choice import start_multi_video
from kinodex.agent.session import Session
from kinodex.agent.traces.events import Expanded
from kinodex.agent.variants.base import PAPER_FORM, Variant
from kinodex.agent.variants.vca.parameters import VCAParameters
from kinodex.agent.variants.vca.without_tree import without_tree
from kinodex.agent.variants.words import Step
from kinodex.agent.videos.scale import calibrate
from kinodex.index.times import clock


async def vca(session: Session, parameters: VCAParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the search in the middle of a round."""
    if not parameters.tree_search:
        return await without_tree(session, parameters)
    return await _Search(session, parameters, "none" if parameters.reward == "none" else "reward").run()


class _Search(TreeSearch):
    parameters: VCAParameters

    async def run(self) -> Answer:
        if whole := await self.answer_from_whole():
            return whole
        selected = await self._begin()  # lines 1 to 4
        while True:
            self.account.begin_round()
            evicted = self.memory.make_room(affordable(self.account, self.parameters.frames))
            before = self.tree.candidates[selected].reward
            frames, parts = self._uniform_sample(selected)  # lines 8 and 12
            await self._evaluate(selected, frames, parts)  # lines 10 and 14
            rewards = border_rewards(frames, parts, None if self.literal else before)
            remember(self.session, self.memory, frames, rewards, evicted)  # line 16
            decision = await self.decide(len(frames))  # line 18
            if isinstance(decision, Answer):
                return decision
            selected = decision

    async def _begin(self) -> int:
        limits = self.parameters
        first = await start_multi_video(self.session, self.tree, limits.videos, limits.anchors_from)
        if limits.chapters:
            show_chapters(self.session, summaries=True)
        for video in self.tree.candidates.values():
            video.explanation = f"its best match with what is searched for is {video.query_score:.2f} of 1"
        return first

    def _uniform_sample(self, number: int) -> tuple[tuple[ShownFrame, ...], list[Candidate]]:
        """Divide a segment at N equally spaced frames; it stays a candidate itself."""
        environment = self.environment
        selected = self.tree.candidates[number]
        segment = selected.segment
        unseen_s = unseen_times(self.tree, environment, self.account, segment)
        count = affordable(self.account, self.parameters.frames)
        if selected.divided:
            stored_s = environment.times(segment.video_id)
            inside_s = stored_s[(stored_s >= segment.start_s) & (stored_s < segment.end_s)]
            seen_s = np.union1d(np.setdiff1d(inside_s, unseen_s), [segment.start_s, segment.end_s])
            chosen_s = cover(unseen_s, unseen_s, seen_s, count)
        else:
            parts_s = first_level_s(environment, segment, unseen_s, count) if self.parameters.chapters else ()
            equal_s = spread(segment.start_s, segment.end_s, unseen_s, count)
            chosen_s = np.asarray(parts_s) if len(parts_s) else equal_s
        frames = self.session.label(environment.frames(segment.video_id, chosen_s))
        video_alone = len(environment.videos) == 1 and self.account.rounds == 1
        parts = self.tree.divide(number, frames, keep=not video_alone)
        children = tuple(part.segment for part in parts)
        self.session.emit(Expanded(self.account.rounds, segment, children, frames))
        return frames, parts

    async def _evaluate(self, parent: int, frames: tuple[ShownFrame, ...], parts: list[Candidate]) -> None:
        """Reward the new segments, with an explanation before each score, in view of the history (section 3.1)."""
        if self.parameters.reward == "none":
            return
        reply = None
        if self.parameters.reward == "image":
            self._compare_borders(parts)
        elif (request := self.scoring(parent, frames, parts)) is not None:
            reply = await self.session.ask(request)
        self.keep_rewards(parts, reply, frames)
        self.emit_rewards()

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
    ablations={
        "no reward": {"reward": "none"},
        "no tree search": {"tree_search": False},
        "image reward": {"reward": "image"},
        **PAPER_FORM,
    },
    needs_pictures=True,
    plain=(
        "The same without a search by words first: it looks at pictures spread over the video and opens what seems "
        "most useful."
    ),
    words={"look": _chose_frames},
)
