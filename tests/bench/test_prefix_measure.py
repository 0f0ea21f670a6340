"""`kinodex bench prefix`: requests counted live and from a trace, with caches that are empty at first."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.trace import trace_to
from tests.bench.prefix import ALL, LiveRun, PrefixFigures, Prompt, Tokens, bench_prefix, count, count_traces, table
from tests.support.libraries.sketch_library import SketchLibrary

PICTURE_SIZE = (512, 288)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prefix")


@pytest.fixture(scope="module")
def sketches(copy_sketches: Callable[[Path], SketchLibrary], folder: Path) -> SketchLibrary:
    drawn = copy_sketches(folder)
    shutil.copy(folder / "questions.jsonl", folder / "films" / "questions.jsonl")
    return drawn


def test_the_first_request_is_new_and_a_second_run_is_known() -> None:
    first, other = Prompt("Score", "one", tuple(range(100)), 2), Prompt("Decide", "two", tuple(range(100)), 3)
    figures = count("run", [first, other, first, other], Tokens())
    assert figures == [
        PrefixFigures("run", "Score", 2, 4, 200, 96),
        PrefixFigures("run", "Decide", 2, 6, 200, 96),  # of another model, so its first request is new too
        PrefixFigures("run", ALL, 4, 10, 400, 192),
    ]
    assert figures[-1].share == 0.48
    assert "| run | all | 4 | 10 | 400 | 192 | 0.48 |" in table(figures, Tokens())


def test_a_run_without_requests() -> None:
    (figures,) = count("random", [], Tokens())
    assert (figures.requests, figures.share) == (0, 0.0)


def test_a_live_run_is_counted_request_by_request(folder: Path, sketches: SketchLibrary) -> None:
    lines: list[str] = []
    live = LiveRun(folder, ("uniform", "eea"))
    figures = bench_prefix(live, Tokens(), lines.append)
    totals = {each.run: each for each in figures if each.request == ALL}
    assert totals["uniform"].requests == 1 and totals["uniform"].cached == 0
    parts = [each for each in figures if each.run == "eea" and each.request != ALL]
    assert sum(each.tokens for each in parts) == totals["eea"].tokens > 1000
    assert sum(each.cached for each in parts) == totals["eea"].cached
    assert totals["eea"].requests >= 4 and 0 < totals["eea"].share < 1
    assert [line.split(":")[0] for line in lines] == ["uniform", "eea"]


def test_openai_serves_a_request_the_prefix_of_another_kind(folder: Path, sketches: SketchLibrary) -> None:
    """One schema stands before all requests of a search: the only one of its kind is served too."""
    figures = bench_prefix(LiveRun(folder, ("eea",)), Tokens("openai"), lambda line: None)
    rows = {each.request: each for each in figures}
    assert rows["ScoreSegments"].requests == 1 and rows["ScoreSegments"].cached >= 1024
    assert rows[ALL].share > 0.6


def test_a_second_question_finds_the_first_one_in_the_cache(folder: Path, sketches: SketchLibrary) -> None:
    """Without schemas before them, requests of one kind begin with the same instructions."""
    one, two = (
        bench_prefix(LiveRun(folder, ("uniform",), questions=number), Tokens(), lambda line: None)[-1]
        for number in (1, 2)
    )
    assert (one.requests, one.cached) == (1, 0) and two.requests == 2 and two.cached > 0


def test_a_trace_counts_nearly_as_the_run_that_wrote_it(folder: Path, sketches: SketchLibrary, tmp_path: Path) -> None:
    known, path = sketches.known[0], tmp_path / "trace.jsonl"
    environment = sketches.films[Path(known.film).stem]
    with trace_to(path) as write:
        asyncio.run(ask(known.question, environment, RuleBasedModel(environment), agent="eea", on_event=write))
    live = bench_prefix(LiveRun(folder, ("eea",), explore=False), Tokens(), lambda line: None)[-1]
    read = count_traces([path], PICTURE_SIZE, Tokens())[-1]
    assert (read.run, read.requests, read.pictures) == ("trace.jsonl", live.requests, live.pictures)
    assert read.tokens == pytest.approx(live.tokens, rel=0.05)
    again = count_traces([path, path], PICTURE_SIZE, Tokens())[-1]
    assert again.run == "2 traces" and again.cached >= 0.95 * read.tokens
