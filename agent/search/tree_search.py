"""A search over the tree in the hands of an agent: segments, memory, history of rewards, log, and requests."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import LogEntry, Note
from kinodex.agent.protocol.videos import ScoredSegment
from kinodex.agent.requests.tree import MOST_FINDINGS, Decide, Finding, ScoreKind, ScoreSegments, SegmentScores
from kinodex.agent.search.memory import final_request, remember, shown_frames, start_memory
from kinodex.agent.search.tree import Candidate, Tree, affordable, live_history, shown_candidates, unseen_times
from kinodex.agent.session import Session
from kinodex.agent.traces.events import CandidateScore, Scored
from kinodex.agent.videos.environment import Environment
from kinodex.index.text import beginning

FINDING_CHARACTERS = 160
"""Of an entry of the log: fifteen words have fewer."""
MOST_QUOTED = 60
"""Lines beside the frames of a request; of more, those said while a frame is on screen, of the latest ones first."""
Form = Literal["ours", "paper"]
"""The rules of a search where ours differ from the paper's; `docs/papers.md` lists them."""


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
        """Return the request for the rewards of new segments, in view of the history and of the frames in the memory.

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
        """Return the segments with the score that is shown; without rewards none has one."""
        kind = operator.attrgetter("fused" if self.scores == "fused" else "reward")
        return shown_candidates(self.tree, self.environment, self.account, kind)

    def quotes(self, frames: Sequence[ShownFrame]) -> tuple[Note, ...]:
        """Return the lines that are said or shown beside some frames, as notes by video and time, each once."""
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
