"""A replay finds the reply to a request whose scores differ in their last digits, as they do on another machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.errors import NotInTrace
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question
from kinodex.agent.trace import ReplayModel, trace_to
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
BUDGET = Budget(rounds=3)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return make_library(tmp_path_factory.mktemp("replay"), {"film": film(1, 900, {700: ("red kite desert", 12)})})


def recorded_elsewhere(library, path: Path, change: Callable[[float], float]) -> int:
    """Write a trace as a machine does whose scores come out a little changed; returns how many scores it holds."""
    with trace_to(path) as write:
        asyncio.run(ask(QUESTION, environment_of(library), ScriptedModel(explorer), budget=BUDGET, on_event=write))
    lines, scores = [json.loads(line) for line in path.read_text().splitlines()], 0
    for candidate in (each for line in lines for each in line.get("inputs", {}).get("candidates", [])):
        candidate["score"] = change(candidate["score"])
        scores += 1
    for number, line in enumerate(lines):
        if line.get("inputs", {}).get("candidates"):
            line["key"] = f"{number:032}"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return scores


def replay(library, path: Path) -> Any:
    return asyncio.run(ask(QUESTION, environment_of(library), ReplayModel(path), budget=BUDGET))


def test_the_last_digits_of_scores_make_no_difference(library, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    assert recorded_elsewhere(library, path, lambda score: score + 1e-6) > 10
    assert replay(library, path).status == "budget_exhausted"


def test_another_score_is_another_request(library, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    recorded_elsewhere(library, path, lambda score: score + 0.01)
    with pytest.raises(NotInTrace, match=r"earlier kinodex .* `kinodex view .*trace\.jsonl` still shows it"):
        replay(library, path)
