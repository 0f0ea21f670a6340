"""Follow-up questions: what a run saw is looked at first, and only then is anything new."""

from __future__ import annotations

import asyncio
import json

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.errors import NotATrace
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question
from kinodex.agent.requests.answer import Recall
from kinodex.agent.trace import ReplayModel, read_prior_evidence, read_trace, trace_to
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

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


def forgetful(request):
    return {"action": "insufficient_evidence"} if isinstance(request, Recall) else explorer(request)


def test_what_was_seen_is_the_evidence_of_the_answer(environment, first):
    path, answer = first
    seen = read_prior_evidence(path, environment)
    assert [(each.question, each.answer) for each in seen.earlier] == [(FIRST.text, answer.text)]
    assert seen.frames
    assert all(any(part.start_s <= frame.time_s < part.end_s for part in answer.evidence) for frame in seen.frames)
    assert seen.notes == ()


def test_a_follow_up_that_the_evidence_answers_takes_one_call(environment, first, tmp_path):
    seen = read_prior_evidence(first[0], environment)
    answer, model = run(environment, remembering, tmp_path / "next.jsonl", NEXT, seen=seen)
    assert (answer.status, answer.text, answer.ledger.calls) == ("answered", "no", 1)
    assert answer.ledger.frames == len(seen.frames)
    assert model.requests[0].question.earlier == seen.earlier
    assert answer.evidence[0].start_s == seen.frames[0].time_s


def test_else_it_searches_on_and_samples_nothing_twice(environment, first, tmp_path):
    seen = read_prior_evidence(first[0], environment)
    answer, model = run(environment, forgetful, tmp_path / "next.jsonl", NEXT, seen=seen)
    assert answer.ledger.calls > 1
    shown = [(frame.video_id, frame.frame_no) for frame in seen.frames]
    labels = {(frame.video_id, frame.frame_no): frame.label for each in model.requests[1:] for frame in each.frames}
    assert [labels[each] for each in shown] == list(range(1, len(shown) + 1))  # they came first, and are not sampled
    assert len(labels) > len(shown)
    assert answer.ledger.frames == len(labels)


def test_conversations_go_on_and_replay(environment, first, tmp_path):
    seen = read_prior_evidence(first[0], environment)
    second, _ = run(environment, forgetful, tmp_path / "second.jsonl", NEXT, seen=seen)
    again, _ = run(environment, ReplayModel(tmp_path / "second.jsonl"), tmp_path / "again.jsonl", NEXT, seen=seen)
    assert (again.text, again.evidence) == (second.text, second.evidence)
    third = read_prior_evidence(tmp_path / "second.jsonl", environment)
    assert [each.question for each in third.earlier] == [FIRST.text, NEXT.text]
    assert read_trace(tmp_path / "second.jsonl")[0]["question"]["earlier"][0]["question"] == FIRST.text


def test_controls_see_nothing_of_it(environment, first, tmp_path):
    seen = read_prior_evidence(first[0], environment)
    answer, model = run(environment, remembering, tmp_path / "next.jsonl", NEXT, seen=seen, agent="random")
    assert (model.requests, answer.ledger.frames) == ([], 0)


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
