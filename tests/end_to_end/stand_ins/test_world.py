"""The ideal observer of story films: it sees what the script shows, answers every agent, and knows no truth."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.catalogue import VARIANTS
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import Role
from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from tests.support.servers.chat_server import ChatServer
from tests.support.world.curves import by_trial, compare, group_of, loss_of, tables
from tests.support.world.ground import Films, Trial, answer_one, read_rows, run
from tests.support.world.observer import Eyes, InProcess, Observer
from tests.support.world.sights import ERRING, PERFECT, Stage, described, facts_of, read_sight
from tests.world.story import as_json

FILMS = Films(1, 2, 7)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FILMS.made(tmp_path_factory.mktemp("ground"))


@pytest.fixture(scope="module")
def stage(folder: Path) -> Stage:
    return Stage.of_script(folder / "film-01.script.json")


@pytest.fixture(scope="module")
def environment(folder: Path) -> Environment:
    return Environment.open(str(folder / "library"))


@pytest.fixture(scope="module")
def eyes(folder: Path, stage: Stage) -> Eyes:
    library = Library.open(str(folder / "library"))
    return Eyes.of(library, library.videos(), {"film-01": stage})


def questions(folder: Path) -> list[Row]:
    return [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def asked_over_http(
    agent: str, rows: list[Row], environment: Environment, observer: Observer
) -> tuple[list[Row], list[Row]]:
    """The rows of some questions, and the bodies of all requests."""

    async def ask_all() -> list[Row]:
        async with OpenAIModel(Role(base_url=server.base_url, model="observer")) as model:
            trial = Trial(FILMS.name, agent, 16, "perfect", speech=True)
            return [await answer_one(trial, row, environment, model) for row in rows]

    with ChatServer(observer, models=["observer"]) as server:
        answered = asyncio.run(ask_all())
    assert server.problems == []
    return answered, [each.body for each in server.seen]


@pytest.mark.slow
def test_a_sight_is_what_the_script_shows_and_its_words_say_all_of_it(folder: Path, stage: Stage) -> None:
    script = json.loads((folder / "film-01.script.json").read_text(encoding="utf-8"))
    assert as_json(stage.film) == script
    assert script["duration_s"] == 120.0  # `minutes` of `python -m tests.world.sample`
    for second in range(120):
        sight = stage.see(float(second))
        assert read_sight(described(sight), sight.time_s) == sight
        assert sight.setting is None or sight.setting[0] in {each["place"] for each in script["scenes"]}
    for line in stage.film.lines:
        read = facts_of(line.text)
        expected = () if line.fact is None else ((*line.fact[:2], "" if line.fact[0] == "name" else line.fact[2]),)
        assert read == expected


@pytest.mark.slow
def test_every_agent_is_answered_over_http_as_in_this_process(
    folder: Path, environment: Environment, eyes: Eyes
) -> None:
    row = next(each for each in questions(folder) if each["kind"] == "sign")
    for agent in (each.name for each in VARIANTS if each.roles):
        [answered], _ = asked_over_http(agent, [row], environment, Observer(eyes))
        trial = Trial(FILMS.name, agent, 16, "perfect", speech=True)
        here = asyncio.run(answer_one(trial, row, environment, InProcess(Observer(eyes))))
        same = "answered", "right", "used", "calls", "invalid"
        assert [answered[name] for name in same] == [here[name] for name in same], agent
        assert answered["invalid"] == 0, agent
        assert answered["answered"] or agent == "videotree", agent
        assert answered["right"] or agent in ("blind", "videotree"), agent


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["eea", "kino", "uniform"])
def test_it_knows_no_truth(agent: str, folder: Path, environment: Environment, eyes: Eyes) -> None:
    rows = questions(folder)
    swapped = [{**row, "answer": (row["answer"] + 1) % 4, "ranges": [[0.0, 1.0]]} for row in rows]
    (first, bodies), (second, others) = (
        asked_over_http(agent, each, environment, Observer(eyes, ERRING)) for each in (rows, swapped)
    )
    assert sorted(map(json.dumps, bodies)) == sorted(map(json.dumps, others)), "some are sent at the same time"
    for one, other in zip(first, second, strict=True):
        assert one["answered"] == other["answered"]
        assert not (one["right"] and other["right"])
    assert any(one["right"] for one in first)


@pytest.mark.slow
def test_it_errs_as_it_is_set_and_alike_each_time(folder: Path, environment: Environment, eyes: Eyes) -> None:
    rows = questions(folder)
    _, bodies = asked_over_http("kino:quotes=false", rows, environment, Observer(eyes))  # lines are no matter of eyes

    def replies(observer: Observer) -> list[Any]:
        return [observer(body) for body in bodies]

    assert replies(Observer(eyes, ERRING)) == replies(Observer(eyes, ERRING)) != replies(Observer(eyes))
    noisy = replies(Observer(eyes, replace(ERRING, early=0.0)))
    scores = [each["score"] for reply in noisy for each in reply.get("segments", ())]
    assert scores
    assert not any(score % 5 for score in scores)
    blind = replies(Observer(eyes, replace(ERRING, miss=1.0, early=0.0)))
    assert not any(reply.get("action") == "answer" for reply in blind)
    hasty, calm = (
        [reply.get("action") for reply in replies(Observer(eyes, replace(PERFECT, early=early)))]
        for early in (1.0, 0.0)
    )
    assert hasty.count("answer") > calm.count("answer")


@pytest.mark.slow
def test_an_experiment_goes_on_where_it_ended_and_compares_what_was_registered(folder: Path, tmp_path: Path) -> None:
    trials = [Trial(FILMS.name, agent, 8, "perfect", speech=True) for agent in ("uniform", "oracle")]
    path = tmp_path / "rows.jsonl"
    run(folder, trials[:1], path)
    before = path.read_text(encoding="utf-8")
    run(folder, trials, path)
    assert path.read_text(encoding="utf-8").startswith(before)
    rows = read_rows(path)
    assert len(rows) == 2 * len(questions(folder))
    of_oracle = [row for row in rows if row["agent"] == "oracle"]
    assert all(row["right"] and row["frame_last"] for row in of_oracle if row["needs"] == "text")
    assert "| 1x2-7 | perfect | yes | oracle | 8 | 1.00 of" in tables(rows)
    of_uniform = [row for row in rows if row["agent"] == "uniform"]
    missed = [row for row in of_uniform if group_of(row) == "seen" and not row["right"]]
    unseen = sum(loss_of(row) == "never shown" for row in missed)
    assert f"| uniform | 8 | {len(missed)} | {unseen} |" in tables(rows)
    registered = {"name": "oracle", "at": "2000", "outcome": "right", "of": "seen", "margin": 3}
    sides = {"one": {"agent": "oracle"}, "other": {"agent": "uniform"}}
    assert "oracle (right, seen): fewer than 5 films" in compare(by_trial(rows), {**registered, **sides})
    many = [{**row, "film": f"film-{number}"} for row in rows for number in range(5)]
    assert "oracle (right, seen): ahead" in compare(by_trial(many), {**registered, **sides})
    assert "(registered after its rows)" in compare(by_trial(rows), {**registered, **sides, "at": "2999"})
