"""Kino: its route, and the places where its frames go."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.errors import NeedsPictures
from kinodex.agent.limits.budget import Budget
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.frames import citation_numbers
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.tree import Decide, ScoreSegments
from kinodex.agent.traces.events import Event, Expanded
from kinodex.agent.variants.kino.agent import MOST_QUOTED
from kinodex.agent.variants.kino.requests import ChooseStep, PlanSearch, RateSegments
from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from kinodex.index.rows import SpeechRow
from tests.support.libraries.agent_library import Blind, ScriptedModel, environment_of, explorer, film, make_library
from tests.support.libraries.random_library import add_stage, detection
from tests.support.libraries.text_library import text_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
LINE_S = 2000.0
SAID = {LINE_S: "The password is marzipan.", **{100.0 + 150 * at: f"It rained for {at} days." for at in range(20)}}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    library = make_library(tmp_path_factory.mktemp("kino"), {"hour": film(1, 3600, {1234: ("red kite desert", 12)})})
    video_id = library.video("hour").video_id
    rows = [SpeechRow(video_id, at_s, at_s + 2, SAID[at_s], source="subtitles") for at_s in sorted(SAID)]
    library.writer.add_speech({video_id: rows})
    return environment_of(library)


def run(
    environment: Environment, script: Callable[[Request[Any]], Any], question: Question = QUESTION, **given: Any
) -> tuple[Answer, list[Expanded], ScriptedModel]:
    model, events = ScriptedModel(script), list[Event]()
    budget = given.pop("budget", Budget(rounds=3))
    settings = {"parameters": given, "budget": budget, "on_event": events.append}
    answer = asyncio.run(ask(question, environment, model, agent="kino", **settings))
    return answer, [each for each in events if isinstance(each, Expanded)], model


def widest_s(expanded: Expanded) -> float:
    return max(b - a for a, b in pairwise([0.0, *(frame.time_s for frame in expanded.frames), 3600.0]))


def planning(where: str, *queries: str) -> Callable[[Request[Any]], Any]:
    return lambda request: (
        {"queries": list(queries), "where": where} if isinstance(request, PlanSearch) else explorer(request)
    )


def rating(rates: Callable[[float, float], float]) -> Callable[[Request[Any]], Any]:
    """Rates segments by their start and end."""

    def script(request: Request[Any]) -> Any:
        if not isinstance(request, ScoreSegments):
            return explorer(request)
        scored = [(each.number, rates(each.start_s, each.end_s)) for each in request.segments]
        return {"segments": [{"segment": number, "score": score} for number, score in scored]}

    return script


@pytest.mark.slow
def test_the_question_decides_where_the_first_frames_go(environment: Environment) -> None:
    _, [first, *_], model = run(environment, planning("moment", "red kite desert"), anchor_frames=4)
    assert len(first.frames) == 8
    assert any(1234 <= frame.time_s < 1246 for frame in first.frames), "a match"
    assert widest_s(first) < 1200, "the rest is covered"
    assert "PlanSearch" not in [type(each).__name__ for each in model.requests[1:]]

    password = Question("What is the password?", ("marzipan", "velvet"))
    _, [first, *_], model = run(environment, planning("words", "the password is"), password)
    assert any(LINE_S <= frame.time_s < LINE_S + 2 for frame in first.frames)
    request = model.asked(ScoreSegments)[0]
    assert "The password is marzipan." in [note.text for note in request.notes]
    starts_s = {said_s for frame in request.frames for said_s in SAID if -7 < said_s - frame.time_s < 6}
    assert {note.start_s for note in request.notes} == starts_s, "lines up to five seconds around its frames"

    answer, [first], model = run(environment, planning("whole film", "red kite desert"), whole=30)
    assert (len(first.frames), len(model.requests), answer.option) == (30, 2, 0)
    assert widest_s(first) < 2 * 3600 / 30
    _, [first, *_], _ = run(environment, planning("whole film", "red kite desert"), whole=30, route=False)
    assert len(first.frames) == 8

    at_once = Question("What is seen at 50:00?", ("blue", "red"))
    _, [first, *_], _ = run(environment, planning("moment", "something else"), at_once)
    assert 3000.0 in [frame.time_s for frame in first.frames]


def test_each_frame_goes_where_it_is_worth_most(environment: Environment) -> None:
    """The promising segment gets most frames, the long ones some, and none is shown twice."""

    def near(start_s: float, end_s: float) -> float:
        return 70.0 if start_s <= 3300 < end_s else 60.0

    _, expanded, model = run(environment, rating(near), anchor_frames=0, budget=Budget(rounds=2))
    second = expanded[1:]
    assert len(second) > 1
    assert sum(len(each.frames) for each in second) == 8
    [best] = [each for each in second if each.parent.start_s <= 3300 < each.parent.end_s]
    assert len(best.frames) > max(len(each.frames) for each in second if each is not best)
    shown = [frame.frame_no for each in expanded for frame in each.frames]
    assert len(shown) == len(set(shown))
    assert len(model.asked(ScoreSegments)[1].segments) == sum(len(each.children) for each in second)
    given: dict[str, Any] = {"anchor_frames": 0, "spread": False}
    _, expanded, model = run(environment, rating(near), **given, budget=Budget(rounds=5))
    in_round = Counter({1: 8, 2: 3, 3: 5, 4: 3, 5: 5})
    assert Counter(each.round for each in expanded for _ in each.frames) == in_round, "a fourth frame tells little more"
    assert len(model.asked(Decide)) == 3, "the policy is asked after a look of eight frames, not after a round"
    _, expanded, _ = run(environment, rating(near), **given, least_share=0.0, budget=Budget(frames=16))
    assert [len(each.frames) for each in expanded] == [5, 4, 4, 3], "of a short budget a third, and quarters"


def test_without_any_frame_left_the_best_answer_so_far_is_given(environment: Environment) -> None:
    for frames in (3, 8, 11):
        answer, expanded, _ = run(environment, explorer, budget=Budget(frames=frames))
        assert answer.ledger.frames == frames == sum(len(each.frames) for each in expanded)
        assert (answer.option, answer.status) == (0, "budget_exhausted")


def test_a_short_video_is_seen_whole_and_answered_in_one_call(tmp_path: Path) -> None:
    short = environment_of(make_library(tmp_path / "short", {"short": film(5, 9)}))
    answer, _, model = run(short, explorer, memory=16)
    assert (answer.status, answer.ledger.calls, answer.ledger.frames) == ("answered", 1, 9)
    assert [frame.frame_no for frame in model.requests[0].frames] == list(range(9))


def test_what_was_found_is_kept_in_words_and_its_frame_in_the_memory(tmp_path: Path) -> None:
    """A segment that was fully seen left with its explanation, and frames that decide left the memory."""
    moment = make_library(tmp_path / "moment", {"film": film(6, 600, {300: ("red kite desert", 4)})})
    video_id = moment.video("film").video_id
    moment.writer.add_speech({video_id: [SpeechRow(video_id, 301.0, 302.5, "look at the kite", "sidecar")]})

    def finding(request: Request[Any]) -> Any:
        reply = explorer(request)
        if isinstance(request, RateSegments):
            beside = [note.text for note in request.notes]
            found = {"frame": request.new_frames[0].label, "seen": f"it is red {beside}", "supports": ["B"]}
            never = {"frame": 999, "seen": "not shown"}
            reply |= {"findings": [found, never, "no finding"]} if request.log == () else {}
        return reply

    given: dict[str, Any] = {"memory": 8, "frames": 4, "first": 4, "anchor_frames": 4, "least_share": 0.0}
    _, expanded, model = run(environment_of(moment), finding, budget=Budget(rounds=6), **given)
    steps, ratings = model.asked(ChooseStep), model.asked(RateSegments)
    first = expanded[0].frames[0]
    assert [entry.frame for entry in steps[0].log] == [first.label]
    assert all(later.log[: len(earlier.log)] == earlier.log for earlier, later in pairwise(steps)), "it only grows"
    asked = [*ratings[1:], *steps]
    assert all(first.frame_no in [each.frame_no for each in request.frames] for request in asked), "it is cited"
    assert all("it is red" in render(request) and "; supports B" in render(request) for request in asked)
    last = steps[-1]
    assert last.must_answer and [each.time_s for each in last.frames] == sorted(each.time_s for each in last.frames)
    assert [each.detail for each in last.frames].count("auto") == 1, "what is cited in full"
    assert "speaks for it and what against it" in render(last)


def test_pictures_are_small_unless_they_are_to_be_large(environment: Environment) -> None:
    for pictures, new, all_ in (
        ("small", {"low"}, {"low"}),
        ("new large", {"auto"}, {"low", "auto"}),
        ("large", {"auto"}, {"auto"}),
    ):
        _, _, model = run(environment, explorer, pictures=pictures, least_share=0.0)
        rating_two = model.asked(RateSegments)[1]
        assert {each.detail for each in rating_two.new_frames} == new, pictures
        assert {each.detail for each in rating_two.frames} == all_, pictures


def test_lines_stand_beside_the_frames_in_every_request_that_judges_them(tmp_path: Path) -> None:
    library = make_library(tmp_path / "library", {"film": film(5, 400)})
    video_id = library.video("film").video_id
    rows = [
        SpeechRow(video_id, float(at), at + 1.0, f"the captain hides a compass {at}", "sidecar") for at in range(400)
    ]
    library.writer.add_speech({video_id: rows})
    for quotes in (True, False):
        _, _, model = run(environment_of(library), explorer, quotes=quotes)
        judging = [*model.asked(RateSegments), *model.asked(ChooseStep)]
        assert judging and all(bool(request.notes) is quotes for request in judging)
        assert all(("captain" in render(request)) is quotes for request in judging)
        assert all(len(request.notes) <= MOST_QUOTED for request in judging)


def test_a_line_that_words_found_is_cited_and_is_evidence(tmp_path: Path) -> None:
    library = make_library(tmp_path / "library", {"film": film(5, 400)})
    video_id = library.video("film").video_id
    lines = sorted(
        [
            *((6.0 * at, f"we went on to the next house {at}") for at in range(60)),
            (200.0, "the captain hides a compass"),
        ]
    )
    library.writer.add_speech(
        {video_id: [SpeechRow(video_id, at_s, at_s + 3.0, text, "sidecar") for at_s, text in lines]}
    )

    def script(request: Request[Any]) -> Any:
        if isinstance(request, PlanSearch):
            return {"queries": ["captain hides compass"]}
        if isinstance(request, ChooseStep):
            numbers = citation_numbers(request.frames, request.notes)[1]
            found = [at for at, note in zip(numbers, request.notes, strict=True) if "captain" in note.text]
            if found:
                return {"action": "answer", "option": "A", "answer": "a compass", "evidence": found}
        return explorer(request)

    hiding = Question("What does she hide?", ("a compass", "a map"))
    for given, found in (({}, True), ({"anchors_from": "frames"}, False), ({"quotes": False}, False)):
        answer, _, _ = run(environment_of(library), script, hiding, rounds=1, first=4, **given)
        assert ([(part.start_s, part.end_s) for part in answer.evidence] == [(200.0, 203.0)]) is found, given


SAID_OF_KITE = "She says: my kite is red."


@pytest.fixture(scope="module")
def read_films(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """An hour with frames, speech and detections; and one of which the library holds only captions."""
    library = make_library(tmp_path_factory.mktemp("read"), {"hour": film(1, 3600, {1234: ("red kite desert", 12)})})
    video_id = library.video("hour").video_id
    lines = sorted([(1236.0, SAID_OF_KITE), *((50.0 * at, f"It rained for {at} days.") for at in range(72))])
    library.writer.add_speech(
        {video_id: [SpeechRow(video_id, at_s, at_s + 3, text, "sidecar") for at_s, text in lines]}
    )
    add_stage(library, "detections", "m", {video_id: [detection(at, "kite", 0.9) for at in range(1230, 1246)]})
    return library


def reader(request: Request[Any]) -> Any:
    """Looks for the kite, and answers from the line that speaks of it."""
    if isinstance(request, PlanSearch):
        return {"queries": ["my kite is red"]}
    if isinstance(request, ChooseStep):
        assert request.frames == ()
        told = [at for at, note in enumerate(request.notes, start=1) if "my kite" in note.text]
        if told:
            return {"action": "answer", "option": "B", "evidence": told}
    return explorer(request)


def test_a_model_without_sight_reads_the_words_of_the_same_moments(read_films: Library) -> None:
    answer, events, model = asked_of(Blind(reader), environment_of(read_films))
    assert (answer.status, answer.option, answer.ledger.frames) == ("answered", 1, 0)
    assert [(part.start_s, part.end_s) for part in answer.evidence] == [(1236.0, 1239.0)]
    seen = sum(len(event.frames) for event in events)
    assert answer.ledger.read_moments == seen > 0
    assert answer.reason == f"words of {seen} moments were read in the place of pictures"
    prompt = render(model.asked(ChooseStep)[-1])
    assert SAID_OF_KITE in prompt and "No picture can be shown" in prompt and "(detection): kite" in prompt


def test_a_film_without_pictures_is_searched_by_its_words(tmp_path: Path) -> None:
    lines = [(10.0 * at, 10.0 * at + 10, f"Somebody walks through house {at}.") for at in range(300)]
    lines[222] = (2220.0, 2230.0, "A boy says: my kite is red.")
    environment = environment_of(text_library(tmp_path / "text", {"told": lines}))
    answer, events, _ = asked_of(ScriptedModel(reader), environment)
    assert (answer.status, answer.option) == ("answered", 1)
    assert [(part.start_s, part.end_s) for part in answer.evidence] == [(2220.0, 2230.0)]
    assert 0 < answer.ledger.read_moments < 30 and len(events) >= 1, "a few of its 300 captions"
    few = environment_of(text_library(tmp_path / "few", {"short": lines[220:230]}))
    answer, _, model = asked_of(ScriptedModel(reader), few)
    assert (answer.option, len(model.requests), answer.ledger.read_moments) == (1, 1, 10), "read whole, in one call"


def test_it_refuses_only_where_there_are_neither_pictures_for_the_model_nor_words(
    environment: Environment, tmp_path: Path
) -> None:
    silent = environment_of(make_library(tmp_path / "silent", {"film": film(5, 400)}))
    with pytest.raises(NeedsPictures, match="no words to read in their place; name a model with vision, or add words"):
        asked_of(Blind(explorer), silent)


def test_what_was_read_is_kept_in_the_log(read_films: Library) -> None:
    def finding(request: Request[Any]) -> Any:
        if isinstance(request, RateSegments) and request.log == ():
            return explorer(request) | {"findings": [{"frame": 1, "seen": "it rained", "supports": ["A"]}]}
        return explorer(request)

    _, _, model = asked_of(Blind(finding), environment_of(read_films), rounds=3)
    [entry] = model.asked(ChooseStep)[0].log
    assert (entry.frame, entry.supports) == (0, "A")
    assert f"log: at {entry.time_s:.2f} s: it rained; supports A" in render(model.asked(ChooseStep)[-1])


def asked_of(
    model: ScriptedModel, environment: Environment, rounds: int = 4
) -> tuple[Answer, list[Expanded], ScriptedModel]:
    events = list[Event]()
    given: dict[str, Any] = {"budget": Budget(rounds=rounds), "on_event": events.append}
    answer = asyncio.run(ask(QUESTION, environment, model, agent="kino", **given))
    return answer, [each for each in events if isinstance(each, Expanded)], model
