"""Questions in plain functions: with and without a running event loop, one and many, traced, followed up, over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

import pytest

import kinodex
from tests.support.servers.s3_server import environment, s3_server, send
from tests.world.benchmark import SKETCHES

BIRD = "What colour is the bird at sea?"


@pytest.fixture(scope="module")
def opened(library: Path) -> kinodex.Library:
    return kinodex.open(library)


def test_a_question_in_words_is_answered(opened: kinodex.Library) -> None:
    answer = opened.ask(BIRD, ["red", "black", "white"])
    assert (answer.status, answer.letter, answer.text) == ("answered", "B", "black")
    assert answer.evidence and answer.ledger.frames < opened.info().frames


@pytest.mark.slow
def test_a_library_in_an_object_store_is_asked_as_one_in_a_folder(
    opened: kinodex.Library, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server() as address:
        for name, value in environment(address).items():
            monkeypatch.setenv(name, value)
        send(f"{address}/films", "PUT")
        for file in (each for each in library.rglob("*") if each.is_file()):
            send(f"{address}/films/{quote(str(file.relative_to(library)))}", "PUT", file.read_bytes())
        there = kinodex.open("s3://films").ask(BIRD, ["red", "black", "white"])
    here = opened.ask(BIRD, ["red", "black", "white"])
    assert (there.status, there.text) == ("answered", "black")
    assert (there.evidence, there.ledger.frames) == (here.evidence, here.ledger.frames)


def test_many_are_answered_in_their_order(opened: kinodex.Library) -> None:
    questions: list[str | kinodex.Question] = [BIRD, kinodex.Question(BIRD, ("black", "red")), BIRD]
    answers = opened.ask_many(questions, at_once=2, budget=kinodex.Budget(frames=20))
    assert [answer.text for answer in answers] == [None, "black", None], "no sentence is made up"
    assert [answer.status for answer in answers if answer.evidence] == ["evidence_only", "answered", "evidence_only"]


def test_a_trace_is_written_replayed_and_followed_up(opened: kinodex.Library, tmp_path: Path) -> None:
    trace, events = tmp_path / "run.jsonl", list[object]()
    answer = opened.ask(BIRD, trace=trace, on_event=events.append)
    again = opened.ask(BIRD, model=f"replay:{trace}")
    then = opened.ask("What colour is the bird at sea, again?", follow_up=trace)
    assert again.text == then.text == answer.text
    assert len(trace.read_text().splitlines()) == len(events)
    with pytest.raises(kinodex.UsageError, match="would overwrite it"):
        opened.ask(BIRD, trace=trace, follow_up=trace)


def test_model_objects_parameters_and_variants_are_taken(opened: kinodex.Library) -> None:
    model = kinodex.SimilarityModel(opened.environment())
    few = opened.ask(BIRD, model=model, agent="uniform", settings={"frames": 3})
    assert few.ledger.frames == 3
    with pytest.raises(kinodex.UsageError, match="beside a model object"):
        opened.ask(BIRD, model=model, base_url="http://127.0.0.1:1/v1")
    with pytest.raises(kinodex.AgentError, match="did you mean 'eea'"):
        opened.ask(BIRD, agent="eaa")


def test_ask_and_ask_many_for_those_who_have_a_loop(opened: kinodex.Library) -> None:
    environment = opened.environment("film-01")
    model = kinodex.SimilarityModel(environment)

    async def all_three() -> list[str | None]:
        question = kinodex.Question(BIRD, ("red", "black"))
        one = await kinodex.ask(question, environment, model)
        (other,) = await kinodex.ask_many([kinodex.Task(question, environment, model)])
        return [one.text, other.text, opened.ask(question, videos="film-01").text]  # as in a cell of a notebook

    assert asyncio.run(all_three()) == ["black"] * 3


def test_one_text_where_a_list_is_meant_is_refused_or_understood(opened: kinodex.Library) -> None:
    assert opened.ask(BIRD, ("red", "black"), videos=opened.video("film-01")).text == "black"
    with pytest.raises(kinodex.UsageError, match="got one text for questions"):
        opened.ask_many(BIRD)


def test_a_question_is_stopped_with_the_best_answer_so_far(opened: kinodex.Library) -> None:
    stop = kinodex.StopSignal()
    answer = opened.ask("What colour is the bird on the moon?", on_event=lambda event: stop.stop(), stop=stop)
    assert (answer.status, answer.reason, answer.ledger.calls) == ("budget_exhausted", "stopped", 0)


def test_an_evaluation_runs_where_an_event_loop_runs_already(library: Path, films: Path, tmp_path: Path) -> None:
    async def cell_of_a_notebook() -> kinodex.EvalReport:
        questions = films / "questions.jsonl"
        return kinodex.eval(library, SKETCHES, questions, tmp_path / "run", agents="random", controls=False, limit=2)

    assert asyncio.run(cell_of_a_notebook()).complete
