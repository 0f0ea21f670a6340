"""A trace replays to the same answer without a model, draws the tree, and refuses what it does not hold."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.errors import NeedsLanguage, NotATrace, NotInTrace
from kinodex.agent.limits import Budget
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.protocol import Question, Usage
from kinodex.agent.requests.answer import Recall
from kinodex.agent.requests.tree import Decide
from kinodex.agent.trace import ReplayModel, read_prior_evidence, read_trace, trace_to
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))


def slips_once(request):
    """A model that errs once, so that a trace holds an invalid reply and its repetition."""
    return "hm" if isinstance(request, Decide) and request.attempt == 0 and request.must_answer else explorer(request)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return make_library(tmp_path_factory.mktemp("trace"), {"film": film(1, 900, {700: ("red kite desert", 12)})})


@pytest.fixture(scope="module")
def recorded(library, tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "trace.jsonl"
    model = ScriptedModel(slips_once, Usage(900, 90, 10, 0.25))
    with trace_to(path) as write:
        answer = asyncio.run(ask(QUESTION, environment_of(library), model, budget=Budget(rounds=3), on_event=write))
    return path, answer


def timeless(answer):
    return replace(answer, ledger=replace(answer.ledger, seconds=0.0, model_seconds=0.0))


def test_a_replay_gives_the_same_answer(library, recorded):
    path, answer = recorded
    again = asyncio.run(ask(QUESTION, environment_of(library), ReplayModel(path), budget=Budget(rounds=3)))
    assert timeless(again) == timeless(answer)
    assert again.ledger.invalid_replies == 1


def test_a_replay_of_something_else_says_so(library, recorded):
    with pytest.raises(NotInTrace, match="holds no DiscoverQueries with key"):
        asyncio.run(ask(Question("Who?"), environment_of(library), ReplayModel(recorded[0])))


def test_exchanges_hold_prompt_reply_usage_and_no_picture(recorded):
    exchanges = [each for each in read_trace(recorded[0]) if each["event"] == "Exchanged"]
    scoring = next(each for each in exchanges if each["request"] == "ScoreSegments")
    assert "Segment 1:" in scoring["prompt"]
    assert scoring["inputs"]["frames"][0].keys() == {"video_id", "frame_no", "time_s", "jpeg", "detail", "label"}
    assert len(scoring["inputs"]["frames"][0]["jpeg"]) == 16
    assert scoring["reply"]["segments"][0]["score"] == 50
    usage = {"input_tokens": 900, "output_tokens": 90, "cached_tokens": 10, "cost": 0.25}
    assert {name: figure for name, figure in scoring["usage"].items() if figure} == usage
    assert [each["invalid"] is None for each in exchanges if each["request"] == "Decide"] == [True, True, False, True]


def test_an_interrupted_run_leaves_a_readable_trace(library, tmp_path):
    def breaks(request):
        if isinstance(request, Decide):
            raise RuntimeError("power cut")
        return explorer(request)

    path = tmp_path / "trace.jsonl"
    with pytest.raises(RuntimeError), trace_to(path) as write:
        asyncio.run(ask(QUESTION, environment_of(library), ScriptedModel(breaks), on_event=write))
    assert [each["event"] for each in read_trace(path)][-1] == "Remembered"


def test_a_run_that_is_refused_leaves_the_trace_of_another(library, recorded, tmp_path):
    path, environment = tmp_path / "trace.jsonl", environment_of(library)
    path.write_bytes(recorded[0].read_bytes())
    with pytest.raises(NeedsLanguage), trace_to(path) as write:
        asyncio.run(ask("Who?", environment, RuleBasedModel(environment), agent="videoagent2", on_event=write))
    assert path.read_bytes() == recorded[0].read_bytes()
    with trace_to(path) as write:
        asyncio.run(ask("Who?", environment, ScriptedModel(explorer), on_event=write))
    assert [each["event"] for each in read_trace(path)].count("RunStarted") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "does not begin with the header"),
        ("not json", "cannot be read as a trace"),
        ("[1]", "does not begin"),
        (json.dumps({"event": "RunStarted", "version": 99}), "version 99, this kinodex reads version 2"),
    ],
)
def test_files_that_are_no_trace(tmp_path, text, said):
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(NotATrace, match=said):
        ReplayModel(path)


def test_a_compressed_trace_is_the_same_trace(recorded, tmp_path):
    path, _ = recorded
    packed = tmp_path / "trace.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_trace(packed) == read_trace(path)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(NotATrace):
        read_trace(packed)


# A replay finds the reply to a request whose scores differ in their last digits, as they do on another machine.


BUDGET = Budget(rounds=3)


@pytest.fixture(scope="module")
def kites(tmp_path_factory):
    return make_library(tmp_path_factory.mktemp("replay"), {"film": film(1, 900, {700: ("red kite desert", 12)})})


def recorded_elsewhere(kites, path: Path, change: Callable[[float], float]) -> int:
    """Write a trace as a machine does whose scores come out a little changed; returns how many scores it holds."""
    with trace_to(path) as write:
        asyncio.run(ask(QUESTION, environment_of(kites), ScriptedModel(explorer), budget=BUDGET, on_event=write))
    lines, scores = [json.loads(line) for line in path.read_text().splitlines()], 0
    for candidate in (each for line in lines for each in line.get("inputs", {}).get("candidates", [])):
        candidate["score"] = change(candidate["score"])
        scores += 1
    for number, line in enumerate(lines):
        if line.get("inputs", {}).get("candidates"):
            line["key"] = f"{number:032}"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return scores


def replay(kites, path: Path) -> Any:
    return asyncio.run(ask(QUESTION, environment_of(kites), ReplayModel(path), budget=BUDGET))


def test_the_last_digits_of_scores_make_no_difference(kites, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    assert recorded_elsewhere(kites, path, lambda score: score + 1e-6) > 10
    assert replay(kites, path).status == "budget_exhausted"


# Follow-up questions: what a run saw is looked at first, and only then is anything new.


FIRST = Question("What colour is the kite over the desert?", ("red", "blue"))
NEXT = Question("Is there a cat beside it?", ("yes", "no"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    films = {"film": film(1, 900, {700: ("red kite desert", 12)}), "other": film(2, 60)}
    return environment_of(make_library(tmp_path_factory.mktemp("followup"), films))


def run(environment, script, path, question=FIRST, **more):
    model = ScriptedModel(script) if callable(script) else script
    with trace_to(path) as write:
        more.setdefault("budget", Budget(rounds=2))
        answer = asyncio.run(ask(question, environment, model, on_event=write, **more))
    return answer, model


@pytest.fixture(scope="module")
def first(environment, tmp_path_factory):
    path = tmp_path_factory.mktemp("first") / "first.jsonl"
    answer, _ = run(environment, explorer, path)
    return path, answer


def remembering(request):
    return {"option": "B", "evidence": [1]} if isinstance(request, Recall) else explorer(request)


def test_a_follow_up_that_the_evidence_answers_takes_one_call(environment, first, tmp_path):
    seen = read_prior_evidence(first[0], environment)
    answer, model = run(environment, remembering, tmp_path / "next.jsonl", NEXT, seen=seen)
    assert (answer.status, answer.text, answer.ledger.calls) == ("answered", "no", 1)
    assert answer.ledger.frames == len(seen.frames)
    assert model.requests[0].question.earlier == seen.earlier
    assert answer.evidence[0].start_s == seen.frames[0].time_s


def test_what_cannot_be_continued_says_why(environment, first, tmp_path):
    lines = first[0].read_text().splitlines()
    (tmp_path / "cut.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(NotATrace, match="ends before its answer"):
        read_prior_evidence(tmp_path / "cut.jsonl", environment)
    header = json.loads(lines[0])
    header["videos"] = [{**video, "video_id": "f" * 32} for video in header["videos"]]
    (tmp_path / "foreign.jsonl").write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n")
    with pytest.raises(NotATrace, match="which is not asked about now"):
        read_prior_evidence(tmp_path / "foreign.jsonl", environment)
