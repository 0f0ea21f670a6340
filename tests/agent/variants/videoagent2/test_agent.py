"""VideoAgent2 on real libraries: what it knows at first, when it stops, and its ablations."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.ask import ask, find_variant
from kinodex.agent.errors import BadSettings
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Earlier, Question, Request, Usage
from kinodex.agent.requests.answer import AnswerNotes
from kinodex.agent.requests.describe import DescribeSegment, Summarize
from kinodex.agent.trace import Assessed, Decided, PriorEvidence, ReplayModel, trace_to
from kinodex.agent.variants.videoagent2 import VIDEOAGENT2, VideoAgent2Parameters
from kinodex.agent.variants.videoagent2_requests import AdjustPlan, Assess, CallTool, CreatePlan
from kinodex.index.library import Library
from kinodex.jobs.add.captions import Caption
from tests.bench.prefix import Tokens, open_cache, prompt_of_request
from tests.support.libraries.agent_library import ScriptedModel, film, make_library
from tests.support.libraries.videoagent2_film import (
    CAPTION,
    QUESTION,
    SURE,
    UNKNOWN,
    UNSURE,
    Script,
    acted,
    call_once,
    environment_of,
    kite_library,
    picture,
    run,
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return kite_library(tmp_path_factory.mktemp("videoagent2"))


def test_the_general_context_is_a_caption_every_four_seconds_and_a_summary_kept_for_the_next_question(
    tmp_path: Path,
) -> None:
    library = make_library(tmp_path, {"film": film(5, 42)}, picture())
    answer, events, model = run(library, Script([{**SURE, "evidence": [3]}]))
    described = model.asked(DescribeSegment)
    assert sorted(each.segment.start_s for each in described) == [4.0 * part for part in range(11)]
    assessed = model.asked(Assess)[0]
    assert [(note.start_s, note.end_s) for note in assessed.notes[-2:]] == [(36.0, 40.0), (40.0, 42.0)]
    assert {(note.source, note.confidence) for note in assessed.notes} == {("caption", 0.8)}
    assert [note.text for note in assessed.summaries] == ["A film of boats."]
    assert (answer.status, answer.letter, answer.rounds) == ("answered", "A", 1)
    assert [(each.start_s, each.end_s) for each in answer.evidence] == [(8.0, 12.0)]
    assert events[-2] == Decided(1, "answer", None, forced=False)

    _, _, again = run(library, Script([SURE]))
    assert again.asked(DescribeSegment) == again.asked(Summarize) == []
    assert again.asked(Assess)[0].notes == assessed.notes


def test_it_stops_when_it_is_sure_and_plans_until_then(library: Library) -> None:
    script = Script([UNSURE, {**UNSURE, "confidence": 4.5}, SURE], [CAPTION, {**CAPTION, "start_s": 41.0}])
    answer, events, model = run(library, script)
    assert (answer.status, answer.letter, answer.rounds) == ("answered", "A", 3)
    assert [event.confidence for event in events if isinstance(event, Assessed)] == [2, 4.5, 5]
    assert [(each.start_s, each.end_s) for each in answer.evidence] == [(40.0, 41.0)]
    (created,), (adjusted,) = model.asked(CreatePlan), model.asked(AdjustPlan)
    assert (created.toolbox.calls_left, adjusted.toolbox.calls_left) == (4, 3)
    assert created.doubt == "no kite yet"
    assert adjusted.plan == ("step 1", "step 2", "step 3")
    assert (adjusted.confidence, adjusted.doubt) == (4.5, "no kite yet")
    assert adjusted.notes[-1].text == "a red kite (confidence 0.90); a desert (confidence 0.60)"
    assert len(model.asked(Assess)[2].notes) == 15 + 2


def test_at_most_five_assessments_and_four_calls_then_the_last_answer_counts(library: Library) -> None:
    answer, events, model = run(library, Script([UNSURE]))
    assert (answer.status, answer.reason, answer.letter, answer.rounds) == ("budget_exhausted", "rounds", "B", 5)
    assert [each.number for each in model.asked(Assess)] == [1, 2, 3, 4, 5]
    assert len(acted(events)) == 4
    assert [each.toolbox.calls_left for each in model.asked(AdjustPlan)] == [3, 2, 1]
    assert model.asked(AnswerNotes) == []
    assert events[-2] == Decided(5, "answer", None, forced=True)


def test_a_run_that_ends_without_an_answer_asks_for_the_best_one(library: Library) -> None:
    answer, _, model = run(library, Script([UNKNOWN]), Budget(rounds=2))
    assert (answer.status, answer.reason, answer.letter) == ("budget_exhausted", "rounds", "A")
    assert [(each.number, each.most) for each in model.asked(Assess)] == [(1, 2), (2, 2)]
    assert len(model.asked(AnswerNotes)[0].notes) == 15 + 1


def test_a_plan_that_cannot_be_carried_out_is_asked_for_again_and_then_costs_the_step(library: Library) -> None:
    outside = {"tool": "caption", "start_s": 999.0}
    answer, events, model = run(library, Script([UNSURE, SURE], [outside, CAPTION]))
    assert (answer.status, answer.ledger.invalid_replies, len(acted(events)[0].notes)) == ("answered", 1, 1)
    assert "outside the video" in model.asked(CreatePlan)[1].complaint

    answer, events, model = run(library, Script([UNSURE, UNSURE, SURE], [outside, "no plan at all", CAPTION]))
    assert (answer.status, answer.ledger.invalid_replies) == ("answered", 2)
    assert [(event.action, bool(event.problem)) for event in acted(events)] == [("none", True), ("caption", False)]
    assert [each.toolbox.calls_left for each in model.asked(CreatePlan)] == [4, 4, 3]
    assert model.asked(AdjustPlan) == []


def test_contradictory_and_unreadable_assessments_are_no_answers(library: Library) -> None:
    nothing_chosen = {"thought": "clear", "confidence": 5}
    answer, _, model = run(library, Script([nothing_chosen, {**SURE, "confidence": 9}, SURE]))
    assert (answer.status, answer.letter, answer.rounds, answer.ledger.invalid_replies) == ("answered", "A", 2, 2)
    assert model.asked(CreatePlan)[0].doubt == ""

    doubtful = {**UNKNOWN, "option": "B"}
    answer, events, _ = run(library, Script([doubtful]))
    assert (answer.letter, [each.confidence for each in events if isinstance(each, Assessed)]) == ("A", [0] * 5)

    answer, _, _ = run(library, Script(["mumble"]))
    assert (answer.status, answer.letter, answer.rounds) == ("budget_exhausted", "A", 5)


@pytest.mark.parametrize("name", ["no tool confidence", "no plan adjusting", "no plan", "no tools"])
def test_every_ablation_keeps_those_before_it(library: Library, name: str) -> None:
    settings = VIDEOAGENT2.ablations[name]
    order = ["tool_confidence", "adjust_plan", "plan", "tools"]
    assert settings == dict.fromkeys(order[: len(settings)], False)
    answer, _, model = run(library, Script([UNSURE, SURE]), **settings)
    assert answer.letter == ("B" if name == "no tools" else "A")
    assert all(note.confidence is None for each in model.asked(Assess) for note in each.notes)


def test_without_tool_confidence_nothing_but_the_answer_has_one(library: Library) -> None:
    found, model, _ = call_once(library, CAPTION, **VIDEOAGENT2.ablations["no tool confidence"])
    assert found == ["a red kite; a desert"]
    found, _, _ = call_once(library, {"tool": "detect", "start_s": 24.0}, **VIDEOAGENT2.ablations["no tool confidence"])
    assert found == ["house number 8 at [0.60, 0.10, 0.80, 0.50]; boat number 7 at [0.24, 0.10, 0.44, 0.50]"]
    assert not model.asked(CreatePlan)[0].toolbox.confidence


def test_without_adjusting_the_first_plan_is_carried_out_to_its_end(library: Library) -> None:
    script = Script([UNSURE], [CAPTION, {"tool": "detect", "start_s": 24.0}, "?"], steps=3)
    answer, events, model = run(library, script, **VIDEOAGENT2.ablations["no plan adjusting"])
    assert (len(model.asked(CreatePlan)), model.asked(AdjustPlan)) == (1, [])
    assert [(each.plan, each.step) for each in model.asked(CallTool)] == [
        (("step 1", "step 2", "step 3"), step) for step in (2, 3, 3)
    ]
    assert [event.action for event in acted(events)] == ["caption", "detect", "none"]
    assert (answer.status, answer.letter, answer.rounds) == ("answered", "B", 4)


def test_without_a_plan_tools_are_called_straight_away(library: Library) -> None:
    answer, events, model = run(library, Script([UNSURE, UNSURE, SURE]), **VIDEOAGENT2.ablations["no plan"])
    assert model.asked(CreatePlan) == model.asked(AdjustPlan) == []
    assert [each.plan for each in model.asked(CallTool)] == [(), ()]
    assert not any(each.reasoning for each in model.asked(Assess))
    assert (answer.rounds, len(acted(events))) == (3, 2)


def test_without_tools_the_first_answer_is_the_last(library: Library) -> None:
    answer, events, model = run(library, Script([UNSURE]), **VIDEOAGENT2.ablations["no tools"])
    assert (answer.status, answer.letter, answer.rounds, acted(events)) == ("answered", "B", 1, [])
    assert len(model.asked(Assess)) == 1


def test_a_budget_in_the_middle_ends_in_the_best_answer(library: Library) -> None:
    each = Usage(input_tokens=90, output_tokens=10)
    answer, _, model = run(library, Script([UNSURE]), Budget(tokens=450), each)
    assert (answer.status, answer.reason) == ("budget_exhausted", "tokens")
    assert answer.letter is not None
    assert answer.ledger.input_tokens + answer.ledger.output_tokens <= 450
    assert len(model.asked(Assess)) < 5


def test_the_surest_answer_before_counts_where_the_last_assessment_has_none(library: Library) -> None:
    better = {**UNSURE, "option": "A", "confidence": 3}
    answer, _, model = run(library, Script([UNSURE, better, UNSURE, UNKNOWN]), Budget(rounds=4))
    assert (answer.status, answer.reason, answer.letter) == ("budget_exhausted", "rounds", "A")
    assert model.asked(AnswerNotes) == []


def test_a_budget_that_ends_the_run_returns_the_best_answer_so_far(library: Library) -> None:
    each = Usage(input_tokens=90, output_tokens=10)
    script = Script([{**UNSURE, "confidence": 4}, UNKNOWN], ["no plan"])
    answer, _, model = run(library, script, Budget(tokens=1000), each)
    assert (answer.status, answer.reason, answer.letter) == ("budget_exhausted", "tokens", "B")
    assert model.asked(AnswerNotes) == []  # nothing is known now that the assessment did not know


def test_the_share_of_input_that_a_prefix_cache_serves(tmp_path: Path) -> None:
    library = make_library(tmp_path, {"film": film(5, 600)}, picture())
    questions = (QUESTION, Question("Who is in the boat?", ("nobody", "a cat")))
    cache, rules = open_cache("vllm"), Tokens()
    served = total = 0
    for question in questions:
        _, _, model = run(library, Script([UNSURE]), question=question)
        for request in model.requests:
            if request.role == "policy":
                prompt = prompt_of_request(request, "policy", rules)
                served, total = served + cache.serve(prompt.tokens), total + len(prompt.tokens)
    assert served / total >= 0.7


def test_captions_of_the_library_fill_the_bank_where_they_overlap(tmp_path: Path) -> None:
    library = make_library(tmp_path, {"film": film(5, 40)}, picture())
    (video,) = library.videos()
    rows = [Caption(0, 0.0, 10.0, "shot one", None, None), Caption(1, 10.0, 21.0, "shot two", 0.5, None)]
    library.additions.add_captions({video.video_id: rows}, "other")
    library.additions.complete("captions", "other", {video.video_id: 2}, {})
    answer, _, model = run(library, Script([SURE]))
    described = sorted(each.segment.start_s for each in model.asked(DescribeSegment))
    assert described == [20.0, 24.0, 28.0, 32.0, 36.0]  # 20 s on: the second shot ends within that part
    notes = model.asked(Assess)[0].notes
    assert [(note.start_s, note.end_s, note.text) for note in notes[:3]] == [
        (0.0, 10.0, "shot one"),
        (10.0, 21.0, "shot two"),
        (20.0, 24.0, "a part from 20 s"),
    ]
    assert answer.ledger.frames_with_kept > answer.ledger.frames


def test_when_the_time_is_up_the_last_assessment_is_the_answer(library: Library) -> None:
    class Stuck(ScriptedModel):
        async def ask(self, request: Request[Any]) -> Any:
            if isinstance(request, CreatePlan):
                await asyncio.sleep(60)
            return await super().ask(request)

    environment = environment_of(library)
    answer = asyncio.run(
        ask(QUESTION, environment, Stuck(Script([UNSURE])), agent="videoagent2", budget=Budget(seconds=2.0))
    )
    assert (answer.status, answer.reason, answer.letter) == ("budget_exhausted", "seconds", "B")
    assert answer.evidence


def test_a_budget_of_frames_leaves_some_for_the_tools(tmp_path: Path) -> None:
    library = make_library(tmp_path, {"film": film(5, 60)}, picture())
    answer, events, _ = run(
        library, Script([UNSURE], [{"tool": "caption", "start_s": 0, "end_s": 60}]), Budget(frames=20)
    )
    assert answer.ledger.frames <= 20
    assert (answer.status, answer.letter) == ("budget_exhausted", "B")
    assert acted(events)[0].problem.count("were not asked for, to leave half of the budget") == 1
    assert [event.action for event in acted(events)][:2] == ["captions", "caption"]


@pytest.mark.parametrize("ablation", [None, "no plan adjusting"])
def test_a_trace_replays_to_the_same_answer(library: Library, tmp_path: Path, ablation: str | None) -> None:
    settings = VIDEOAGENT2.ablations[ablation] if ablation else {}
    path = tmp_path / "trace.jsonl"
    script = Script([UNSURE, "mumble", UNSURE, UNSURE], [CAPTION, {"tool": "fly"}, {"tool": "detect", "start_s": 24.0}])
    with trace_to(path) as write:
        answer, _, _ = run(library, script, on_event=write, **settings)
    parameters = VideoAgent2Parameters(**settings)
    environment = environment_of(library)
    again = asyncio.run(ask(QUESTION, environment, ReplayModel(path), agent="videoagent2", parameters=parameters))
    assert (again.status, again.option, again.evidence, again.rounds) == (
        answer.status,
        answer.option,
        answer.evidence,
        answer.rounds,
    )
    assert again.ledger.calls == answer.ledger.calls


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Library:
    films = {f"film {seed}": film(seed, 40) for seed in range(6)}
    films["kite"] = film(9, 40, {20: ("what colour is kite", 10)})
    return make_library(tmp_path_factory.mktemp("several"), films, picture())


def test_of_many_videos_the_nearest_are_captioned_in_parts_that_the_bank_can_hold(several: Library) -> None:
    kite = several.video("kite").video_id
    call = {"tool": "caption", "video": kite[:12], "start_s": 25.0}
    question = Question("What colour is the kite?")
    script = Script(
        [{**UNSURE, "answer": "blue"}, {**SURE, "answer": "red", "evidence": [11]}], [{**call, "video": None}, call]
    )
    answer, _, model = run(several, script, question=question, videos=2, captions=12)
    assert len({each.segment.video_id for each in model.asked(DescribeSegment)}) == 2
    assert kite in {each.segment.video_id for each in model.asked(DescribeSegment)}
    assessed = model.asked(Assess)[0]
    assert [note.end_s - note.start_s for note in assessed.notes] == [8.0] * 10
    assert [note.video_id for note in assessed.summaries] == [video.video_id for video in assessed.videos]
    assert "names no video" in model.asked(CreatePlan)[1].complaint
    assert (answer.text, answer.rounds) == ("red", 2)
    assert [(each.video_id, each.start_s, each.end_s) for each in answer.evidence] == [(kite, 25.0, 26.0)]


def test_a_follow_up_knows_what_the_tools_returned_before(library: Library) -> None:
    _, events, first = run(library, Script([UNSURE, SURE]))
    notes = first.asked(Assess)[0].notes[:2] + acted(events)[0].notes
    answer, _, model = run(
        library, Script([SURE]), seen=PriorEvidence((Earlier("Is there a kite?", "yes"),), (), notes)
    )
    (assessed,) = model.asked(Assess)
    assert assessed.notes == first.asked(Assess)[1].notes
    assert [(each.start_s, each.end_s) for each in answer.evidence] == [(40.0, 41.0)]


def test_parameters_that_make_no_sense_are_refused() -> None:
    impossible: list[dict[str, Any]] = [{"enough": 6}, {"segment_s": 0}, {"frames": 0}, {"rounds": 0}]
    for wrong in impossible:
        with pytest.raises(BadSettings):
            VideoAgent2Parameters(**wrong)
    assert find_variant("videoagent2") is VIDEOAGENT2
