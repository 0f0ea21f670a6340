"""An agent watched while it answers: what it looked at, and how its search went, for the figures of EEA and VCA."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from agent.answer import Evidence, evidence_of
from agent.core.protocol import ShownFrame
from agent.core.question import Note, Segment
from agent.environment import Environment
from agent.trace.events import Acted, CandidateScore, Decided, Event, Exchanged, Expanded, Ranked, Scored
from agent.tree_search.reward_fusion import reward_entropy
from jobs.evaluation.run.results import Round

PERCENT = 100.0


@dataclass(slots=True)
class SearchRecorder:
    """Takes the events of one question about an environment's videos."""

    environment: Environment
    rounds: list[Round] = field(default_factory=list)
    """The rounds of a search over a tree: each begins with a segment that is divided."""
    _shown: dict[tuple[str, int], ShownFrame] = field(default_factory=dict)
    _read: dict[Note, None] = field(default_factory=dict)
    _segments: dict[int, Segment] = field(default_factory=dict)
    _best: int | None = None

    @property
    def visited(self) -> tuple[Evidence, ...]:
        """The ranges that frames and notes showed, by video and in time order."""
        return evidence_of(self.environment, (*self._shown.values(), *self._read), ())

    def __call__(self, event: Event) -> None:
        match event:
            case Exchanged():
                self._shown |= {(frame.video_id, frame.frame_no): frame for frame in event.request.frames}
                self._read |= dict.fromkeys(getattr(event.request, "notes", ()))
            case Acted():
                self._read |= dict.fromkeys(event.notes)
            case Ranked():
                self._know(event.segments)
            case Expanded():
                self._know((event.parent, *event.children))
                self.rounds.append(Round(None, None, None, None))
            case Scored() if self.rounds:
                self._score(event)
            case Decided() if self.rounds and event.segment is not None:
                self.rounds[-1] = replace(
                    self.rounds[-1], chosen=self._range(event.segment), best=self._range(self._best)
                )
            case _:
                pass  # the other events say nothing that the figures need

    def _know(self, segments: Iterable[Segment]) -> None:
        self._segments |= {segment.number: segment for segment in segments}

    def _score(self, event: Scored) -> None:
        candidates = event.candidates
        is_fused = event.entropy is not None
        fused = reward_entropy([PERCENT * each.fused for each in candidates]) if is_fused else None
        self.rounds[-1] = replace(self.rounds[-1], intrinsic=_intrinsic(candidates), fused=fused)
        self._best = max(candidates, key=lambda each: each.fused).number

    def _range(self, number: int | None) -> Evidence | None:
        segment = None if number is None else self._segments[number]
        return None if segment is None else Evidence(segment.video_id, segment.start_s, segment.end_s)


def _intrinsic(candidates: Sequence[CandidateScore]) -> float | None:
    rewards = [each.reward for each in candidates]
    return None if all(reward is None for reward in rewards) else reward_entropy(rewards)
