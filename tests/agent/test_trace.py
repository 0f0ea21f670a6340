"""A trace replays to the same answer without a model, is continued by a follow-up, and says what it does not hold."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from kinodex.agent.errors import NeedsLanguage, NotATrace, NotInTrace
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.question import Question
from kinodex.agent.requests.answer import Recall
from kinodex.agent.requests.tree import Decide
from kinodex.agent.similarity.model import SimilarityModel
from kinodex.agent.traces.prior_evidence import read_prior_evidence
from kinodex.agent.traces.replay import ReplayModel
from kinodex.agent.traces.trace import read_trace
from tests.support.libraries.agent_library import explorer
from tests.support.runs.kite_runs import asked


def slips_once(request):
    """A model that errs once, so that a trace holds an invalid reply and its repetition."""
    return "hm" if isinstance(request, Decide) and request.attempt == 0 and request.must_answer else explorer(request)


@pytest.fixture(scope="module")
def recorded(kites, tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "trace.jsonl"
    return path, asked(kites, slips_once, rounds=3, usage=Usage(900, 90, 10, 0.25), trace=path).answer


def test_a_replay_gives_the_same_answer_and_none_to_another_question(kites, recorded):
    path, answer = recorded
    again = asked(kites, ReplayModel(path), rounds=3).answer
    timeless = [replace(each, ledger=replace(each.ledger, seconds=0.0, model_seconds=0.0)) for each in (again, answer)]
    assert timeless[0] == timeless[1] and again.ledger.invalid_replies == 1
    with pytest.raises(NotInTrace, match="holds no DiscoverQueries with key"):
        asked(kites, ReplayModel(path), question=Question("Who?"))


def test_the_last_digits_of_scores_make_no_difference(kites, recorded, tmp_path):
    """They differ on another machine."""
    lines, path = read_trace(recorded[0]), tmp_path / "elsewhere.jsonl"
    scored = [line for line in lines if line.get("inputs", {}).get("candidates")]
    for number, line in enumerate(scored):
        line["key"] = f"{number:032}"
        for candidate in line["inputs"]["candidates"]:
            candidate["score"] += 1e-6
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(scored) > 2 and asked(kites, ReplayModel(path), rounds=3).answer.status == "budget_exhausted"


def test_exchanges_hold_prompt_reply_usage_and_no_picture(recorded):
    exchanges = [each for each in read_trace(recorded[0]) if each["event"] == "Exchanged"]
    scoring = next(each for each in exchanges if each["request"] == "RewardSegments")
    assert "Segment 1:" in scoring["prompt"]
    assert scoring["inputs"]["frames"][0].keys() == {"video_id", "frame_no", "time_s", "jpeg", "label"}
    assert len(scoring["inputs"]["frames"][0]["jpeg"]) == 16
    assert scoring["reply"]["segments"][0]["score"] == 50
    usage = {"input_tokens": 900, "output_tokens": 90, "cached_tokens": 10, "cost": 0.25}
    assert {name: figure for name, figure in scoring["usage"].items() if figure} == usage
    decisions = [each for each in exchanges if each["request"] == "SelectSegment"]
    assert [each["invalid"] is None for each in decisions] == [True, True, False, True]


def test_an_interrupted_run_leaves_a_readable_trace_and_a_refused_one_that_of_another(kites, recorded, tmp_path):
    def breaks(request):
        if isinstance(request, Decide):
            raise RuntimeError("power cut")
        return explorer(request)

    path = tmp_path / "trace.jsonl"
    with pytest.raises(RuntimeError):
        asked(kites, breaks, trace=path)
    assert [each["event"] for each in read_trace(path)][-1] == "Remembered"
    path.write_bytes(recorded[0].read_bytes())
    with pytest.raises(NeedsLanguage):
        asked(kites, SimilarityModel(kites), "videoagent2", trace=path)
    assert path.read_bytes() == recorded[0].read_bytes()
    asked(kites, explorer, rounds=1, trace=path)
    assert [each["event"] for each in read_trace(path)].count("RunStarted") == 1


def test_files_that_are_no_trace_and_a_compressed_one(recorded, tmp_path):
    path, packed = tmp_path / "trace.jsonl", tmp_path / "trace.jsonl.gz"
    for text, said in (
        ("", "does not begin with the header"),
        ("not json", "cannot be read as a trace"),
        ("[1]", "does not begin"),
        (json.dumps({"event": "RunStarted", "version": 99}), "version 99, this kinodex reads version 2"),
    ):
        path.write_text(text)
        with pytest.raises(NotATrace, match=said):
            ReplayModel(path)
    packed.write_bytes(gzip.compress(recorded[0].read_bytes()))
    assert read_trace(packed) == read_trace(recorded[0])
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(NotATrace):
        read_trace(packed)


def test_a_follow_up_that_the_evidence_answers_takes_one_call(kites, recorded):
    seen = read_prior_evidence(recorded[0], kites)
    run = asked(
        kites,
        lambda each: {"option": "B", "evidence": [1]} if isinstance(each, Recall) else explorer(each),
        question=Question("Is there a cat beside it?", ("yes", "no")),
        seen=seen,
    )
    assert (run.answer.status, run.answer.text, run.answer.ledger.calls) == ("answered", "no", 1)
    assert run.answer.ledger.frames == len(seen.frames)
    assert run.model.requests[0].question.earlier == seen.earlier
    assert run.spans[0][0] == seen.frames[0].time_s


def test_what_cannot_be_continued_says_why(kites, recorded, tmp_path):
    path, lines = tmp_path / "other.jsonl", recorded[0].read_text().splitlines()
    header = json.loads(lines[0])
    header["videos"] = [{**video, "video_id": "f" * 32} for video in header["videos"]]
    for changed, says in (
        (lines[:-1], "ends before its answer"),
        ([json.dumps(header), *lines[1:]], "which is not asked about now"),
    ):
        path.write_text("\n".join(changed) + "\n")
        with pytest.raises(NotATrace, match=says):
            read_prior_evidence(path, kites)


@pytest.mark.slow
def test_a_packed_trace_that_unpacks_without_end_is_refused(tmp_path):
    path = tmp_path / "trace.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(250):
            file.write(b"\n" * 1_000_000)
    with pytest.raises(NotATrace, match="unpacks to more than 200 MB"):
        read_trace(path)
