"""Reports made up as a run would give them: questions of several kinds, on videos of many lengths, for any agents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kinodex.jobs.eval.folder import IndexCost
from kinodex.jobs.eval.items import MissingVideo, Problem
from kinodex.jobs.eval.report import Depth, EvalReport, Pair, Standing
from kinodex.jobs.eval.score import Estimate, estimate, p_value, spread

KINDS = ("entity recognition", "event understanding", "key information retrieval", "reasoning", "temporal grounding")
LENGTHS = ("< 5 min", "5 to 30 min", "30 to 60 min", "60 to 100 min", "> 100 min")
QUESTIONS_A_VIDEO = 10


@dataclass(frozen=True)
class Player:
    """A contender, how often it is right, and the frames and rounds that it needs on average."""

    name: str
    right: float
    frames: float
    rounds: float
    tree: bool = False
    tokens: float = 9_000

    @property
    def agent(self) -> str:
        return self.name.partition(",")[0].partition(":")[0]


AGENTS = (
    Player("eea", 0.52, 14, 2.2, True, 14_000),
    Player("vca", 0.44, 20, 3.1, True, 19_000),
    Player("videoagent2", 0.46, 34, 4.0, False, 31_000),
    Player("videotree", 0.41, 56, 3.0, False, 24_000),
    Player("videoagent", 0.37, 22, 2.3, False, 11_000),
)
ABLATIONS = (
    Player("eea, no semantic-guided expansion", 0.47, 19, 2.9, True, 18_000),
    Player("eea, no reward fusion", 0.46, 17, 2.8, True, 17_000),
    Player("eea, no query update", 0.49, 15, 2.5, True, 14_500),
)
CONTROLS = (
    Player("uniform, as many frames as eea", 0.36, 14, 1, False, 9_000),
    Player("blind", 0.29, 0, 1, False, 300),
    Player("random", 0.25, 0, 0, False, 0),
)


def sample_report(players=AGENTS[:2] + CONTROLS, *, questions=600, seed=1, **others) -> EvalReport:
    """A report of players on so many questions; `others` replace its fields."""
    random = np.random.default_rng(seed)
    asked = _Asked(random, questions)
    scores = {player: asked.scores(player) for player in players}
    names = [player for player in players if player not in CONTROLS]
    fields = {
        "benchmark": "lvbench",
        "title": "LVBench",
        "library": "/data/lvbench.lance",
        "models": {"policy": "gpt-4o-2024-08-06 at https://api.example.org/v1", "reward": "the same"},
        "judge": None,
        "asked": questions,
        "questions": questions + 23,
        "videos": asked.video.max() + 1,
        "chance": 0.25,
        "missing": (
            MissingVideo("Cm73ma6Ibcs", "no video in the library has this id", 15),
            MissingVideo("TiQBTesZUJQ", "two", 8),
        ),
        "problems": (Problem("row 17", 'the answer is "E"; options are A to D'),),
        "index_cost": IndexCost(int(asked.video.max()) + 1, 68.2, 245_520, 0),
        "standings": tuple(_standing(player, scores[player], asked) for player in players),
        "pairs": tuple(
            _pair(a, b, scores, asked) for n, a in enumerate(names) for b in [*names[n + 1 :], *CONTROLS] if b in scores
        ),
        "complete": True,
    }
    return EvalReport(**{**fields, **others})


class _Asked:
    def __init__(self, random, questions):
        self.random, self.questions = random, questions
        self.video = np.arange(questions) // QUESTIONS_A_VIDEO
        self.easy = np.repeat(random.normal(0, 0.1, self.video.max() + 1), QUESTIONS_A_VIDEO)[:questions]
        self.kind = random.integers(0, len(KINDS), questions)
        self.length = (self.video * 7 // 3) % len(LENGTHS)

    def scores(self, player):
        hard = 0.02 * (self.length - 2) * (1 if player.tree else 2) if player.frames else 0
        return (self.random.random(self.questions) < player.right + self.easy - hard - 0.03 * (self.kind - 2)).astype(
            float
        )

    def estimate(self, values, where=slice(None), lowest=0) -> Estimate:
        return estimate(values[where].tolist(), self.video[where].tolist(), lowest, 1)


def _standing(player, scores, asked) -> Standing:
    random, questions = asked.random, asked.questions
    rounds = np.minimum(random.geometric(1 / max(player.rounds, 1), questions), 10) if player.rounds else None
    frames = np.zeros(questions, int)
    if player.frames:
        frames = (player.frames / player.rounds * rounds + random.poisson(2, questions)).astype(int)
    tokens = player.tokens * (0.4 + 0.3 * random.gamma(2, 1, questions))
    costs = {
        "frames": frames,
        "tokens": tokens,
        "cost": tokens * 2.5e-6,
        "seconds": tokens / 900,
        "calls": tokens // 4000,
    }
    groups = {
        "question_type": {kind: asked.estimate(scores, asked.kind == n) for n, kind in enumerate(KINDS)},
        "duration": {length: asked.estimate(scores, asked.length == n) for n, length in enumerate(LENGTHS)},
    }
    control = player in CONTROLS
    return Standing(
        name=player.name,
        agent=player.agent,
        settings={"frames": 6} if player.tree else {},
        is_control=control,
        accuracy=asked.estimate(scores),
        valid=None,
        unanswered=0 if control else int(0.03 * questions),
        invalid=0 if control else int(0.01 * questions),
        errors=0,
        evidence=asked.estimate(scores * (random.random(questions) < 0.8)) if player.frames else None,
        grounding=None,
        costs={name: spread(values) for name, values in costs.items()},
        groups=groups,
        depths=_depths(rounds, scores) if player.rounds > 1 else (),
        frames=tuple(int(number) for number in frames),
        entropy=_entropy(player, random) if player.tree else {},
        distance=_distance(random) if player.tree else {},
    )


def _depths(rounds, scores) -> tuple[Depth, ...]:
    ends = [(int(number), scores[rounds == number]) for number in sorted(set(rounds))]
    return tuple(Depth(number, len(ended), len(ended) / len(scores), float(ended.mean())) for number, ended in ends)


def _entropy(player, random):
    """Bimodal, as Figure 4 of EEA has it; fusion takes mass from the top."""
    low, high = random.beta(1, 8, 400), random.beta(9, 1, 600)
    entropies = {"intrinsic": tuple(np.concatenate([low, high]).tolist())}
    if player.name.startswith("eea"):
        entropies["fused"] = tuple(random.beta(3, 3, 1000).tolist())
    return entropies


def _distance(random):
    return {
        name: tuple(np.where(random.random(700) < hit, 0, random.lognormal(5, 1.6, 700)).tolist())
        for name, hit in (("chosen", 0.45), ("best", 0.38))
    }


def _pair(a, b, scores, asked) -> Pair:
    one, two = scores[a], scores[b]
    difference = asked.estimate(one - two, lowest=-1)
    counts = [int(((one == x) & (two == y)).sum()) for x, y in ((1, 1), (1, 0), (0, 1), (0, 0))]
    return Pair(a.name, b.name, difference, p_value(difference), *counts)
