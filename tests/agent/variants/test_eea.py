"""EEA: its search, the fusion of rewards with query scores, and its request."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from kinodex.agent.ask import ask, default_parameters
from kinodex.agent.errors import InvalidReply
from kinodex.agent.limits.budget import Budget
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.frames import citation_numbers
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.videos import Segment, Video
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoresAndQueries, ScoreSegments
from kinodex.agent.search.tree_search import MOST_QUOTED
from kinodex.agent.traces.events import Event, Expanded, QueriesAdded, Scored
from kinodex.agent.variants.eea.agent import EEAParameters
from kinodex.agent.variants.eea.requests import ScoreAndPropose
from kinodex.agent.variants.eea.scores import fuse, query_score, reward_entropy
from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.index.rows import SpeechRow
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
EVENT_S = range(1234, 1246)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    event = {EVENT_S.start: ("red kite desert", len(EVENT_S))}
    return make_library(tmp_path_factory.mktemp("eea"), {"hour": film(1, 3600, event)})


def run(library, script=explorer, budget=None, question=QUESTION, **parameters):
    environment, model = environment_of(library), ScriptedModel(script)
    events: list[Event] = []
    settings = replace(default_parameters("eea", environment), **parameters)
    given = {"parameters": settings, "budget": budget or Budget(rounds=3), "on_event": events.append}
    asyncio.run(ask(question, environment, model, agent="eea", **given))
    return events, model


@pytest.fixture(scope="module")
def searched(library):
    """Events and model of a search of five rounds."""
    return run(library, budget=Budget(rounds=5))


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.slow
def test_the_first_round_looks_at_the_anchors_and_covers_the_rest(searched):
    first = of(Expanded, searched[0])[0]
    assert (len(first.frames), len(first.children)) == (6, 7)
    assert 1 <= len(first.anchor_frame_nos) <= 3
    assert set(first.anchor_frame_nos) & set(EVENT_S)
    seen_s = np.asarray([frame.time_s for frame in first.frames])
    assert max(np.abs(seen_s - time_s).min() for time_s in range(3600)) < 3600 / 6


def test_segments_stay_a_partition_and_frames_are_never_sampled_twice(searched):
    leaves: dict[int, Segment] = {}
    shown = []
    for event in of(Expanded, searched[0]):
        leaves.pop(event.parent.number, None)
        leaves |= {child.number: child for child in event.children}
        shown += [frame.frame_no for frame in event.frames]
        ordered = sorted(leaves.values(), key=lambda part: part.start_s)
        assert (ordered[0].start_s, ordered[-1].end_s) == (0.0, 3600.0)
        assert all(a.end_s == b.start_s for a, b in pairwise(ordered))
    assert len(shown) == len(set(shown)) > 24


def proposing(query):
    def script(request):
        if isinstance(request, ProposeQueries):
            return {"query1": query}
        reply = explorer(request)
        return reply | {"query1": query} if isinstance(request, ScoreAndPropose) else reply

    return script


def test_new_queries_come_with_the_scores_and_are_retrieved_alone(library):
    events, model = run(library, proposing("white cat snow"), Budget(rounds=2))
    assert [type(request) for request in model.requests] == [
        DiscoverQueries,
        ScoreAndPropose,
        Decide,
        ScoreSegments,
        Decide,
    ]
    added = of(QueriesAdded, events)
    assert [event.queries for event in added] == [("red kite desert",), ("white cat snow",)]
    assert {anchor.query for anchor in added[1].anchors} == {"red kite desert", "white cat snow"}
    assert len(added[1].anchors) > len(added[0].anchors)


def frame_nos(frames):
    return [frame.frame_no for frame in frames]


def test_labels_never_change_and_the_two_requests_of_a_round_begin_alike(library):
    """A segment is rated by the frames that it was divided at: a known one at its end made it look good."""
    events, model = run(library, budget=Budget(rounds=4), memory=8, slack=4)
    labels: dict[int, int] = {}
    rounds = zip(of(Expanded, events), model.asked(ScoreSegments), model.asked(Decide), strict=True)
    for expanded, scoring, deciding in rounds:
        assert frame_nos(scoring.new_frames) == frame_nos(expanded.frames)
        assert set(frame_nos(scoring.new_frames)) <= set(frame_nos(scoring.frames))
        shown = sorted(scoring.frames, key=lambda each: each.time_s) if deciding.must_answer else scoring.frames
        assert tuple(shown) == deciding.frames
        assert frame_nos(scoring.frames) == sorted(frame_nos(scoring.frames), key=lambda each: labels.get(each, 99))
        labels |= {frame.frame_no: frame.label for frame in scoring.frames if frame.frame_no not in labels}
        assert all(labels[frame.frame_no] == frame.label for frame in scoring.frames)
    assert sorted(labels.values()) == list(range(1, len(labels) + 1))


def judging(reward, below=10**6):
    """Rates all segments of a lower number than `below` alike, and the others not."""

    def script(request):
        if isinstance(request, ScoreSegments):
            return {f"Segment {each.number}": {"score": reward} for each in request.segments if each.number < below}
        return explorer(request)

    return script


def test_anchors_seen_and_judged_worthless_count_no_more(tmp_path):
    """A frame that was seen and rated worthless kept the query score of the segments beside it for good."""
    moment = make_library(tmp_path / "moment", {"film": film(6, 600, {300: ("red kite desert", 1)})})
    best = {}
    for reward in (10, 60):
        events, _ = run(moment, judging(reward), Budget(rounds=1), pooling="best")
        [first], [scored] = of(Expanded, events), of(Scored, events)
        assert 300 in first.anchor_frame_nos
        near = [each.number for each in first.children if 300 in (each.start_s, each.end_s)]
        best[reward] = max(each.query_score for each in scored.candidates if each.number in near)
    assert best[60] > best[10] + 0.05


def test_a_segment_that_was_not_rated_is_scored_by_its_matches_and_shown_as_not_rated(library):
    events, model = run(library, judging(40, 4), Budget(rounds=2))
    scored = {each.number: each.query_score for each in of(Scored, events)[0].candidates}
    unrated = [each for each in model.asked(Decide)[0].candidates if not each.rated]
    assert len(unrated) == 4
    assert [each.score for each in unrated] == pytest.approx([scored[each.segment.number] for each in unrated])
    assert "not rated" in render(model.asked(Decide)[0])


def test_the_time_that_a_question_names_is_looked_at_first(library):
    at = Question("What colour is the boat at 12:34?", ("blue", "red"))
    for form in ("ours", "paper"):
        events, _ = run(library, budget=Budget(rounds=1), question=at, form=form)
        assert (754 in frame_nos(of(Expanded, events)[0].frames)) is (form == "ours")


def test_the_policy_reads_what_is_said_at_its_frames_only_if_it_may(tmp_path):
    """Off, requests are those without notes; on, a line that words found is cited and is evidence."""
    library = make_library(tmp_path / "library", {"film": film(5, 400)})
    video_id = library.video("film").video_id
    lines = [(6.0 * at, f"we went on to the next house {at}") for at in range(60)]
    lines = sorted([*lines, (200.0, "the captain hides a compass")])
    said = [SpeechRow(video_id, at_s, at_s + 3.0, text, "sidecar") for at_s, text in lines]
    library.writer.add_speech({video_id: said})

    def script(request):
        if isinstance(request, DiscoverQueries):
            return {"queries": ["captain hides compass"]}
        if isinstance(request, Decide) and request.notes:
            numbers = citation_numbers(request.frames, request.notes)[1]
            found = [at for at, note in zip(numbers, request.notes, strict=True) if "captain" in note.text]
            if found:
                return {"action": "answer", "option": "A", "answer": "a compass", "evidence": found}
        return explorer(request)

    kinds: list[tuple[AnchorsFrom, bool]] = [("all", True), ("frames", True), ("all", False)]
    for kind, quotes in kinds:
        model, parameters = ScriptedModel(script), EEAParameters(rounds=1, quotes=quotes, anchors_from=kind)
        question = Question("What does she hide?", ("a compass", "a map"))
        answer = asyncio.run(ask(question, environment_of(library), model, agent="eea", parameters=parameters))
        ranges_s = [(part.start_s, part.end_s) for part in answer.evidence]
        assert (ranges_s == [(200.0, 203.0)]) is ((kind, quotes) == ("all", True)), (kind, quotes)
        assert any(request.notes for request in model.asked(Decide)) == quotes


def test_what_is_switched_off_is_not_asked_and_not_used(library):
    _, model = run(library, query_update=False)
    assert model.asked(ProposeQueries) == model.asked(ScoreAndPropose) == [] and model.asked(DiscoverQueries)
    _, model = run(library, semantic_guided_expansion=False, uncertainty_aware_fusion=False, query_update=False)
    assert model.asked(DiscoverQueries) == []
    events, _ = run(library, budget=Budget(rounds=1), semantic_guided_expansion=False)
    (first,) = of(Expanded, events)
    assert first.anchor_frame_nos == ()
    assert np.diff([frame.time_s for frame in first.frames]) == pytest.approx([514] * 5, abs=2)
    events, model = run(library, budget=Budget(rounds=1), uncertainty_aware_fusion=False)
    assert [each.fused for each in of(Scored, events)[0].candidates] == [0.5] * 7
    assert "joins two things" not in render(model.asked(Decide)[0])
    assert [each.score for each in model.asked(Decide)[0].candidates] == [50] * 7


def test_query_score_is_the_papers_log_mean_exp() -> None:
    found = [0.32, 0.2, 0.2]
    scores = [query_score(each) for each in ([0.32], found, [1.0, 1.0], [])]
    assert scores == pytest.approx([0.32, 0.257, 1.0, 0.0], abs=1e-3)
    assert query_score(found, pooling="sum") == pytest.approx(0.367, abs=1e-3)
    assert query_score([0.95] * 40, pooling="sum") == 1.0
    assert query_score(found, pooling="best") == pytest.approx(0.32)


def test_entropy_on_the_scale_of_rewards() -> None:
    assert reward_entropy([100, 0, 0, 0, 0, 0, 0]) == pytest.approx(0.0, abs=1e-2)
    assert reward_entropy([50.0] * 7) == pytest.approx(1.0)
    assert reward_entropy([80, 80, 0, 0, 0, 0, 0], 1.0) == pytest.approx(0.356, abs=1e-3)
    for lead, entropy in ((5, 0.99), (10, 0.95), (30, 0.49), (50, 0.12), (70, 0.02)):  # graded, not switched
        rewards = [20.0 + lead, *[20.0] * 6]
        assert reward_entropy(rewards) == pytest.approx(entropy, abs=0.01)
        assert lead < 10 or reward_entropy(rewards, 1.0) < 0.005
    sure, graded, unsure = (reward_entropy([80.0, 70.0, 0.0], temperature) for temperature in (1.0, 10.0, 100.0))
    assert sure < 0.01 < graded < 0.9 < unsure
    assert (reward_entropy([None, None]), reward_entropy([None]), reward_entropy([70.0])) == (1.0, 1.0, 0.0)
    assert reward_entropy([90, None, None]) == 0.0 and reward_entropy([50, 50, None]) == pytest.approx(1.0)


def test_fusion_moves_from_reward_to_query_score() -> None:
    assert [fuse(80, 0.3, entropy) for entropy in (0.0, 0.25, 1.0)] == pytest.approx([0.8, 0.75 * 0.8 + 0.075, 0.3])
    assert fuse(None, 0.5, 0.4) == 0.5, "what was not rated is scored by its matches"


def test_queries_are_read_beside_scores_in_any_form() -> None:
    scores = {"Segment 1": {"explanation": "sky", "score": 70}, "Segment 2": 10}
    listed = {"segments": [{"segment": 1, "score": 70}, {"segment": 2, "score": 10}]}
    asked_for = {"queries": ["a boat"]}, {"query1": "a boat"}
    for said in ({**ratings, **queries} for ratings in (scores, listed) for queries in asked_for):
        reply = ScoresAndQueries.model_validate(said)
        assert [(each.segment, each.score) for each in reply.segments] == [(1, 70), (2, 10)], said
        assert reply.queries == ["a boat"], said
    film = Video("a" * 32, "film", 0.0, 100.0)
    parts = (Segment(1, film.video_id, 0.0, 50.0), Segment(2, film.video_id, 50.0, 100.0))
    asking = ScoreAndPropose(question=QUESTION, videos=(film,), segments=parts, frames=(), known=("red kite",))
    asking.check(ScoresAndQueries.model_validate(scores))
    with pytest.raises(InvalidReply, match="a query is empty"):
        asking.check(ScoresAndQueries.model_validate({**scores, "queries": ["x" * 400]}))


def test_what_was_found_is_kept_in_words_and_its_frame_in_the_memory(tmp_path):
    """A segment that was fully seen left with its explanation, and frames that decide left the memory."""
    moment = make_library(tmp_path / "moment", {"film": film(6, 600, {300: ("red kite desert", 4)})})
    video_id = moment.video("film").video_id
    said = SpeechRow(video_id, 301.0, 302.5, "look at the kite", "sidecar")
    moment.writer.add_speech({video_id: [said]})

    def finding(request):
        reply = explorer(request)
        if isinstance(request, ScoreSegments):
            beside = [note.text for note in request.notes]
            found = {"frame": request.new_frames[0].label, "seen": f"it is red {beside}", "supports": ["B"]}
            never = {"frame": 999, "seen": "not shown"}
            reply |= {"findings": [found, never, "no finding"]} if request.log == () else {}
        return reply

    events, model = run(moment, finding, Budget(rounds=6), memory=8, slack=0, frames=4)
    logs = [request.log for request in model.asked(Decide)]
    first = of(Expanded, events)[0].frames[0]
    assert [entry.frame for entry in logs[0]] == [first.label]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(logs)), "it only grows"
    asked = [*model.asked(ScoreSegments)[1:], *model.asked(Decide)]
    assert all(first.frame_no in frame_nos(request.frames) for request in asked), "what is cited stays"
    assert all("it is red" in render(request) and "; supports B" in render(request) for request in asked)
    prompts = [render(request) for request in model.asked(ScoreSegments)[1:3]]
    shared = prompts[0].index("log: frame")
    assert prompts[0][: shared + 20] == prompts[1][: shared + 20], "before it nothing changes"
    last = model.asked(Decide)[-1]
    assert last.must_answer and [each.time_s for each in last.frames] == sorted(each.time_s for each in last.frames)
    assert [each.detail for each in last.frames].count("auto") == 1, "what is cited in full"
    assert "in the order of time" in render(last) and "speaks for it and what against it" in render(last)


def test_lines_stand_beside_the_frames_in_every_request_that_judges_them(tmp_path):
    library = make_library(tmp_path / "library", {"film": film(5, 400)})
    video_id = library.video("film").video_id
    said = "the captain hides compass"
    rows = [SpeechRow(video_id, float(at), at + 1.0, f"{said} {at}", "sidecar") for at in range(400)]
    library.writer.add_speech({video_id: rows})
    for agent in ("eea", "vca"):
        for settings, lines in (({}, True), ({"form": "paper"}, False)):
            model = ScriptedModel(explorer)
            budget, parameters = Budget(rounds=3), {**settings, "memory": 40, "slack": 40}
            environment = environment_of(library)
            asyncio.run(ask(QUESTION, environment, model, agent=agent, parameters=parameters, budget=budget))
            judging = [*model.asked(ScoreSegments), *model.asked(Decide)]
            assert len(judging) == 6 and all(bool(request.notes) is lines for request in judging), (agent, settings)
            assert all(("captain" in render(request)) is lines for request in judging), (agent, settings)
            assert all(len(request.notes) <= MOST_QUOTED for request in judging)


def test_what_a_segment_hides_bounds_its_score_and_dead_ones_are_out_of_the_entropy(library):
    """One at 95 beside open ones at 40 is clear; twelve that are fully seen must not blur it, nor draw the search."""
    events, model = run(library, judging(95), Budget(rounds=4))
    for scored, request in zip(of(Scored, events), model.asked(Decide), strict=True):
        by_number = {each.number: each for each in scored.candidates}
        for each in request.candidates:
            hidden = round(each.segment.end_s - each.segment.start_s) - (each.segment.start_s > 0)
            rated = by_number[each.segment.number]
            whole = fuse(rated.reward, rated.query_score, scored.entropy)
            assert each.score == pytest.approx(whole * min(1.0, max(0, hidden) / 6)), each
