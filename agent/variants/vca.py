"""VCA, the video curious agent (ICCV 2025): Algorithm 1, sections 3.1 to 3.3, and the ablations of 4.3 and 5.2.

`docs/papers.md` says what the paper leaves open, what was decided, and where ours differs (`form=paper` restores the
paper); `agent.tree` and `agent.anchors` state theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from kinodex.agent.anchors import Times, cover, nearest, spread, start_multi_video
from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import Declining
from kinodex.agent.environment import AnchorsFrom, Environment, calibrate
from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.rules import frames_settle, judge_frames, rule, to_reply
from kinodex.agent.protocol import VIDEO_ID_LENGTH, Reasoned, Segment, ShownFrame, allowed_actions, named_video
from kinodex.agent.replies import NULL, Bounds, Seconds, one_of
from kinodex.agent.requests.answer import Answered, OfRun, check_answer, cited_frames, letters, says_answer
from kinodex.agent.session import NO_DECISION, Session
from kinodex.agent.trace import Acted, Decided, Expanded
from kinodex.agent.tree import (
    Candidate,
    Form,
    Memory,
    Pictures,
    Tree,
    TreeSearch,
    affordable,
    border_rewards,
    final_request,
    first_level_s,
    remember,
    show_chapters,
    start_memory,
    unseen_times,
)
from kinodex.agent.variants.base import PAPER_FORM, Step, Variant, check_at_least, restore_paper
from kinodex.index.times import clock

SHORT_VIDEO_S = 300.0
PAPER: Mapping[str, object] = {"slack": 0, "pictures": "large", "quotes": False}
"""Settings of `form=paper`."""


@dataclass(frozen=True, slots=True)
class VCAParameters:
    """The paper's settings for long videos (section 4.1); `for_duration` gives those for short ones."""

    frames: int = 6
    """Frames sampled in a round: N."""
    memory: int = 16
    """Frames kept from round to round, for the decisions and the answer."""
    reward: Literal["model", "image", "none"] = "model"
    """Scores of segments: by a model, by how their border frames match the question, or none."""
    tree_search: bool = True
    """The tree is searched; else frames are chosen from the whole video round by round."""
    videos: int = 16
    """How many videos are searched at most."""
    rounds: int = 10
    """Segments opened at most."""
    slack: int = 14
    """Frames that the memory may hold beyond `memory` before it lets go of some, the new ones counted."""
    pictures: Pictures = "small"
    """The size at which frames are shown: all at low detail, the new ones at full, or all at full."""
    quotes: bool = True
    """Requests show what is said and stands on screen at the times of their frames; else they see pictures alone."""
    anchors_from: AnchorsFrom = "all"
    """By what several videos are ranked: pictures, words (speech, text on screen, captions), or both."""
    chapters: bool = False
    """Scenes or chapters of the library are the first level of the tree, and prompts list their summaries."""
    form: Form = "ours"
    """"paper": all of the paper's rules where ours differ, `slack`, `pictures` and `quotes` among them."""

    def __post_init__(self) -> None:
        restore_paper(self, PAPER)
        check_at_least(self, frames=1, memory=1, videos=1, rounds=1, slack=0)

    @classmethod
    def for_duration(cls, duration_s: float) -> VCAParameters:
        return cls(frames=4, memory=8, slack=6) if duration_s < SHORT_VIDEO_S else cls()


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


# The request of VCA without a tree: single frames to see next (VCA, section 4.3, "w/o tree search").

ACTIONS = ("look", "answer", "insufficient_evidence")


class _Look(Reasoned):
    action: Literal["look", "answer", "insufficient_evidence"] = Field(description="what to do next")
    video: str | None = Field(description="id of the video to look at, else null")
    times_s: list[Seconds] = Field(description="times in seconds, if you look")


class FrameChoice(Answered, _Look):
    """See the frames nearest to `times_s` of one video (None: the only one), answer, or give up."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        found = {key: each for key, each in value.items() if each is not None}
        if "action" not in found and not (found.get("times_s") and says_answer(found)):  # it may be either
            found["action"] = "look" if found.get("times_s") else "answer"
        return {"video": None, "times_s": [], "option": None, "answer": None, "evidence": []} | found


@dataclass(frozen=True, kw_only=True)
class ChooseFrames(OfRun[FrameChoice]):
    """Name the times of up to `count` frames to see next, or answer from `frames`, the memory.

    `seen` holds the video and time of every frame shown so far, in the order of showing; `exhausted` the ids of videos
    in which no frame is unseen.
    """

    Reply = FrameChoice
    template: ClassVar[str] = "choose_frames"
    frames: tuple[ShownFrame, ...]
    seen: tuple[tuple[str, float], ...]
    count: int
    declining: Declining = "allowed"
    exhausted: tuple[str, ...] = ()

    @property
    def instead(self) -> str:
        return "name times to look at, or answer"

    def bounds(self) -> Bounds:
        actions = allowed_actions(ACTIONS, self.declining)
        bounds = {"action": one_of(actions), "times_s": {"maxItems": self.count}, "evidence": cited_frames()}
        return {**bounds, **letters(self.question), **({"video": NULL} if len(self.videos) == 1 else {})}

    def check(self, reply: FrameChoice) -> None:
        if reply.action == "look":
            self._check_times(reply)
        elif reply.action == "answer":
            check_answer(self.question, reply)

    def _check_times(self, reply: FrameChoice) -> None:
        video = named_video(self.videos, reply.video)
        if video.video_id in self.exhausted:
            left = [each.video_id[:VIDEO_ID_LENGTH] for each in self.videos if each.video_id not in self.exhausted]
            raise InvalidReply(
                f"all frames of video {video.video_id[:VIDEO_ID_LENGTH]} have been seen; name times of another one "
                f"({', '.join(left)}), or answer"
            )
        outside = [time_s for time_s in reply.times_s if not video.start_s <= time_s < video.end_s]
        if outside:
            raise InvalidReply(f"{outside[0]:g} s is not in the video, {video.start_s:g} s to {video.end_s:g} s")
        if not 1 <= len(reply.times_s) <= self.count:
            raise InvalidReply(f"got {len(reply.times_s)} times; name 1 to {self.count}")


@rule.register(ChooseFrames)
def _choose_by_rule(request: ChooseFrames, environment: Environment) -> dict[str, Any]:
    """Answer if the frames settle the question, else ask for the middles of the longest unseen stretches."""
    verdict = judge_frames(environment, request.question, request.frames)
    if frames_settle(verdict):
        return to_reply(request.question, verdict, [frame.time_s for frame in request.frames])
    video = min(request.videos, key=lambda each: sum(video_id == each.video_id for video_id, _ in request.seen))
    times_s = sorted([video.start_s, *(at_s for video_id, at_s in request.seen if video_id == video.video_id)])
    gaps_s = sorted(pairwise([*times_s, video.end_s]), key=lambda gap: gap[0] - gap[1])
    middles_s = [(start_s + end_s) / 2 for start_s, end_s in gaps_s[: request.count]]
    return {"action": "look", "video": video.video_id, "times_s": middles_s}


# VCA's ablation "w/o tree search" (section 4.3): the policy names the frames that it wants to see, without segments.
#
# The paper says no more than that. Decided here: the first frames are equally spaced, as in VCA; each later round
# shows the unseen frames nearest to the times that the policy names; the oldest frames leave the memory, since without
# segments there are no rewards. A model that twice gives up while frames are unseen is shown frames spread over the
# rest.


async def without_tree(session: Session, parameters: VCAParameters) -> Answer:
    """Answer from frames chosen one by one; raises `OutOfBudget` as VCA does."""
    videos, memory = Tree(), start_memory(session, parameters.memory)
    session.last_resort = lambda: final_request(session, memory) if memory.frames else None
    first = videos.candidates[
        await start_multi_video(session, videos, parameters.videos, parameters.anchors_from)
    ].segment
    if parameters.chapters:
        show_chapters(session, summaries=True)
    environment, account = session.environment, session.account
    count = affordable(account, parameters.frames)
    video_id = first.video_id
    chosen_s = spread(first.start_s, first.end_s, unseen_times(videos, environment, account, first), count)
    seen: list[tuple[str, float]] = []
    while True:
        account.begin_round()
        evicted = memory.make_room(len(chosen_s))
        frames = session.label(environment.frames(video_id, chosen_s))
        videos.sampled |= {(video_id, frame.frame_no) for frame in frames}
        seen += [(video_id, frame.time_s) for frame in frames]
        session.emit(Acted(account.rounds, "look", {"video": video_id, "times_s": tuple(chosen_s.tolist())}))
        remember(session, memory, frames, [None] * len(frames), evicted)
        choice = await _choose(session, videos, memory, tuple(seen), affordable(account, parameters.frames))
        if isinstance(choice, Answer):
            return choice
        video_id, chosen_s = choice


async def _choose(
    session: Session, videos: Tree, memory: Memory, seen: tuple[tuple[str, float], ...], count: int
) -> tuple[str, Times] | Answer:
    """The video to look at next and the times of its unseen frames nearest to those requested, or the answer."""
    environment, frames = session.environment, memory.frames
    wholes = (Segment(0, each.video_id, each.start_s, each.end_s) for each in environment.videos)
    unseen_s = {each.video_id: unseen_times(videos, environment, session.account, each) for each in wholes}
    over = session.over()
    if over or not any(len(times_s) for times_s in unseen_s.values()):
        return await session.conclude(final_request(session, memory), over or "")
    request = ChooseFrames(question=session.question, videos=environment.videos, frames=frames, seen=seen, count=count)
    exhausted = tuple(video_id for video_id, times_s in unseen_s.items() if not len(times_s))
    request = replace(request, declining=session.rules.while_searching, exhausted=exhausted, chapters=session.chapters)
    reply = await session.ask_to_search(request)
    if reply is None:
        return await session.conclude(final_request(session, memory), reason=NO_DECISION)
    doubt = await session.doubt(reply, frames) if reply.action == "answer" else ""
    if doubt or (reply.declines and request.declining != "allowed"):
        video_id = max(unseen_s, key=lambda each: len(unseen_s[each]))
        left_s = unseen_s[video_id]
        return video_id, spread(float(left_s[0]), float(left_s[-1]), left_s, count)
    if reply.action == "look":
        session.emit(Decided(session.account.rounds, reply.action, None, forced=False))
        video_id = environment.video(reply.video).video_id
        return video_id, nearest(np.asarray(reply.times_s), unseen_s[video_id])
    return session.accept(reply, frames, sufficient=reply.action == "answer")
