"""Assumptions of a simulation: similarities in a video, and errors of a model that sees, rewards and answers."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import BadSettings
from agent.variants.base import check_at_least


@dataclass(frozen=True, slots=True)
class Scenery:
    """Cosines of a query with a video's frames, in standard deviations of the unrelated frames.

    None of this was measured on real videos. Where nothing else is said, it is such that EEA ends after as many frames
    as its paper reports (docs/simulation.md); a study varies it and says for which values its findings hold.
    """

    match: float = 6.0
    """By how many deviations evidence stands out for a query that fits it; shots differ by half of it."""
    fits: float = 0.7
    """Chance that a query which ought to match the evidence does so at all."""
    lookalikes: float = 2.0
    """Places an hour that a query matches as well as the evidence, and that are something else."""
    shot_s: float = 6.0
    """Median length of a shot. Frames of one shot share their deviation but for a part."""
    flicker: float = 0.4
    """Standard deviation of a frame within its shot; that of whole shots is such that both make 1."""

    def __post_init__(self) -> None:
        check_at_least(self, match=0, lookalikes=0, flicker=0)
        if self.shot_s <= 0 or self.flicker > 1 or not 0 <= self.fits <= 1:
            raise BadSettings(
                f"got shot_s={self.shot_s}, flicker={self.flicker}, fits={self.fits}; "
                "shots are longer than 0 s, the others are from 0 to 1"
            )


@dataclass(frozen=True, slots=True)
class Noise:
    """Errors of a simulated model. Rewards are points from 0 to 100, all chances from 0 to 1."""

    reward: float = 15.0
    """Standard deviation of a segment's reward."""
    bias: float = 0.0
    """Points added to every reward."""
    step: float = 5.0
    """Rewards are multiples of this, as language models give them; 0: any number."""
    floor: float = 20.0
    """Rewards below this become 0: the model sees nothing that has to do with the question."""
    context_s: float = 60.0
    """At this distance from the evidence a frame looks half as relevant as in it."""
    fooled: float = 0.5
    """Chance that a lookalike also earns the reward of evidence."""
    misled: float = 0.15
    """Chance that a frame of a lookalike that does so is taken to show what is asked for; a guess follows."""
    selection: float = 0.05
    """Standard deviation of what the policy adds to a candidate's score, of 1, before it takes the highest."""
    suffices: float = 0.5
    """Chance that a frame in the evidence shows what is asked for."""
    understands: float = 0.7
    """Chance that a question whose evidence was seen is answered rightly."""
    false_confidence: float = 0.17
    """Chance, at every decision, of an answer from frames that do not show it: a guess."""
    discovers: float = 0.2
    """Chance that a query proposed on seeing new frames is one that ought to match the evidence."""

    def __post_init__(self) -> None:
        check_at_least(self, reward=0, step=0, floor=0, selection=0)
        chances = ("fooled", "misled", "suffices", "understands", "false_confidence", "discovers")
        wrong = next((name for name in chances if not 0 <= getattr(self, name) <= 1), None)
        if wrong is not None:
            raise BadSettings(f"got {wrong}={getattr(self, wrong)}; a chance is from 0 to 1")
        if self.context_s <= 0:
            raise BadSettings(f"got context_s={self.context_s}; it is above 0")
