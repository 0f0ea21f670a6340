"""A run killed at any instant and begun again leaves the records that an undisturbed one leaves, but for times.

KINODEX_EVAL_KILLS sets how many times it is killed (a few by default).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.exchange import Exchange
from kinodex.agent.protocol.request import Request
from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from kinodex.jobs.eval.contenders import parse_contenders
from kinodex.jobs.eval.folder import ANSWERS, read_items, read_plan, read_results, trace_file
from kinodex.jobs.eval.plan import RunRequest, make_plan
from kinodex.jobs.eval.results import ItemResult, RunContext, Solve
from kinodex.jobs.eval.run import RunOptions, run
from kinodex.jobs.eval.solve import make_solver
from kinodex.jobs.models import ModelChoice
from tests.support.libraries.agent_library import ScriptedModel, embed_words, explorer, film, make_library
from tests.support.runs.eval_runs import FILMS, write_questions
from tests.world.benchmark import SKETCHES

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("KINODEX_EVAL_KILLS", "2"))
EACH = 4
CALL_S = 0.01


class Slow(ScriptedModel):
    """Takes its time, a little more or less for each call."""

    async def ask(self, request: Request[Any]) -> Exchange[Any]:
        await asyncio.sleep(random.uniform(0.5, 1.5) * CALL_S)
        return await super().ask(request)


@asynccontextmanager
async def slowly(library: Library) -> AsyncIterator[Solve]:
    def environment_of(video_ids: tuple[str, ...]) -> Environment:
        return Environment.of(library, [library.video(each) for each in video_ids], embed_words)

    yield make_solver(environment_of, lambda environment: Slow(explorer), Budget(rounds=2), traces=True)


def evaluate(folder: Path, out: Path) -> None:
    """Run the evaluation in the child process."""
    library = Library.open(str(folder / "library"))
    entered = parse_contenders(["eea", "vca"], has_language=False)
    setting = RunContext(library.uri, ModelChoice(), Budget(rounds=2))
    plan, items = make_plan(RunRequest(SKETCHES, folder / "questions.jsonl", entered), setting)
    run(plan, items, slowly(library), out, RunOptions(items=3))


def begun(folder: Path, out: Path) -> subprocess.Popen[bytes]:
    code = "from pathlib import Path; from tests.end_to_end.kills.test_eval import evaluate; "
    code += f"evaluate(Path({str(folder)!r}), Path({str(out)!r}))"
    return subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[3])


def without_times(out: Path) -> dict[tuple[str, str], ItemResult]:
    records = read_results(out)
    untimed = [replace(each, ledger=replace(each.ledger, seconds=0.0, model_seconds=0.0)) for each in records]
    return {(each.contender, each.item_id): each for each in untimed}


def test_killed_at_random_it_goes_on_where_it_was(tmp_path: Path) -> None:
    films = {f"{name}": film(number, 60) for number, name in enumerate(FILMS)}
    make_library(tmp_path / "library", films)
    write_questions(tmp_path, FILMS, EACH)
    evaluate(tmp_path, tmp_path / "whole")
    whole, disturbed = without_times(tmp_path / "whole"), tmp_path / "disturbed"
    assert len(whole) == 4 * EACH * len(FILMS)
    chance, lines = random.Random(1), 0
    for _ in range(KILLS):
        with begun(tmp_path, disturbed) as child:
            wanted = lines + chance.randint(1, len(whole) // (KILLS + 1))
            while child.poll() is None and count(disturbed) < wanted:
                time.sleep(0.002)
            time.sleep(chance.uniform(0.0, CALL_S))
            child.kill()
        assert child.returncode == -signal.SIGKILL, "it was to die on the way"
        assert count(disturbed) >= lines
        lines = count(disturbed)
    evaluate(tmp_path, disturbed)
    assert count(disturbed) == len(whole), "nothing was asked twice"
    assert without_times(disturbed) == whole
    assert read_plan(disturbed) == read_plan(tmp_path / "whole")
    assert read_items(disturbed) == read_items(tmp_path / "whole")
    assert all(trace_file(disturbed, contender, item_id).exists() for contender, item_id in whole)


def count(out: Path) -> int:
    """Count the whole lines."""
    answers = out / ANSWERS
    return answers.read_bytes().count(b"\n") if answers.exists() else 0
