"""Reports of made-up runs: questions of several kinds, on videos of many lengths, answered by any agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinodex.agent.limits.ledger import Ledger
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.folder import IndexCost
from kinodex.jobs.eval.items import Item, Problem
from kinodex.jobs.eval.report import EvalReport, make_report
from kinodex.jobs.eval.results import ItemResult, Round
from kinodex.jobs.eval.video_names import MissingVideo
from tests.support.runs.solved_runs import answer, item, plan_of, seen

KINDS = ("entity recognition", "event understanding", "key information retrieval", "reasoning", "temporal grounding")
MINUTES = (3, 20, 45, 80, 120)
QUESTIONS_A_VIDEO = 10


@dataclass(frozen=True)
class Player:
    """A contender, how often it is right, and the frames and rounds that it needs on average."""

    name: str
    right: float
    frames: float
    rounds: float
    tree: bool = False


AGENTS = (
    Player("eea", 0.52, 14, 2.2, True),
    Player("vca", 0.44, 20, 3.1, True),
    Player("videoagent2", 0.46, 34, 4.0),
    Player("videotree", 0.41, 56, 3.0),
    Player("videoagent", 0.37, 22, 2.3),
)
CONTROLS = (
    Player("uniform, as many frames as eea", 0.36, 14, 1),
    Player("blind", 0.29, 0, 1),
    Player("random", 0.25, 0, 0),
)


def sample_report(
    players: Sequence[Player] = AGENTS[:2] + CONTROLS, *, questions: int = 600, seed: int = 1, **others: Any
) -> EvalReport:
    """A report of players on this many questions; `others` replace its fields."""
    random = np.random.default_rng(seed)
    asked = [
        item(
            f"q{number}",
            f"v{number // QUESTIONS_A_VIDEO}",
            evidence=((10.0, 20.0),),
            duration_s=60.0 * MINUTES[number // QUESTIONS_A_VIDEO % len(MINUTES)],
            groups={"question_type": (KINDS[number % len(KINDS)],)},
        )
        for number in range(questions)
    ]
    plan = plan_of(
        asked,
        benchmark="lvbench",
        title="LVBench",
        library="/data/lvbench.lance",
        contenders=tuple(Contender(each.name, each.name.partition(",")[0]) for each in players),
        models={"policy": "gpt-4o-2024-08-06 at https://api.example.org/v1", "reward": "the same"},
        questions=questions + 23,
        missing=(MissingVideo("Cm73ma6Ibcs", "no video in the library has this id", 15),),
        problems=(Problem("row 17", 'the answer is "E"; options are A to D'),),
        index_cost=IndexCost(103, 68.2, 245_520, 0),
    )
    records = [record for player in players for record in _answers(player, asked, random)]
    return replace(make_report(plan, asked, records), **others)


def _answers(player: Player, asked: Sequence[Item], random: np.random.Generator) -> Iterator[ItemResult]:
    for each in asked:
        rounds = min(int(random.geometric(1 / player.rounds)), 10) if player.rounds else 0
        frames = int(player.frames / player.rounds * rounds) if player.frames else 0
        tokens = int(300 + 600 * frames * random.uniform(0.5, 1.5))
        bill = Ledger(frames=frames, calls=rounds, input_tokens=tokens, cost=tokens * 2.5e-6, seconds=tokens / 900)
        search = tuple(_round(player, each, random) for _ in range(rounds if player.tree else 0))
        option = 0 if random.random() < player.right else 1
        shown = (seen(5.0, 40.0, each.video),) if frames else ()
        yield answer(each.item_id, option, player.name, rounds=rounds, ledger=bill, search=search, evidence=shown)


def _round(player: Player, asked: Item, random: np.random.Generator) -> Round:
    """Entropies before fusion are low or high, as Figure 4 of EEA has them."""
    intrinsic = float(random.beta(1, 8) if random.random() < 0.4 else random.beta(9, 1))
    fused = float(random.beta(3, 3)) if player.name.startswith("eea") else None
    chosen, best = (seen(start_s, start_s + 30, asked.video) for start_s in random.uniform(0, 1000, 2).tolist())
    return Round(intrinsic, fused, chosen, best)
