"""When a model may give up: in every searching agent, by the rules of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.evidence import Evidence, evidence_ranges, shown_numbers
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.answer import AnswerRequest
from kinodex.agent.requests.tree import Decide
from kinodex.agent.variants.eea.requests import ProposeQueries
from kinodex.agent.variants.longvideoagent.requests import AnswerNow as LastTurn
from kinodex.agent.variants.longvideoagent.requests import ChooseAction, LocateClips
from kinodex.agent.variants.vca.frame_choice import ChooseFrames
from kinodex.agent.variants.videoagent2.requests import Assess
from kinodex.agent.variants.videoseek.step_requests import Act
from kinodex.agent.variants.videoseek.step_requests import AnswerNow as LastStep
from kinodex.agent.videos.environment import Environment
from tests.support.libraries.agent_library import environment_of, explorer, film, make_library
from tests.support.runs.kite_runs import Run, asked

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


def gives_up(request: Request[Any]) -> Any:
    """A policy that finds the evidence insufficient whatever it is asked."""
    match request:
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


def run(kites: Environment, name: str, script: Any, rounds: int = 3, **rules: bool) -> Run:
    agent, settings = SEARCHING[name]
    return asked(kites, script, agent, rounds=rounds, settings=settings, rules=AnswerRules(**rules))


def test_giving_up_ends_a_search_when_a_budget_does_or_at_once_if_it_may(kites: Environment) -> None:
    for name in SEARCHING:
        found = run(kites, name, gives_up, force_choice=False)
        answer = found.answer
        assert (answer.status, answer.reason, answer.rounds) == ("insufficient_evidence", "rounds", 3), name
        assert answer.ledger.declined >= 2, name
        requests = found.model.requests
        complaints = [each.complaint for each in requests if isinstance(each, STEPS) and each.complaint]
        turns = [turn.text for each in requests for turn in each.turns]
        assert any("not accepted yet: there is more to look at" in each for each in (*complaints, *turns)), name
        answer = run(kites, name, gives_up, early_insufficient=True).answer
        assert (answer.status, answer.reason, answer.rounds) == ("insufficient_evidence", "", 1), name
        assert answer.ledger.declined == 0, name


def test_force_choice_leaves_giving_up_out_of_every_request(kites: Environment) -> None:
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

    for name in SEARCHING:
        found = run(kites, name, yields, force_choice=True)
        assert (found.answer.status, found.answer.option) == ("budget_exhausted", 1), name
        answering = [each for each in found.model.requests if isinstance(each, (*STEPS, AnswerRequest))]
        assert {each.declining for each in answering} == {"never"}, name
        first: list[Request[Any]] = [replace(each, complaint="", bad_reply="") for each in answering]
        assert not any("insufficient" in render(each) for each in first), name


def test_a_last_word_that_does_not_choose_is_invalid_at_once(kites: Environment) -> None:
    """A model that insisted had ten rounds, two requests for each decision, and ended as if that were an answer.

    The last two requests are for a letter alone.
    """
    for name, rounds, calls in (("eea", 10, 33), ("vca", 3, 9), ("videoseek", 3, 6), ("longvideoagent", 3, 6)):
        found = run(kites, name, gives_up, rounds, force_choice=True)
        answer, requests = found.answer, found.model.requests
        assert (answer.status, answer.option, answer.ledger.invalid_replies) == ("invalid", None, 4), name
        assert len(requests) == calls, (name, len(requests))
        assert "give the answer that the evidence supports best" in requests[-3].complaint, name


def test_a_stubborn_model_is_led_by_the_scores(kites: Environment) -> None:
    first, *_, last = run(kites, "eea", gives_up, 2).asked(Decide)
    best = max((each for each in first.candidates if each.explorable), key=lambda each: each.score or 0.0)
    assert best.segment.number not in {each.segment.number for each in last.candidates}


def test_nothing_left_to_look_at_is_no_evidence(tmp_path: Any) -> None:
    answer = asked(environment_of(make_library(tmp_path, {"short": film(5, 3)})), gives_up, "kino").answer
    assert (answer.status, answer.reason, answer.ledger.declined) == ("insufficient_evidence", "", 0)


# Evidence of an answer: the ranges of what it cites, of all that was shown if it cites nothing.


def test_frames_then_notes_are_cited_by_their_numbers_and_neighbours_are_joined(kites: Environment) -> None:
    video_id = kites.videos[0].video_id
    frames = kites.frames(video_id, [3.0, 4.0, 9.0])
    shown: tuple[ShownFrame | Note, ...] = (*frames, Note(video_id, 10.0, 12.0, "captions", "a kite"))
    assert shown_numbers(shown) == [1, 2, 3, 4]
    assert evidence_ranges(kites, shown, [1, 2]) == (Evidence(video_id, 3.0, 5.0),)
    assert evidence_ranges(kites, shown, [4, 3, 99]) == (Evidence(video_id, 9.0, 12.0),)
    everything = (Evidence(video_id, 3.0, 5.0), Evidence(video_id, 9.0, 12.0))
    assert evidence_ranges(kites, shown, []) == evidence_ranges(kites, shown, [0, 99]) == everything
    notes = [Note(video_id, 10.0, 40.0, "captions", "a kite"), Note(video_id, 12.0, 15.0, "captions", "a gust")]
    assert evidence_ranges(kites, notes, []) == (Evidence(video_id, 10.0, 40.0),), "one holds the other"
