"""Forecasts against bills: all agents on a drawn film, rehearsed with nothing sent, then really run over the wire."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.agent.ask import VARIANTS, ask
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.limits import Budget, Ledger
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.protocol import AnswerRules
from kinodex.jobs.forecast import COSTS, Forecast, Rehearsal, forecast_question, rehearse, without_writing
from kinodex.jobs.models import ModelChoice, endpoint_roles
from tests.support.command import Kinodex
from tests.support.libraries.sketch_library import SketchLibrary
from tests.support.servers.rule_server import MODEL, MeteredServer, Rules, RuleServer

NEAR = 1.5
PRICES = 2.5, 10.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forecast")


@pytest.fixture(scope="module")
def sketches(copy_sketches: Callable[[Path], SketchLibrary], folder: Path) -> SketchLibrary:
    return copy_sketches(folder)


@pytest.fixture(scope="module")
def rules() -> Rules:
    return Rules()


@pytest.mark.slow
@pytest.mark.parametrize("agent", [variant.name for variant in VARIANTS])
def test_a_forecast_is_near_the_bill(agent: str, sketches: SketchLibrary, rules: Rules) -> None:
    with MeteredServer(rules) as server:
        choice = ModelChoice(MODEL, server.base_url, None, *PRICES)
        tasks = [(each.question, (each.film,)) for each in sketches.known]
        rehearsal = Rehearsal(agent, agent, {}, endpoint_roles(choice), Budget())
        expected = rehearse(rehearsal, tasks, lambda films: sketches.films[Path(films[0]).stem])
        bill = asyncio.run(_bill(agent, sketches, choice))
    for name in COSTS:
        real = sum(getattr(each, name) for each in bill)
        if name != "output_tokens":  # a model's replies are as long as it likes; money has them with their price
            assert real / NEAR <= getattr(expected, name) <= real * NEAR, (name, expected, real)


async def _bill(agent: str, sketches: SketchLibrary, choice: ModelChoice) -> list[Ledger]:
    """Run all questions, one after the other, with captions kept for the next question, in memory."""
    captions: list = []
    async with OpenAIModel(endpoint_roles(choice)["default"]) as model:
        return [
            (
                await ask(
                    each.question, without_writing(sketches.films[Path(each.film).stem], captions), model, agent=agent
                )
            ).ledger
            for each in sketches.known
        ]


def test_nothing_is_sent_and_nothing_written(sketches: SketchLibrary, rules: Rules) -> None:
    environment = sketches.films["harbour"]
    [video] = environment.videos
    with RuleServer(rules) as server:
        choice = ModelChoice(MODEL, server.base_url, None, *PRICES)
        question = sketches.known[0].question
        forecast = forecast_question(question, environment, choice, "videotree", {}, Budget(), AnswerRules())
        assert server.most_at_once == 0
    assert forecast.questions == 1 and forecast.calls > 3 and forecast.cost > 0
    assert environment.source.clips(video.video_id, MODEL) == []


def test_the_agent_must_fit_the_model(sketches: SketchLibrary) -> None:
    question, environment = sketches.known[0].question, sketches.films["harbour"]
    with pytest.raises(NeedsLanguage, match="videoseek reasons in words"):
        forecast_question(question, environment, ModelChoice(), "videoseek", {}, Budget(), AnswerRules())


def test_many_questions_are_rehearsed_in_part(sketches: SketchLibrary) -> None:
    """Twenty times the same question costs twenty times what one costs, but for what is kept of a film."""
    known = sketches.known[0]
    rehearsal = Rehearsal("uniform", "uniform", {}, {}, Budget())

    def expected(count: int) -> Forecast:
        return rehearse(rehearsal, [(known.question, (known.film,))] * count, lambda films: sketches.films["harbour"])

    assert expected(20).calls == 20 * expected(1).calls == 20
    assert expected(20).input_tokens == pytest.approx(20 * expected(1).input_tokens)
    tree = replace(rehearsal, system="videotree", agent="videotree")
    one, ten = (
        rehearse(tree, [(known.question, (known.film,))] * count, lambda films: sketches.films["harbour"])
        for count in (1, 10)
    )
    assert one.calls < ten.calls < 10 * one.calls


def test_the_built_in_model_is_rehearsed_by_itself(sketches: SketchLibrary) -> None:
    rehearsal = Rehearsal("eea", "eea", {}, {}, Budget(), has_language=False)
    tasks = [(each.question, (each.film,)) for each in sketches.known]
    films = {film: sketches.films[Path(film).stem] for _, (film,) in tasks}

    async def bill() -> list[Ledger]:
        return [
            (await ask(question, films[film], RuleBasedModel(films[film]), agent="eea")).ledger
            for question, (film,) in tasks
        ]

    ledgers = asyncio.run(bill())
    expected = rehearse(rehearsal, tasks, lambda ids: films[ids[0]])
    assert expected.calls == sum(each.calls for each in ledgers)
    assert expected.frames == sum(each.frames for each in ledgers)
    longer = rehearse(replace(rehearsal, has_language=True), tasks, lambda ids: films[ids[0]])
    assert longer.calls > expected.calls


def calls(forecast: str) -> int:
    """Read the calls of eea from a printed forecast."""
    return int(next(line for line in forecast.splitlines() if line.startswith("| eea ")).split("|")[3].replace(",", ""))


@pytest.mark.slow
def test_a_past_run_is_the_better_basis(
    kinodex: Kinodex, folder: Path, sketches: SketchLibrary, tmp_path: Path
) -> None:
    questions = Path(shutil.copy(folder / "questions.jsonl", tmp_path))
    run = ("eval", "run", "sketch", folder / "library", "--annotations", questions, "--no-page", "--no-controls")
    first = kinodex(*run, "--out", tmp_path / "new", "--dry-run")
    assert first.code == 0 and "| eea | 6 |" in first.out and "| rehearsal |" in first.out
    assert not (tmp_path / "new").exists()
    assert kinodex(*run, "--out", tmp_path / "old").code == 0
    second = kinodex(*run, "--out", tmp_path / "new", "--dry-run")
    assert "| past run old |" in second.out
    assert "`--limit 10` without --dry-run" in second.out
    verified = kinodex(*run, "--out", tmp_path / "other", "--verify", "--dry-run")
    assert "| rehearsal |" in verified.out, "a run without --verify says nothing of its calls"
    assert calls(verified.out) > calls(first.out)
    done = kinodex(*run, "--out", tmp_path / "old", "--dry-run")
    assert "| eea | 0 | 0 | 0 | 0 | 0 |" in done.out


def test_the_command_prints_a_forecast(kinodex: Kinodex, folder: Path, sketches: SketchLibrary) -> None:
    ran = kinodex("ask", folder / "library", "Where is the cat?", "--agent", "uniform", "--dry-run")
    assert ran.code == 0 and "| uniform | 1 | 1 |" in ran.out and "nothing was sent" in ran.out
