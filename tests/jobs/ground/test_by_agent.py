"""Grounding by an agent: what it cites are the ranges, and giving up says that there are none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.agent.answer import Answer, Evidence
from kinodex.agent.limits import Ledger
from kinodex.index.library import Library
from kinodex.jobs.ground import ground_with, grounding_of, grounding_question
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.open import open_environment


def test_the_question_repeats_the_text() -> None:
    assert grounding_question(" the goal is scored. ").text == "When do we see the following: the goal is scored?"


def test_only_cited_evidence_of_an_answer_is_a_range(library: Path) -> None:
    opened = Library.open(str(library))
    video_id = opened.video("film-01").video_id
    evidence = tuple(Evidence(video_id, start_s, start_s + 1) for start_s in (2.0, 5.0, 8.0))
    answer = Answer("answered", "at 2 s", None, evidence, 1, Ledger())
    found = grounding_of(opened, "a boat", answer, "eea", 2)
    assert found.present
    assert [(each.start_s, each.end_s, each.score) for each in found.ranges] == [(2.0, 3.0, None), (5.0, 6.0, None)]
    assert (found.by, found.evidence, found.reason) == ("eea", None, "at 2 s")
    for other in (
        replace(answer, status="insufficient_evidence"),
        replace(answer, evidence_cited=False),
        replace(answer, evidence=()),
        replace(answer, status="invalid"),
    ):
        assert grounding_of(opened, "a boat", other, "eea", 2).ranges == ()


@pytest.mark.parametrize("agent", ["eea"])
def test_the_built_in_model_answers(library: Path, agent: str) -> None:
    opened = Library.open(str(library))
    environment = open_environment(opened, ["film-01"])
    choice = ModelChoice(cache=False)
    found = asyncio.run(ground_with(opened, environment, "a blue boat", agent, choice))
    assert found.by == agent
    assert {each.video.title for each in found.candidates} <= {"film-01"}
