"""The search tree in lines, and the answer with its ledger."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace

import pytest
from rich.console import Console

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question
from kinodex.cli.tree_view import TreeView, show_answer
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    films = {"[b]film[/b]\n": film(1, 900, {700: ("red kite desert", 12)})}
    return environment_of(make_library(tmp_path_factory.mktemp("tree") / "library", films))


@pytest.fixture(scope="module")
def printed(environment: Environment) -> tuple[str, Answer]:
    out = io.StringIO()
    view = TreeView(Console(file=out, width=200))
    answer = asyncio.run(ask(QUESTION, environment, ScriptedModel(explorer), budget=Budget(rounds=3), on_event=view))
    return out.getvalue(), answer


def test_rounds_with_their_segments_and_frames(printed: tuple[str, Answer]) -> None:
    text, answer = printed
    lines = text.splitlines()
    assert lines[0].startswith("eea with scripted on [b]film[/b]\\n, 900 frames in the index")
    assert [line.split()[1] for line in lines if line.startswith("round ")] == ["1", "2", "3"]
    assert "opens 0: 0:00.0 to 15:00.0, sees " in text
    assert any(line.startswith("   ") and " reward " in line for line in lines)
    assert answer.rounds == 3


def test_an_answer_with_its_evidence_and_ledger(environment: Environment, printed: tuple[str, Answer]) -> None:
    out = io.StringIO()
    show_answer(printed[1], environment.videos, Console(file=out, width=200))
    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["answer", "status"]
    assert all("[b]film[/b]\\n" in line for line in lines if line.startswith("evidence"))
    ledger = printed[1].ledger
    assert lines[-1].startswith(f"ledger    {ledger.frames} frames of 900, {ledger.frame_shows} shows, 3 rounds")


@pytest.mark.parametrize(("supported", "said"), [(True, "comes to"), (False, "does not come to")])
def test_a_verified_answer_says_if_its_evidence_shows_it(
    environment: Environment, printed: tuple[str, Answer], supported: bool, said: str
) -> None:
    out = io.StringIO()
    show_answer(replace(printed[1], supported=supported), environment.videos, Console(file=out, width=200))
    assert f"a second look at the evidence alone {said} this answer" in out.getvalue()


def test_an_answer_that_could_not_be_verified_says_why(environment: Environment, printed: tuple[str, Answer]) -> None:
    out = io.StringIO()
    answer = replace(printed[1], unverified="the second look was refused: a [filter]")
    show_answer(answer, environment.videos, Console(file=out, width=200))
    assert "verified  no: the second look was refused: a [filter]\n" in out.getvalue()


@pytest.mark.parametrize(
    ("bill", "said"),
    [
        ({"chapters": 4}, "4 scenes or chapters listed"),
        ({"videos_without_chapters": 1}, "1 video without scenes and chapters"),
        ({"chapters": 4, "videos_without_chapters": 2}, "listed, 2 videos without scenes and chapters"),
    ],
)
def test_a_ledger_says_if_scenes_and_chapters_were_read(
    environment: Environment, printed: tuple[str, Answer], bill: dict[str, int], said: str
) -> None:
    out = io.StringIO()
    answer = replace(printed[1], ledger=replace(printed[1].ledger, **bill))
    show_answer(answer, environment.videos, Console(file=out, width=200))
    assert out.getvalue().splitlines()[-1].endswith(said)
