"""Runs made up in memory: questions with their targets, and the answers of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kinodex.agent.evidence import Evidence
from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.protocol.question import Question
from kinodex.jobs.eval.contenders import parse_contenders
from kinodex.jobs.eval.folder import ANSWERS, JUDGED, IndexCost, RunPlan, begin_run, open_for_append
from kinodex.jobs.eval.items import Item, Target
from kinodex.jobs.eval.results import ItemResult, Judgement
from kinodex.jobs.eval.scoring.estimates import Estimate

FOUR = ("red", "blue", "green", "yellow")
LIBRARY = "library:"
"""What the library calls a video: this, and the benchmark's name of it."""


def item(name: str, video: str = "v1", option: int | None = 0, options=FOUR, **others) -> Item:
    """A question with four options of which the first is right; truth and other fields as named."""
    fields = {key: others.pop(key) for key in ("text", "evidence", "clip") if key in others}
    return Item(name, video, Question(f"What of {name}?", options), Target(option, **fields), **others)


def spoken(name: str, video: str = "v1", **others) -> Item:
    """A free-form question."""
    return item(name, video, None, (), text="a kite", **others)


def plan_of(asked: Sequence[Item], names: Sequence[str] = ("eea",), **others) -> RunPlan:
    entered = parse_contenders(names, controls=False)
    fields = {
        "benchmark": "made-up",
        "title": "Made up",
        "annotations": "/data/made-up.json",
        "annotations_sha256": "0" * 64,
        "scoring": "options",
        "library": "/data/library",
        "space": "words",
        "contenders": entered,
        "models": {"default": "similarity"},
        "budget": Budget(),
        "hide": (),
        "keep_captions": True,
        "limit": None,
        "seed": 0,
        "questions": len(asked),
        "items": {each.item_id: (LIBRARY + each.video,) for each in asked},
        "missing": (),
        "problems": (),
        "index_cost": IndexCost(1, 1.0, 3600, 0),
        "version": "0.1.0",
    }
    return RunPlan(**{**fields, **others})


def answer(name: str, option: int | None = 0, contender: str = "eea", **others) -> ItemResult:
    """The answer of a system to the question of this name; its option is the first unless another is given."""
    fields = {
        "status": "insufficient_evidence" if option is None else "answered",
        "text": None if option is None else FOUR[option],
        "reason": "",
        "rounds": 1,
        "ledger": Ledger(),
        "evidence": (),
    }
    return ItemResult(contender, name, option=option, **{**fields, **others})


def said(name: str, text: str | None, contender: str = "eea", **others) -> ItemResult:
    """A free-form answer."""
    return answer(name, None, contender, text=text, **others)


def seen(start_s: float, end_s: float, video: str = "v1") -> Evidence:
    return Evidence(LIBRARY + video, start_s, end_s)


def write_run(
    folder: Path,
    items: Sequence[Item],
    answers: Sequence[ItemResult],
    judgements: Sequence[Judgement] = (),
    names: Sequence[str] = ("eea",),
    **others,
) -> Path:
    """A run's folder, as `kinodex eval run` leaves it."""
    begin_run(folder, plan_of(items, names, **others), items)
    for file, lines in ((ANSWERS, answers), (JUDGED, judgements)):
        with open_for_append(folder / file) as append:
            for line in lines:
                append(line)
    return folder


def means(groups: Mapping[str, Estimate]) -> dict[str, float]:
    """Accuracies by category, rounded."""
    return {name: round(each.mean, 4) for name, each in groups.items()}
