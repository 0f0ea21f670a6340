"""The gate: a second look at the evidence alone, in every agent; what its doubt does, and what it costs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.errors import AllRejected, ContextSpent, ModelRejected
from kinodex.agent.limits import Budget
from kinodex.agent.prompts import render, request_message
from kinodex.agent.protocol import AnswerRules, Question, Usage
from kinodex.agent.requests.answer import AnswerFrames, AnswerNotes, Guess
from kinodex.agent.requests.describe import Verify, VerifyNotes
from kinodex.agent.requests.tree import Decide
from kinodex.agent.trace import Acted, Event, ReplayModel, trace_to
from kinodex.agent.variants.videoagent import FindMissing
from kinodex.agent.variants.videoagent2_requests import Assess
from kinodex.index.library import Library
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library
from tests.support.libraries.videoagent2_film import SURE, UNSURE, Script, kite_library

QUESTION = Question("What colour is the kite?", ("red", "blue"))
VERIFY = AnswerRules(verify=True)
NOT_SHOWN = {"action": "insufficient_evidence"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    films = {"film": film(3, 400, {40: ("red kite desert", 10)})}
    return make_library(tmp_path_factory.mktemp("verified"), films)


@pytest.fixture(scope="module")
def kites(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return kite_library(tmp_path_factory.mktemp("kites"))


def run(
    library: Library,
    script: Any,
    agent: str,
    question: Question = QUESTION,
    budget: Budget | None = None,
    usage: Usage | None = None,
    emit: Any = None,
    **settings: Any,
) -> tuple[Answer, ScriptedModel, list[Event]]:
    model, events = ScriptedModel(script, usage), list[Event]()

    def note(event: Event) -> None:
        events.append(event)
        if emit:
            emit(event)

    environment = environment_of(library).without_shared_captions()
    asked = ask(
        question,
        environment,
        model,
        agent=agent,
        parameters=settings,
        budget=budget or Budget(),
        rules=VERIFY,
        on_event=note,
    )
    return asyncio.run(asked), model, events


def checks(events: list[Event]) -> list[Acted]:
    return [event for event in events if isinstance(event, Acted) and event.action == "verify"]


def looking(second: Any, rest: Any) -> Any:
    """A script whose second looks reply this."""
    return lambda request: second if isinstance(request, Verify) else rest(request)


def test_the_second_look_sees_the_cited_frames_and_neither_the_answer_nor_the_rest(library: Library) -> None:
    said = {"action": "answer", "option": "A", "evidence": [2, 3]}
    answer, model, events = run(library, looking({"option": "A", "evidence": [1]}, lambda request: said), "uniform")
    (first,), (second,) = model.asked(AnswerFrames), model.asked(Verify)
    assert [frame.frame_no for frame in second.frames] == [frame.frame_no for frame in first.frames[1:3]]
    assert second.claim == ""
    text = render(second)
    assert "Answer from these pieces alone" in text
    assert "A. red\nB. blue" in text
    assert (answer.supported, answer.letter, answer.ledger.calls) == (True, "A", 2)
    assert [(each.arguments["second_look"], each.problem) for each in checks(events)] == [("A. red", "")]


def test_frames_that_the_search_showed_small_are_looked_at_in_full(library: Library) -> None:
    def script(request: Any) -> Any:
        if isinstance(request, Verify):
            return {"option": "A", "evidence": [1]}
        if isinstance(request, Decide) and len(request.frames) > 4:
            small = [frame.label for frame in request.frames if frame.detail == "low"]
            return {"action": "answer", "option": "A", "evidence": small[:2]}
        if type(request).__name__ == "ScoreAndPropose":
            return {"segments": [{"segment": each.number, "score": 50} for each in request.segments], "queries": []}
        return explorer(request)

    _, model, _ = run(library, script, "eea")
    second = model.asked(Verify)[0]
    assert [frame.label for frame in second.frames] == [
        frame.label for frame in model.asked(Decide)[-1].frames if frame.detail == "low"
    ][:2]
    assert [frame.detail for frame in second.frames] == ["auto", "auto"]
    sent = json.dumps(request_message(second, None))
    assert sent.count('"image_url": {') == 2
    assert '"detail"' not in sent


@pytest.mark.parametrize("refusal", [ModelRejected("a filter refuses this"), ContextSpent("a filter refuses this")])
@pytest.mark.parametrize("agent", ["uniform", "vca"])
def test_a_refused_second_look_leaves_the_answer_and_says_so(
    library: Library, agent: str, refusal: ModelRejected
) -> None:
    def script(request: Any) -> Any:
        if isinstance(request, Verify):
            raise refusal
        if isinstance(request, Decide | AnswerFrames):
            return {"action": "answer", "option": "A", "evidence": [1]}
        return explorer(request)

    answer, model, events = run(library, script, agent)
    assert (answer.status, answer.letter, answer.supported) == ("answered", "A", None)
    assert answer.unverified == "the second look was refused: a filter refuses this"
    assert len(model.asked(Verify)) == 1
    assert [each.problem for each in checks(events)] == [f"not verified, {answer.unverified}"]


def test_an_endpoint_that_refuses_everything_still_ends_the_run(library: Library) -> None:
    def script(request: Any) -> Any:
        if isinstance(request, Verify):
            raise AllRejected("the key is refused")
        return {"action": "answer", "option": "A", "evidence": [1]}

    with pytest.raises(AllRejected):
        run(library, script, "uniform")


@pytest.mark.parametrize("second", [{"option": "B", "evidence": [1]}, NOT_SHOWN])
def test_an_answer_that_nothing_can_follow_is_marked(library: Library, second: Any) -> None:
    answer, _, events = run(library, looking(second, lambda request: {"option": "A", "evidence": [1]}), "uniform")
    assert (answer.status, answer.letter, answer.supported) == ("answered", "A", False)
    assert checks(events)[0].problem


def test_without_the_gate_nothing_is_looked_at_again(library: Library) -> None:
    model = ScriptedModel(lambda request: {"option": "A", "evidence": [1]})
    answer = asyncio.run(ask(QUESTION, environment_of(library), model, agent="uniform"))
    assert (answer.supported, len(model.requests)) == (None, 1)


def test_an_invalid_second_look_says_nothing(library: Library) -> None:
    answer, model, _ = run(library, looking("mumble", lambda request: {"option": "A", "evidence": [1]}), "uniform")
    assert (answer.supported, answer.letter, len(model.asked(Verify))) == (None, "A", 2)
    assert answer.unverified == "no reply of the second look was valid"


def test_an_answer_from_nothing_is_not_supported_and_costs_no_look(library: Library) -> None:
    answer, model, _ = run(library, lambda request: {"option": "A", "evidence": []}, "blind")
    assert (answer.supported, len(model.asked(Guess)), len(model.requests)) == (False, 1, 1)


@pytest.mark.parametrize("agent", ["eea", "vca"])
def test_a_tree_search_in_doubt_goes_on_and_is_told_why(library: Library, agent: str) -> None:
    looks = [NOT_SHOWN, {"option": "A", "evidence": [1]}]
    evidence = [[1], [2]]

    def script(request: Any) -> Any:
        if isinstance(request, Verify):
            return looks.pop(0)
        if isinstance(request, Decide) and not request.complaint:
            return {"action": "answer", "option": "A", "evidence": evidence.pop(0)}
        if type(request).__name__ == "ScoreAndPropose":
            scores = [{"segment": each.number, "score": 50} for each in request.segments]
            return {"segments": scores, "queries": []}
        return explorer(request)

    answer, model, events = run(library, script, agent)
    assert (answer.status, answer.letter, answer.rounds, answer.supported) == ("answered", "A", 2, True)
    doubted = next(request for request in model.asked(Decide) if request.complaint)
    assert "a second look at the evidence of that answer alone does not find it there" in doubted.complaint
    assert [bool(each.problem) for each in checks(events)] == [True, False]


def test_the_same_answer_on_the_same_evidence_is_doubted_once(library: Library) -> None:
    def script(request: Any) -> Any:
        if isinstance(request, Verify):
            return NOT_SHOWN
        if isinstance(request, Decide) and not request.complaint:
            return {"action": "answer", "option": "A", "evidence": [1]}
        return explorer(request)

    answer, model, _ = run(library, script, "vca")
    assert (answer.status, answer.rounds, answer.supported) == ("answered", 2, False)
    assert len(model.asked(Verify)) == 1


def test_an_answer_in_doubt_is_kept_if_no_other_comes(library: Library) -> None:
    said = {"action": "answer", "option": "B", "evidence": [1]}

    def script(request: Any) -> Any:
        if isinstance(request, Verify):
            return NOT_SHOWN
        if isinstance(request, Decide):
            return "nonsense" if request.must_answer or request.complaint else said
        return explorer(request)

    answer, _, _ = run(library, script, "vca", budget=Budget(rounds=2))
    assert (answer.status, answer.reason, answer.letter) == ("budget_exhausted", "rounds", "B")
    assert answer.supported is False


def test_videoagent2_in_doubt_plans_on(kites: Library) -> None:
    script = Script([{**SURE, "option": "B", "evidence": [1]}, {**SURE, "evidence": [16]}])
    looks = [NOT_SHOWN, {"option": "A", "evidence": [1]}]
    answer, model, _ = run(
        kites, lambda each: looks.pop(0) if isinstance(each, Verify) else script(each), "videoagent2"
    )
    assert (answer.letter, answer.rounds, answer.supported) == ("A", 2, True)
    kinds = [type(request).__name__ for request in model.requests if type(request).__name__ != "DescribeSegment"]
    assert kinds == ["Summarize", "Assess", "VerifyNotes", "CreatePlan", "CaptionFrames", "Assess", "VerifyNotes"]
    assert "does not find it there" in model.asked(Assess)[1].doubt
    assert "a second look" in render(model.asked(Assess)[1])
    assert [note.source for note in model.asked(VerifyNotes)[1].notes] == ["caption tool"]


def test_videoagent_in_doubt_looks_for_more_and_is_told_why(library: Library) -> None:
    looks = [NOT_SHOWN, {"option": "B", "evidence": [1]}]

    def script(request: Any) -> Any:
        match type(request).__name__:
            case "DescribeSegment":
                return {"caption": f"seen at {request.frames[0].time_s:g}", "confidence": 90}
            case "VerifyNotes":
                return looks.pop(0)
            case "AnswerNotes":
                return {"action": "answer", "option": "B", "answer": None, "evidence": [len(request.notes)]}
            case "ReflectOnAnswer":
                return {"reasoning": "", "confidence": 3}
            case "FindMissing":
                return [{"segment": request.segments[-1].number, "description": "red kite desert"}]
        raise TypeError(type(request).__name__)

    answer, model, _ = run(library, script, "videoagent")
    assert (answer.letter, answer.rounds, answer.supported) == ("B", 2, True)
    assert len(model.asked(VerifyNotes)) == 2
    (missing,) = model.asked(FindMissing)
    assert "a second look at the evidence of that answer alone does not find it there" in missing.doubt
    assert f"The notes do not settle the question. An answer was given, and {missing.doubt}." in render(missing)


def test_an_answer_in_words_is_the_claim_that_is_checked(library: Library) -> None:
    question = Question("What colour is the kite?")
    said = {"action": "answer", "answer": "A red one.", "evidence": [1]}
    same = looking({"answer": "a red one", "evidence": [1]}, lambda request: said)
    answer, model, _ = run(library, same, "uniform", question)
    assert (answer.supported, model.asked(Verify)[0].claim) == (True, "A red one.")
    assert 'The answer that was given: "A red one."' in render(model.asked(Verify)[0])
    other = looking({"answer": "blue", "evidence": [1]}, lambda request: said)
    assert run(library, other, "uniform", question)[0].supported is False


def test_a_budget_ends_the_gate_not_the_answer(kites: Library) -> None:
    used = Usage(input_tokens=90, output_tokens=10)
    script = looking({"option": "A", "evidence": [1]}, Script([UNSURE]))
    answer, model, _ = run(kites, script, "videoagent2", budget=Budget(tokens=1700), usage=used)
    assert answer.status == "budget_exhausted"
    assert answer.letter is not None
    assert answer.ledger.calls == len(model.requests)


def test_a_verified_run_replays(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    script = looking({"option": "A", "evidence": [1]}, lambda request: {"option": "A", "evidence": [2]})
    with trace_to(path) as write:
        answer, _, _ = run(library, script, "uniform", emit=write)
    environment = environment_of(library)
    again = asyncio.run(ask(QUESTION, environment, ReplayModel(path), agent="uniform", rules=VERIFY))
    assert (again.letter, again.supported) == (answer.letter, True)


def test_a_last_answer_is_verified_too(kites: Library) -> None:
    script = looking({"option": "B", "evidence": [1]}, Script([UNSURE]))
    answer, model, _ = run(kites, script, "videoagent2", budget=Budget(rounds=1))
    assert (answer.status, answer.letter, answer.supported) == ("budget_exhausted", "B", True)
    assert model.asked(AnswerNotes) == []


def test_videoseek_in_doubt_is_told_in_place_of_a_result(library: Library) -> None:
    looks = [NOT_SHOWN, {"option": "A", "evidence": [1]}]
    done = {"tool": "answer", "sufficient": True, "option": "A", "answer": None}
    calls = [{"tool": "overview"}, {**done, "evidence": [1]}, {**done, "evidence": [2]}]

    def script(request: Any) -> Any:
        match type(request).__name__:
            case "Think":
                return {"text": "let me see"}
            case "Act":
                return calls.pop(0)
            case "OverviewVideo":
                return {"frames": [{"frame": at + 1, "description": "a kite"} for at in range(len(request.frames))]}
            case "VerifyNotes":
                return looks.pop(0)
        raise TypeError(type(request).__name__)

    answer, model, events = run(library, script, "videoseek")
    assert (answer.letter, answer.rounds, answer.supported) == ("A", 3, True)
    refused = next(event for event in events if isinstance(event, Acted) and event.action == "answer")
    assert "does not find it there" in refused.problem
    assert any("does not find it there" in turn.text for turn in model.requests[-2].turns)
