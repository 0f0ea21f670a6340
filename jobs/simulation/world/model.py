"""A model that knows the evidence of a question and answers with set noise: for studying search, for nothing else.

What it is shown decides what it may use, as with a real model:

- A segment's reward rests on the frames at its borders: 100 for one in the evidence, less the farther it is from it
  (half at `context_s`), 100 for one in a lookalike that fools it; the better border counts, then bias and noise.
- The policy answers if a frame in its memory suffices, rightly by the chance `understands`; else it guesses, by the
  chance `false_confidence` at any time and by the chance `misled` for a frame of a lookalike that fools it; else it
  explores the candidate with the highest score, after some noise.
- Queries that it proposes on seeing frames ought to fit by the chance `discovers`, but always do when a frame shows
  the evidence or what is next to it.

Chances are drawn once for a question and looked up by frame, segment and decision, so that two agents which show it
the same get the same, and comparisons are paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from agent.core.protocol import Exchange, R, Request, ShownFrame, citation_numbers
from agent.core.question import ScoredSegment, Segment
from agent.errors import NeedsLanguage
from agent.requests.answer import AnswerFrames, Guess, Recall
from agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from agent.variants.eea.requests import ScoreAndPropose
from agent.variants.vca.requests import ChooseFrames
from jobs.simulation.world.assumptions import Noise
from jobs.simulation.world.world import World

PROPOSED = 2
"""Queries proposed on seeing new frames (the paper's prompt asks for 2 to 5, or none)."""
DECISIONS = 64
NEARBY = 0.5
"""Least relevance of a frame that counts as next to the evidence."""


class SimulatedModel:
    """Model of one `World`; raises `NeedsLanguage` for requests about more than frames."""

    name = "simulated"
    has_language = True

    def __init__(self, world: World, noise: Noise, seed: int) -> None:
        self.world, self.noise = world, noise
        self._seed = [seed, *world.spec.question_id.encode()]
        chance = np.random.default_rng([*self._seed, 1])
        self._suffices = world.evidence & (chance.random(len(world.evidence)) < noise.suffices)
        fooled = chance.random(int(world.lookalike.max()) + 1) < noise.fooled
        fooling = (world.lookalike > 0) & fooled[world.lookalike]
        self._misled = fooling & (chance.random(len(fooling)) < noise.misled)
        closeness = 1 / (1 + world.distance_s / noise.context_s)
        self._relevance = np.where(fooling, 1.0, closeness)
        self._understood = bool(chance.random() < noise.understands)
        self._wrong = (world.spec.option + int(chance.integers(1, world.spec.options))) % world.spec.options
        self._guess = int(chance.integers(world.spec.options))
        self._confident = chance.random(DECISIONS) < noise.false_confidence
        self._fitting = chance.random(DECISIONS) < noise.discovers
        self._decisions = self._proposals = 0

    async def ask(self, request: Request[R]) -> Exchange[R]:
        reply = request.Reply.model_validate(self._reply(request))
        return Exchange(reply, None, raw=reply.model_dump_json())

    def _reply(self, request: Request[Any]) -> dict[str, Any]:
        match request:
            case DiscoverQueries():
                return {"queries": self.world.first}
            case ProposeQueries(known=known, frames=frames):
                return {"queries": self._propose(known, frames)}
            case ScoreAndPropose(segments=segments, known=known):
                scores = [self._score(segment) for segment in segments]
                return {"segments": scores, "queries": self._propose(known, request.new_frames)}
            case ScoreSegments(segments=segments):
                return {"segments": [self._score(segment) for segment in segments]}
            case Decide():
                return self._decide(request)
            case ChooseFrames():
                return self._choose(request)
            case AnswerFrames(frames=frames) | Guess(frames=frames) | Recall(frames=frames):
                return self._answer(frames)
        raise NeedsLanguage(
            f"the simulated model knows frames only and cannot answer {type(request).__name__}; "
            "simulate agents that look at frames: eea, vca, uniform, blind, random"
        )

    def _score(self, segment: Segment) -> dict[str, Any]:
        """Reward a segment by its better border; the video's own ends show nothing."""
        last = len(self._relevance)
        borders = [number for number in map(round, (segment.start_s, segment.end_s)) if 0 < number < last]
        seen = max((float(self._relevance[number]) for number in borders), default=0.0)
        drawn = np.random.default_rng([*self._seed, 2, round(segment.start_s), round(segment.end_s)])
        points = 100 * seen + self.noise.bias + self.noise.reward * drawn.standard_normal()
        if self.noise.step:
            points = self.noise.step * round(points / self.noise.step)
        points = 0.0 if points < self.noise.floor else min(points, 100.0)
        return {"segment": segment.number, "score": points}

    def _decide(self, request: Decide) -> dict[str, Any]:
        open_ones = [each for each in request.candidates if each.explorable]
        if request.must_answer or not open_ones or self._ready(request.frames):
            return self._answer(request.frames)
        return {"action": "explore", "segment": self._next(open_ones, 1.0 if request.scores == "fused" else 100.0)}

    def _ready(self, frames: Sequence[ShownFrame]) -> bool:
        """True if the policy answers now: the frames suffice, or seem to."""
        self._decisions += 1
        convinced = any(self._suffices[frame.frame_no] or self._misled[frame.frame_no] for frame in frames)
        return convinced or bool(self._confident[(self._decisions - 1) % DECISIONS])

    def _next(self, open_ones: Sequence[ScoredSegment], most: float) -> int:
        """Choose the candidate with the highest score; without scores, any. Divided ones come last."""
        fresh = [each for each in open_ones if not each.divided] or list(open_ones)
        drawn = np.random.default_rng([*self._seed, 3, self._decisions])
        blur = self.noise.selection * drawn.standard_normal(len(fresh)) + 1e-6 * drawn.random(len(fresh))
        scores = np.array([(each.score or 0.0) / most for each in fresh]) + blur
        return fresh[int(np.argmax(scores))].segment.number

    def _choose(self, request: ChooseFrames) -> dict[str, Any]:
        """Choose times without a tree: half of them near the most relevant frame of the memory, the others anywhere."""
        if self._ready(request.frames):
            return self._answer(request.frames)
        drawn = np.random.default_rng([*self._seed, 4, self._decisions])
        video = request.videos[0]
        best = max(request.frames, key=lambda frame: float(self._relevance[frame.frame_no]), default=None)
        centre_s = video.start_s + video.duration_s / 2 if best is None else best.time_s
        near_s = centre_s + self.noise.context_s * drawn.standard_normal(request.count // 2)
        times_s = np.append(near_s, drawn.uniform(video.start_s, video.end_s, request.count - len(near_s)))
        inside_s = np.clip(times_s, video.start_s, video.end_s - 1e-3)
        return {"action": "look", "video": video.video_id, "times_s": inside_s.tolist()}

    def _answer(self, frames: Sequence[ShownFrame]) -> dict[str, Any]:
        shown = self._sufficient(frames)
        known = self.world.spec.option if self._understood else self._wrong
        option = known if shown else self._guess
        letter = self.world.question.lettered[option][0]
        return {"action": "answer", "option": letter, "answer": None, "evidence": shown}

    def _sufficient(self, frames: Sequence[ShownFrame]) -> list[int]:
        """List the numbers of the shown frames that hold the answer."""
        numbers, _ = citation_numbers(frames)
        return [number for number, frame in zip(numbers, frames, strict=True) if self._suffices[frame.frame_no]]

    def _propose(self, known: Sequence[str], frames: Sequence[ShownFrame]) -> list[str]:
        self._proposals += 1
        nearby = any(self._relevance[frame.frame_no] >= NEARBY for frame in frames)
        fits = nearby or bool(self._fitting[(self._proposals - 1) % DECISIONS])
        fitting, others = self.world.later
        new = [query for query in (fitting if fits else others) if query not in known]
        return new[:PROPOSED]
