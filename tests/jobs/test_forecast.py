"""Forecasts: at most what is paid then, the mean of a past run that asked alike, and counts of what a library holds."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.ask import ask
from kinodex.agent.catalogue import VARIANTS, find_variant
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.prompts.tokens import estimate_tokens, text_tokens
from kinodex.index.library import Library
from kinodex.jobs.add.run import add, pending_videos
from kinodex.jobs.add.stages import Captions, Chapters
from kinodex.jobs.costs import Forecast, add_up, spread, table
from kinodex.jobs.eval.folder import ANSWERS, PLAN
from kinodex.jobs.eval.past_runs import past_forecast
from kinodex.jobs.forecast import DryRun, forecast_question, forecast_tasks
from kinodex.jobs.models import ModelChoice, endpoint_roles
from kinodex.jobs.unwritten_library import without_writing
from tests.support.command import Kinodex
from tests.support.libraries.sketch_library import SketchLibrary
from tests.support.runs.solved_runs import answer, item, plan_of, write_run
from tests.support.scenes.chaptered_film import make_film
from tests.support.servers.chat_server import Behaviour, ChatServer
from tests.support.servers.rule_server import MODEL, MeteredServer, Rules
from tests.world.benchmark import SKETCHES

PRICES = 2.5, 10.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forecast")


@pytest.fixture(scope="module")
def sketches(copy_sketches: Callable[[Path], SketchLibrary], folder: Path) -> SketchLibrary:
    return copy_sketches(folder)


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with MeteredServer(Rules()) as server:
        yield server


def test_rows_add_up_and_some_stand_for_all() -> None:
    one, two = Forecast("eea", 4, 10, 8, 1000, 100, 1.0), Forecast("vca", 4, 5, 2, 500, 50, 0.5)
    assert add_up([one, two]).cost == pytest.approx(1.5)
    assert "| all | 8 | 15 | 10 | 1,500 | 150 | 1.5 |" in table([one, two])
    assert "| all |" not in table([one])
    assert spread(range(100), 8) == [0, 14, 28, 42, 57, 71, 85, 99]
    assert spread([1, 2, 3], 8) == [1, 2, 3]


# A dry run: all agents on drawn films, with nothing sent and nothing written.


@pytest.mark.slow
def test_no_agent_takes_more_than_its_forecast(sketches: SketchLibrary, server: ChatServer) -> None:
    choice = ModelChoice(MODEL, server.base_url, None, *PRICES)
    asked = sketches.known[2::2]  # one about each film
    tasks = [(each.question, (each.film,)) for each in asked]

    async def bill(agent: str) -> list[Ledger]:
        films = {name: without_writing(film) for name, film in sketches.films.items()}
        async with OpenAIModel(endpoint_roles(choice)["default"]) as model:
            return [
                (await ask(each.question, films[Path(each.film).stem], model, agent=agent)).ledger for each in asked
            ]

    for variant in VARIANTS:
        dry = DryRun(variant.name, variant, {}, endpoint_roles(choice), Budget())
        expected = forecast_tasks(dry, tasks, lambda films: sketches.films[Path(films[0]).stem])
        ledgers = asyncio.run(bill(variant.name))
        for name in ("calls", "frames", "input_tokens"):
            real = sum(getattr(each, name) for each in ledgers)
            most = 10 if variant.name == "videoseek" else 8  # of its twenty steps these rules take two
            assert real <= getattr(expected, name) <= max(most * real, 8), (variant.name, name, expected, real)


@pytest.mark.slow
def test_nothing_is_sent_and_nothing_written(sketches: SketchLibrary) -> None:
    environment, question = sketches.films["harbour"], sketches.known[0].question
    [video] = environment.videos
    with MeteredServer(Rules()) as server:
        choice = ModelChoice(MODEL, server.base_url, None, *PRICES)
        asked = question, environment, choice
        tree = forecast_question(*asked, find_variant("videotree"), {}, Budget(), AnswerRules())
        search = forecast_question(*asked, find_variant("eea"), {}, Budget(), AnswerRules())
        assert server.most_at_once == 0
    assert tree.questions == 1 and tree.calls > 3 and tree.cost > 0
    assert environment.source.clips(video.video_id, MODEL) == []
    assert (search.calls, search.basis) == (55, "at most"), "after the queries rounds of three calls see all of 45 s"
    short = forecast_question(*asked, find_variant("eea"), {}, Budget(rounds=2), AnswerRules())
    seen = forecast_question(*asked, find_variant("eea"), {}, Budget(frames=6), AnswerRules())
    checked = forecast_question(*asked, find_variant("eea"), {}, Budget(), AnswerRules(verify=True))
    assert (short.calls, seen.frames, checked.calls) == (6, 6, 56), "budgets bind, second looks count"
    with pytest.raises(NeedsLanguage, match="videoseek reasons in words"):
        forecast_question(question, environment, ModelChoice(), find_variant("videoseek"), {}, Budget(), AnswerRules())


@pytest.mark.slow
def test_many_questions_are_run_in_part(sketches: SketchLibrary) -> None:
    """Twenty times the same question costs twenty times what one costs, but for what is kept of a film."""
    known = sketches.known[0]

    def expected(agent: str, count: int) -> Forecast:
        dry = DryRun(agent, agent, {}, {}, Budget())
        return forecast_tasks(dry, [(known.question, (known.film,))] * count, lambda films: sketches.films["harbour"])

    assert expected("uniform", 20).calls == 20 * expected("uniform", 1).calls == 20
    assert expected("uniform", 20).input_tokens == pytest.approx(20 * expected("uniform", 1).input_tokens)
    assert expected("uniform", 0).calls == 0
    one, ten = expected("videotree", 1), expected("videotree", 10)
    assert one.calls < ten.calls < 10 * one.calls


@pytest.mark.slow
def test_a_past_run_is_the_better_basis(
    kinodex: Kinodex, folder: Path, sketches: SketchLibrary, tmp_path: Path
) -> None:
    questions = Path(shutil.copy(folder / "questions.jsonl", tmp_path))
    run = ("eval", "run", SKETCHES, folder / "library", "--annotations", questions, "--no-page", "--no-controls")
    first = kinodex(*run, "--out", tmp_path / "new", "--dry-run")
    assert first.code == 0 and "| kino | 6 |" in first.out and "| at most |" in first.out
    assert not (tmp_path / "new").exists()
    assert kinodex(*run, "--out", tmp_path / "old").code == 0
    second = kinodex(*run, "--out", tmp_path / "new", "--dry-run")
    assert "| past run old |" in second.out
    assert "`--limit 10` without --dry-run" in second.out
    verified = kinodex(*run, "--out", tmp_path / "other", "--verify", "--dry-run")
    assert "| at most |" in verified.out, "a run without --verify says nothing of its calls"
    done = kinodex(*run, "--out", tmp_path / "old", "--dry-run")
    assert "| kino | 0 | 0 | 0 | 0 | 0 |" in done.out


# Captions and summaries: counted from the library.

REPLY = {"caption": "A boat lies on a beach at sea, and a cat sits on it; it rains.", "confidence": 80}


class CaptionServer(ChatServer):
    """A server that counts tokens by the estimate of forecasts."""

    def answer(self, headers: Mapping[str, str], body: dict) -> Behaviour:
        spent = {
            "prompt_tokens": estimate_tokens(body["messages"]),
            "completion_tokens": text_tokens(json.dumps(REPLY)),
        }
        return replace(super().answer(headers, body), usage=spent)


@pytest.mark.slow
def test_a_forecast_of_captions_is_near_their_bill(
    small_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    library = Library.open(str(shutil.copytree(small_library, tmp_path / "library")))
    with CaptionServer(lambda body: REPLY, models=["tester"]) as server:
        stage = Captions(model="tester", base_url=server.base_url, input_price=2.0, output_price=8.0)
        videos = pending_videos(library, "tester", None, (), "captions")
        expected = stage.writer(library).costs(videos)
        half = stage.model_copy(update={"batch_api": True}).writer(library).costs(videos)
        assert server.seen == []
        report = add(library, stage)
    assert expected.calls == report.rows == sum(row.segments for row in videos)
    assert expected.input_tokens == pytest.approx(report.usage.input_tokens, rel=0.1)
    assert report.usage.cost / 1.5 <= expected.cost <= 1.5 * report.usage.cost
    assert half.cost == expected.cost / 2
    assert pending_videos(library, "tester", None, (), "captions") == []


def test_a_forecast_of_summaries_is_what_a_run_sends(kinodex: Kinodex, tmp_path: Path) -> None:
    library = make_film(tmp_path / "library", "aa")
    with ChatServer(lambda body: {"title": "At the harbour", "summary": "Boats leave."}) as server:
        options = ("add", "chapters", library.uri, "--model", "tester", "--base-url", server.base_url)
        dry = kinodex(*options, "--dry-run")
        assert dry.code == 0 and server.seen == [] and "scenes and chapters" in dry.out
        stage = Chapters(model="tester", base_url=server.base_url, input_price=1.0)
        expected = stage.writer(library).costs(library.videos())
        assert kinodex(*options).code == 0
        assert expected.calls == len(server.seen)
        assert expected.frames == 0 and expected.cost > 0
        rows = sum(len(library.chapters.rows(video.video_id)) for video in library.videos())
        assert expected.questions == rows
    assert stage.writer(library).costs([]).calls == 0


# Past runs: those that asked alike alone, and no neighbour's damage ends it.

ITEMS = [item(f"q{n}") for n in range(6)]
SETTINGS: dict[str, Any] = {"prices": {"default": "input 1, output 0"}, "states": {"library:v1": "a"}}
PLANNED = plan_of(ITEMS, **SETTINGS)


def past_run(folder: Path, cost: float, **others: Any) -> Path:
    answers = [answer(each.item_id, ledger=Ledger(calls=1, cost=cost)) for each in ITEMS]
    return write_run(folder, ITEMS, answers, **{**SETTINGS, **others})


DAMAGE: dict[str, bytes | None] = {
    "text": b"nonsense\n",
    "shape": b'{"contender": 5}\n',
    "bytes": b"\xff\xfe\n",
    "depth": b"[" * 100_000 + b"\n",
    "a folder": None,
}


def test_a_damaged_neighbour_is_left_out(tmp_path: Path) -> None:
    for case, (name, kind) in enumerate(product((ANSWERS, PLAN), DAMAGE)):
        place = tmp_path / str(case)
        past_run(place / "good", 3.0)
        damaged = past_run(place / "damaged", 2.0)
        os.utime(place / "good" / PLAN, (1, 1))  # the damaged one is newer
        (damaged / name).unlink()
        content = DAMAGE[kind]
        (damaged / name).mkdir() if content is None else (damaged / name).write_bytes(content)
        (place / "file").write_text("no folder")
        found = past_forecast(place / "new", PLANNED, PLANNED.contenders[0], 1)
        assert found and (found.basis, found.cost) == ("past run good", 3.0), (name, kind)


def test_the_folder_itself_counts_before_newer_ones(tmp_path: Path) -> None:
    past_run(tmp_path / "own", 1.0)
    past_run(tmp_path / "newer", 2.0)
    os.utime(tmp_path / "own" / PLAN, (1, 1))
    for name, newest in (("own", "own"), ("other", "newer")):
        found = past_forecast(tmp_path / name, PLANNED, PLANNED.contenders[0], 1)
        assert found and found.basis == f"past run {newest}"
    assert past_forecast(tmp_path / "nowhere" / "deep", PLANNED, PLANNED.contenders[0], 1) is None
