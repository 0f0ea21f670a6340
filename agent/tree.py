"""State of a tree search: the segments that may be explored next, and the frames in memory.

A segment is divided at the frames that were seen in it. The memory holds a few frames, those with the highest rewards
(EEA, section 3.3, step iv).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kinodex.agent.answer import Answer
from kinodex.agent.environment import Environment, Floats
from kinodex.agent.limits import Account
from kinodex.agent.protocol import EXACT_S, LogEntry, Note, ScoredSegment, Segment, ShownFrame
from kinodex.agent.requests.tree import MOST_FINDINGS, Decide, Finding, ScoreKind, ScoreSegments, SegmentScores
from kinodex.agent.session import Session
from kinodex.agent.trace import Acted, CandidateScore, Remembered, Scored
from kinodex.index.text import beginning

if TYPE_CHECKING:
    from kinodex.index.rows import ChapterRow

FINDING_CHARACTERS = 160
"""Of an entry of the log: fifteen words have fewer."""
MOST_QUOTED = 60
"""Lines beside the frames of a request; of more, those said while a frame is on screen, of the latest ones first."""
ALIKE = 20.0
"""Points of reward within which frames are worth the same to the memory: rewards are that rough."""
Pictures = Literal["small", "new large", "large"]
"""The size of pictures: all at low detail; those of the present round at full detail; all at full detail."""


Form = Literal["ours", "paper"]
"""The rules of a search where ours differ from the paper's; `docs/papers.md` lists them."""


@dataclass(slots=True)
class Candidate:
    """A segment that may be explored: its reward 0..100 (None: unknown), query score and fused score 0..1.

    `divided`: it was explored before and stays a candidate beside its parts.
    """

    segment: Segment
    reward: float | None = None
    explanation: str = ""
    query_score: float = 0.0
    fused: float = 0.0
    divided: bool = False


@dataclass(slots=True)
class Tree:
    """The candidates by segment number; a number is never used twice. Several videos are several roots."""

    candidates: dict[int, Candidate] = field(default_factory=dict)
    sampled: set[tuple[str, int]] = field(default_factory=set)
    """Frames at which segments were divided: they count as seen, even before a model is shown them."""
    _next: int = 0

    def divide(self, number: int, frames: Sequence[ShownFrame], *, keep: bool = False) -> list[Candidate]:
        """Replace a candidate by the parts between `frames`, each of which begins a part; or `keep` it beside them."""
        parent = self.candidates[number].segment
        self.candidates[number].divided = True
        if not keep:
            del self.candidates[number]
        self.sampled |= {(frame.video_id, frame.frame_no) for frame in frames}
        cuts = [parent.start_s, *(frame.time_s for frame in frames), parent.end_s]
        return [self.add(parent.video_id, start_s, end_s) for start_s, end_s in pairwise(cuts) if start_s < end_s]

    def add(self, video_id: str, start_s: float, end_s: float) -> Candidate:
        """Add a candidate with the next number."""
        candidate = Candidate(Segment(self._next, video_id, start_s, end_s))
        self.candidates[self._next] = candidate
        self._next += 1
        return candidate


@dataclass(slots=True)
class Memory:
    """The frames that a policy is shown, in the order of their arrival.

    Room for new frames is made before they arrive, so that what a round showed is seen by all its requests: no more
    leave than have to, for `capacity + slack` to be held. Those with the lowest rewards leave first, of nearly equal
    ones (`ALIKE`) the latest, so that the part of a prompt that a prefix cache serves stays; before them those without
    a reward (None), the oldest first. The `cited` ones, by video and number, leave last.

    The papers' memory is `exact`: the frames with the lowest rewards leave once the new ones are there, which may be
    among them.
    """

    capacity: int
    slack: int = 0
    held: list[tuple[ShownFrame, float | None]] = field(default_factory=list)
    cited: set[tuple[str, int]] = field(default_factory=set)
    exact: bool = False

    def make_room(self, count: int) -> list[ShownFrame]:
        """Remove what has to leave before so many frames are added, and return it."""
        return [] if self.exact else self._let_go(len(self.held) + count - self.capacity - self.slack)

    def _let_go(self, count: int) -> list[ShownFrame]:
        worst = sorted(range(len(self.held)), key=self._worth)[: max(0, count)]
        evicted = [self.held[at][0] for at in sorted(worst)]
        self.held = [each for at, each in enumerate(self.held) if at not in worst]
        return evicted

    def add(self, frames: Sequence[ShownFrame], rewards: Sequence[float | None]) -> list[ShownFrame]:
        """Add the frames of a round with their rewards; returns what leaves for them, if the memory is `exact`."""
        self.held += zip(frames, rewards, strict=True)
        return self._let_go(len(self.held) - self.capacity) if self.exact else []

    @property
    def frames(self) -> tuple[ShownFrame, ...]:
        """The frames held, in the order of arrival."""
        return tuple(frame for frame, _ in self.held)

    def _worth(self, at: int) -> tuple[bool, float, int]:
        frame, reward = self.held[at]
        cited = (frame.video_id, frame.frame_no) in self.cited
        return (cited, -1.0, at) if reward is None else (cited, reward if self.exact else reward // ALIKE, -at)


def unseen_times(tree: Tree, environment: Environment, account: Account, segment: Segment) -> Floats:
    """Times of the stored frames in a segment that were not sampled, and that no model has seen yet."""
    stored = environment.vectors(segment.video_id)
    first, last = np.searchsorted(stored.time_s, [segment.start_s, segment.end_s])
    seen = {*account.shown_frame_nos(segment.video_id)}
    seen |= {frame_no for video_id, frame_no in tree.sampled if video_id == segment.video_id}
    unseen = [frame_no not in seen for frame_no in stored.frame_no[first:last].tolist()]
    times: Floats = stored.time_s[first:last][np.array(unseen, bool)]
    return times


def affordable(account: Account, count: int) -> int:
    """The part of `count` frames that the budget still allows."""
    return count if account.frames_left is None else min(count, account.frames_left)


def shown_candidates(
    tree: Tree, environment: Environment, account: Account, score: Callable[[Candidate], float | None]
) -> tuple[ScoredSegment, ...]:
    """The candidates as the policy sees them; those without unseen frames cannot be explored."""
    return tuple(
        ScoredSegment(
            each.segment,
            score(each),
            each.explanation,
            explorable=len(unseen_times(tree, environment, account, each.segment)) > 0,
            divided=each.divided,
            rated=each.reward is not None,
        )
        for each in tree.candidates.values()
    )


def live_history(history: Sequence[ScoredSegment], tree: Tree, parent: int | None) -> tuple[ScoredSegment, ...]:
    """Of the rewards so far, those of segments that can still be chosen, and that of the one now divided."""
    live = {*tree.candidates, parent}
    return tuple(each for each in history if each.segment.number in live)


def shown_frames(held: Memory | Sequence[ShownFrame], new: int, pictures: Pictures) -> tuple[ShownFrame, ...]:
    """The frames of a memory, or a row of them, at the detail of their pictures; the last `new` are of this round."""
    frames = tuple(held.frames if isinstance(held, Memory) else held)
    if pictures == "large":
        return frames
    older = len(frames) - (new if pictures == "new large" else 0)
    return (*(replace(frame, detail="low") for frame in frames[:older]), *frames[older:])


def border_rewards(
    frames: Sequence[ShownFrame], parts: Sequence[Candidate], parent: float | None = None
) -> list[float | None]:
    """The larger reward of the two parts that each frame borders; if neither has one, that of their `parent`."""
    rewards: list[float | None] = []
    for frame in frames:
        beside = [part.reward for part in parts if frame.time_s in (part.segment.start_s, part.segment.end_s)]
        rewards.append(max((reward for reward in beside if reward is not None), default=parent))
    return rewards


def start_memory(session: Session, capacity: int, slack: int = 0) -> Memory:
    """Start a memory with the evidence before a follow-up question; its frames have no reward, so they leave first."""
    memory = Memory(capacity, slack)
    if session.prior_frames:
        frames = session.label(session.prior_frames)[-(capacity + slack) :]
        memory.add(frames, [None] * len(frames))
        session.emit(Remembered(session.account.rounds, frames, ()))
    return memory


def remember(
    session: Session,
    memory: Memory,
    frames: Sequence[ShownFrame],
    rewards: Sequence[float | None],
    evicted: Sequence[ShownFrame] = (),
) -> None:
    """Add the frames of a round to the memory; `evicted` are those that left it before they came."""
    left = memory.add(frames, rewards)
    session.emit(Remembered(session.account.rounds, tuple(frames), (*evicted, *left)))


def final_request(session: Session, memory: Memory, pictures: Pictures = "large", **more: Any) -> Decide:
    """Make the request for an answer from the memory when exploring is over; `more` are further fields of it."""
    return Decide(
        question=session.question,
        videos=session.environment.videos,
        frames=shown_frames(memory, 0, pictures),
        must_answer=True,
        chapters=session.chapters,
        **{"candidates": (), "scores": "none", **more},
    )


# Scenes and chapters of a library as an agent's coarse first level: lines for its prompts, and where to cut a video.
#
# `kinodex add chapters` writes them; agents read them with the setting `chapters`. Of a video its chapters are read if
# it has at least `ENOUGH`, else its scenes if it has two or more, else nothing: then the agent searches in its usual
# way, which a run says once, in an event and in the ledger. Titles and summaries were written by a model from what was
# said and shown, so prompts quote them; they lead to a place and are no evidence.

ENOUGH = 3
"""With fewer chapters the scenes of a video are its first level."""
MOST_LINES = 60
"""Titles in a prompt at most: of two hours there are 8 to 20 chapters."""
ACTION = "chapters"
ADVICE = "`kinodex add chapters` writes them; the search goes its usual way"


def coarse_parts(environment: Environment, video_id: str) -> list[ChapterRow]:
    """The parts of a video on its first level, by time: its chapters, else its scenes; none if it has no two."""
    rows = environment.chapters(video_id)
    chapters = [row for row in rows if row.level == "chapter"]
    scenes = [row for row in rows if row.level == "scene"]
    parts = chapters if len(chapters) >= ENOUGH else scenes
    return parts if len(parts) > 1 else []


def show_chapters(session: Session, *, summaries: bool) -> None:
    """Have the prompts of a run list the first level of its videos: times and titles, or `chapters` too.

    Called once the videos are chosen. Emits one event, which says of which videos there is none.
    """
    parts = {video.video_id: coarse_parts(session.environment, video.video_id) for video in session.environment.videos}
    notes = tuple(_note(part, summaries) for each in parts.values() for part in each if part.title)
    session.chapters = notes[:MOST_LINES]
    without = [video.title for video in session.environment.videos if not parts[video.video_id]]
    session.account.count_chapters(session.chapters, without=len(without))
    counts = {"parts": sum(map(len, parts.values())), "listed": len(session.chapters)}
    session.emit(Acted(session.account.rounds, ACTION, counts, problem=_problem(without)))


def first_level_s(environment: Environment, segment: Segment, unseen_s: Floats, most: int) -> Floats:
    """Times of stored frames at which a whole video is cut into its first level: the first unseen one of each part.

    At most `most` parts: neighbours that are short are joined. Empty for a part of a video, and for a video without a
    first level. `unseen_s` are times of frames [n], ascending.
    """
    video = environment.video(segment.video_id)
    if (segment.start_s, segment.end_s) != (video.start_s, video.end_s):
        return unseen_s[:0]
    cuts_s = first_level_cuts_s(environment, segment.video_id, most)
    if len(cuts_s) < 3:
        return unseen_s[:0]
    found = np.searchsorted(unseen_s, np.array(cuts_s) - EXACT_S)
    times: Floats = unseen_s[np.unique([at for at, end in pairwise(found) if at < end])]
    return times


def first_level_cuts_s(environment: Environment, video_id: str, most: int) -> list[float]:
    """The starts of a video's parts on the first level, `most` at most, and its end; empty without a first level.

    While there are too many, the two neighbours that are shortest together are joined. The first part begins with the
    video, whatever its row says.
    """
    video = environment.video(video_id)
    starts_s = [part.start_s for part in coarse_parts(environment, video_id) if video.start_s < part.start_s]
    cuts_s = [video.start_s, *(start_s for start_s in starts_s if start_s < video.end_s), video.end_s]
    while len(cuts_s) - 1 > max(1, most):
        del cuts_s[min(range(1, len(cuts_s) - 1), key=lambda at: cuts_s[at + 1] - cuts_s[at - 1])]
    return cuts_s if len(cuts_s) > 2 else []


def _note(part: ChapterRow, summaries: bool) -> Note:
    text = f"{part.title}: {part.text}" if summaries and part.text else part.title
    return Note(part.video_id, part.start_s, part.end_s, part.level, text)


def _problem(without: Sequence[str]) -> str:
    if not without:
        return ""
    more = f" and of {len(without) - 1} more" if len(without) > 1 else ""
    return f"there are no scenes or chapters to read of {without[0]!r}{more}; {ADVICE}"


# A search over the tree, in the hands of an agent.


class TreeSearch:
    """The state of Algorithm 1, of EEA's too: candidates S (the tree), memory M and reward history H_r."""

    around_s = 0.0
    """Lines this long before and after a frame stand beside it, too."""

    def __init__(self, session: Session, parameters: Any, scores: ScoreKind) -> None:
        self.session, self.parameters, self.scores = session, parameters, scores
        self.question, self.account = session.question, session.account
        self.tree = Tree()
        self.memory = start_memory(session, parameters.memory, parameters.slack)
        self.history: list[ScoredSegment] = []
        self.literal = self.memory.exact = parameters.form == "paper"
        self.log: tuple[LogEntry, ...] | None = None if self.literal else ()
        self.memory.cited = session.cited
        session.last_resort = lambda: self.last_word() if self.memory.frames else None

    @property
    def environment(self) -> Environment:
        return self.session.environment

    async def answer_from_whole(self) -> Answer | None:
        """Answer in one call about videos of no more frames than the memory holds, and a budget allows; else None."""
        environment, most = self.environment, affordable(self.account, self.parameters.memory)
        if self.literal or self.session.prior_frames or environment.index_frames > most:
            return None
        times_s = {video.video_id: environment.times(video.video_id) for video in environment.videos}
        whole = self.session.label([frame for each in times_s.items() for frame in environment.frames(*each)])
        self.account.begin_round()
        remember(self.session, self.memory, whole, [None] * len(whole))
        return await self.session.conclude(self.last_word())

    def scoring(
        self, parent: int | None, frames: tuple[ShownFrame, ...], parts: list[Candidate]
    ) -> ScoreSegments | None:
        """The request for the rewards of new segments, in view of the history and of the frames in the memory.

        They are parts of one segment, or of several (`parent` is None). A segment in which nothing is left to see is
        not rated, but for the paper's form; None where none is to be.
        """
        together = () if self.literal else shown_frames(self.memory, 0, self.parameters.pictures)
        shown = (*together, *shown_frames(frames, len(frames), self.parameters.pictures))
        hidden = [unseen_times(self.tree, self.environment, self.account, part.segment) for part in parts]
        rated = tuple(part.segment for part, left in zip(parts, hidden, strict=True) if len(left) or self.literal)
        if not rated:
            return None
        return ScoreSegments(
            question=self.question,
            videos=self.environment.videos,
            segments=rated,
            frames=shown,
            notes=self.quotes(shown),
            history=tuple(self.history) if self.literal else live_history(self.history, self.tree, parent),
            chapters=self.session.chapters,
            parent=parent if self.history else None,
            scores=self.scores,
            log=self.log,
            fresh=0 if self.literal else len(frames),
            in_full=self.literal,
        )

    def keep_rewards(self, parts: list[Candidate], reply: SegmentScores | None, frames: Sequence[ShownFrame]) -> None:
        """Note the rewards of a reply in the segments and in the history, and its findings in the log."""
        by_number = {score.segment: score for score in reply.segments} if reply else {}
        for part in parts:
            if score := by_number.get(part.segment.number):
                part.reward, part.explanation = score.score, score.reasoning
        rated = [part for part in parts if self.literal or part.reward is not None]
        self.history += [ScoredSegment(part.segment, part.reward, part.explanation) for part in rated]
        if self.log is not None and reply:
            self.log += self._entries(reply.findings, (*self.memory.frames, *frames))

    def _entries(self, findings: Sequence[Finding], frames: Sequence[ShownFrame]) -> tuple[LogEntry, ...]:
        """New entries of the log; a finding about a frame that is not shown, or that the log has, is left out."""
        shown, known = {frame.label: frame for frame in frames}, {each.line for each in self.log or ()}
        entries = []
        for each in findings[:MOST_FINDINGS]:
            if (frame := shown.get(each.frame)) is None:
                continue
            sides = ("".join(sorted({x.strip()[:1].upper() for x in side})) for side in (each.supports, each.excludes))
            seen = beginning(" ".join(each.seen.split()), FINDING_CHARACTERS)
            entry = LogEntry(frame.label, frame.video_id, frame.time_s, seen, max(shown), *sides)
            if entry.line not in known:
                entries.append(entry)
                self.session.cited.add((frame.video_id, frame.frame_no))
        return tuple(entries)

    def emit_rewards(self) -> None:
        """Emit the candidates with their rewards, where nothing is fused."""
        scores = (
            CandidateScore(each.segment.number, each.reward, 0.0, (each.reward or 0.0) / 100, each.explanation)
            for each in self.tree.candidates.values()
        )
        self.session.emit(Scored(self.account.rounds, None, tuple(scores)))

    def candidates(self) -> tuple[ScoredSegment, ...]:
        """The segments with the score that is shown; without rewards none has one."""
        kind = operator.attrgetter("fused" if self.scores == "fused" else "reward")
        return shown_candidates(self.tree, self.environment, self.account, kind)

    def quotes(self, frames: Sequence[ShownFrame]) -> tuple[Note, ...]:
        """Lines that are said, or stand on screen, beside some frames: notes by video and time, each once."""
        if not self.parameters.quotes:
            return ()
        ranges_s = [(frame.video_id, *self.environment.shown_range(frame)) for frame in reversed(frames)]
        beside = [
            self.environment.quoted(video_id, start_s - around_s, end_s + around_s)
            for around_s in dict.fromkeys((0.0, self.around_s))
            for video_id, start_s, end_s in ranges_s
        ]
        lines = list(dict.fromkeys(line for each in beside for line in each))[:MOST_QUOTED]
        self.account.count_screen_text(lines)
        return tuple(sorted(lines, key=lambda note: (note.video_id, note.start_s, note.end_s, note.text)))

    async def decide(self, new: int) -> Answer | int:
        """Ask the policy for an answer, or for the segment to open next, by the frames of the memory."""
        shown = shown_frames(self.memory, new, self.parameters.pictures)
        quotes, in_full = self.quotes(shown), self.literal
        return await self.session.decide(self.candidates(), shown, self.scores, quotes, self.log, in_full=in_full)

    def last_word(self) -> Decide:
        shown = {"notes": self.quotes(self.memory.frames), "log": self.log, "in_full": self.literal}
        candidates = {"candidates": self.candidates(), "scores": self.scores}
        return final_request(self.session, self.memory, self.parameters.pictures, **candidates, **shown)
