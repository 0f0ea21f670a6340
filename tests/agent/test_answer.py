"""When a model may give up: in every searching agent, by the rules of the run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer import Answer, Evidence, evidence_ranges, shown_numbers
from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.limits import Budget
from kinodex.agent.prompts import render
from kinodex.agent.protocol import AnswerRules, Note, Question, Request, ShownFrame
from kinodex.agent.requests.answer import AnswerRequest
from kinodex.agent.requests.tree import Decide, ProposeQueries
from kinodex.agent.variants.longvideoagent import AnswerNow as LastTurn
from kinodex.agent.variants.longvideoagent import ChooseAction, LocateClips
from kinodex.agent.variants.vca import ChooseFrames
from kinodex.agent.variants.videoagent2 import Assess
from kinodex.agent.variants.videoseek import Act, Think
from kinodex.agent.variants.videoseek import AnswerNow as LastStep
from kinodex.index.rows import TranscriptRow
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
GIVE_UP = {"action": "insufficient_evidence"}
STEPS = (Decide, ChooseFrames, ChooseAction, Act)
"""Requests that can go on with a search."""
SEARCHING: dict[str, tuple[str, dict[str, Any]]] = {
    "eea": ("eea", {}),
    "vca": ("vca", {}),
    "vca without a tree": ("vca", {"tree_search": False}),
    "longvideoagent": ("longvideoagent", {"clip_s": 0.0}),
    "videoseek": ("videoseek", {}),
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    library = make_library(tmp_path_factory.mktemp("rules"), {"film": film(1, 900, {700: ("red kite desert", 12)})})
    video_id = library.video("film").video_id
    library.writer.add_transcript({video_id: [TranscriptRow(video_id, 10.0, 12.0, "Welcome.", source="subtitles")]})
    return environment_of(library)


def gives_up(request: Request[Any]) -> Any:
    """A policy that finds the evidence insufficient whatever it is asked."""
    match request:
        case Think():
            return {"text": "I see no kite."}
        case Act() | LastStep():
            return {"tool": "answer", "sufficient": False}
        case ChooseAction() | LastTurn():
            return "<answer>insufficient evidence</answer>"
        case Assess():
            return {"confidence": 0}
        case Decide() | ChooseFrames() | AnswerRequest():
            return GIVE_UP
        case LocateClips():
            return {"clips": [1]}
        case ProposeQueries():
            return {"queries": []}
    return explorer(request)


def run(
    environment: Environment, name: str, script: Any, rules: AnswerRules, rounds: int = 3
) -> tuple[Answer, ScriptedModel]:
    agent, parameters = SEARCHING[name]
    model = ScriptedModel(script)
    budget = Budget(rounds=rounds)
    answer = asyncio.run(
        ask(QUESTION, environment, model, agent=agent, parameters=parameters, budget=budget, rules=rules)
    )
    return answer, model


def test_giving_up_ends_a_search_only_when_a_budget_does(environment: Environment) -> None:
    for name in SEARCHING:
        answer, model = run(environment, name, gives_up, AnswerRules())
        assert (answer.status, answer.reason, answer.rounds) == ("insufficient_evidence", "rounds", 3), name
        assert answer.ledger.declined >= 2, name
        complaints = [each.complaint for each in model.requests if isinstance(each, STEPS) and each.complaint]
        turns = [turn.text for each in model.requests for turn in each.turns]
        assert any("not accepted yet: there is more to look at" in each for each in (*complaints, *turns)), name


def test_early_insufficient_accepts_it_at_once(environment: Environment) -> None:
    for name in SEARCHING:
        answer, _ = run(environment, name, gives_up, AnswerRules(early_insufficient=True))
        assert (answer.status, answer.reason, answer.rounds) == ("insufficient_evidence", "", 1), name
        assert answer.ledger.declined == 0, name


@pytest.mark.parametrize("name", SEARCHING)
def test_force_choice_leaves_giving_up_out_of_every_request(environment: Environment, name: str) -> None:
    def yields(request: Request[Any]) -> Any:
        searching = isinstance(request, STEPS) and not getattr(request, "must_answer", False)
        if searching or not request.complaint:
            return gives_up(request)
        match request:
            case LastTurn():
                return "<answer>B</answer>"
            case LastStep():
                return {"tool": "answer", "sufficient": True, "option": "B"}
        return {"option": "B"}

    answer, model = run(environment, name, yields, AnswerRules(force_choice=True))
    assert (answer.status, answer.option) == ("budget_exhausted", 1)
    answering = [each for each in model.requests if isinstance(each, (*STEPS, AnswerRequest))]
    assert {each.declining for each in answering} == {"never"}
    first: list[Request[Any]] = [replace(each, complaint="", bad_reply="") for each in answering]
    assert not any("insufficient" in render(each) for each in first)


def test_a_last_word_that_does_not_choose_is_invalid_at_once(environment: Environment) -> None:
    """A model that insisted had ten rounds, two requests for each decision, and ended as if that were an answer."""
    for name, rounds, calls in (("eea", 10, 21), ("vca", 3, 7), ("videoseek", 3, 6), ("longvideoagent", 3, 4)):
        answer, model = run(environment, name, gives_up, AnswerRules(force_choice=True), rounds=rounds)
        assert (answer.status, answer.option, answer.ledger.invalid_replies) == ("invalid", None, 2), name
        assert len(model.requests) == calls, (name, len(model.requests))
        assert "give the answer that the evidence supports best" in model.requests[-1].complaint, name


def test_a_stubborn_model_is_led_by_the_scores(environment: Environment) -> None:
    _, model = run(environment, "eea", gives_up, AnswerRules(), rounds=2)
    first = model.asked(Decide)[0]
    best = max((each for each in first.candidates if each.explorable), key=lambda each: each.score or 0.0)
    last = model.asked(Decide)[-1]
    assert best.segment.number not in {each.segment.number for each in last.candidates}


def test_nothing_left_to_look_at_is_no_evidence(tmp_path: Any) -> None:
    short = environment_of(make_library(tmp_path, {"short": film(5, 3)}))
    answer = asyncio.run(ask(QUESTION, short, ScriptedModel(gives_up)))
    assert (answer.status, answer.reason, answer.ledger.declined) == ("insufficient_evidence", "", 0)


# Evidence of an answer: the ranges of what it cites, of all that was shown if it cites nothing.


@pytest.fixture(scope="module")
def seen_film(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder: Path = tmp_path_factory.mktemp("evidence")
    return environment_of(make_library(folder, {"film": film(1, 60)}))


def test_frames_then_notes_are_cited_by_their_numbers_and_neighbours_are_joined(
    seen_film: Environment,
) -> None:
    video_id = seen_film.videos[0].video_id
    frames = seen_film.frames(video_id, [3.0, 4.0, 9.0])
    shown: tuple[ShownFrame | Note, ...] = (*frames, Note(video_id, 10.0, 12.0, "caption", "a kite"))
    assert shown_numbers(shown) == [1, 2, 3, 4]
    assert evidence_ranges(seen_film, shown, [1, 2]) == (Evidence(video_id, 3.0, 5.0),)
    assert evidence_ranges(seen_film, shown, [4, 3, 99]) == (Evidence(video_id, 9.0, 12.0),)
    everything = (Evidence(video_id, 3.0, 5.0), Evidence(video_id, 9.0, 12.0))
    assert evidence_ranges(seen_film, shown, []) == evidence_ranges(seen_film, shown, [0, 99]) == everything


def test_a_range_that_holds_a_shorter_one_ends_where_the_longer_does(seen_film: Environment) -> None:
    video_id = seen_film.videos[0].video_id
    notes = [Note(video_id, 10.0, 40.0, "caption", "a kite"), Note(video_id, 12.0, 15.0, "caption", "a gust")]
    assert evidence_ranges(seen_film, notes, []) == (Evidence(video_id, 10.0, 40.0),)
