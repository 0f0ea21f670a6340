"""VideoTree: its tree of captions, its request, and clusters of frames."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from kinodex.agent.ask import ask, default_parameters
from kinodex.agent.errors import InvalidReply
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Note, Question, Video
from kinodex.agent.requests.answer import AnswerNotes
from kinodex.agent.requests.describe import DescribeSegment
from kinodex.agent.requests.tree import DiscoverQueries
from kinodex.agent.trace import Acted, Event
from kinodex.agent.variants.videotree import (
    JudgeRelevance,
    Relevances,
    chapter_clusters,
    halve,
    k_means,
)
from kinodex.index.rows import SceneRow
from tests.support.libraries.agent_library import ScriptedModel, environment_of, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
CAPTIONS = film(1, 1200)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return make_library(tmp_path_factory.mktemp("videotree"), {"film": CAPTIONS})


@pytest.fixture(scope="module")
def two_films(tmp_path_factory):
    events = {100: ("red kite desert", 10)}
    return make_library(tmp_path_factory.mktemp("two"), {"first": film(2, 200), "second": film(3, 200, events)})


def script(relevance=lambda number, note: 1):
    """Captions say the words of the film; `relevance` judges a cluster by its number and its note."""

    def reply(request):
        match request:
            case DescribeSegment():
                return {"caption": CAPTIONS[int(request.frames[0].time_s)], "confidence": 90}
            case JudgeRelevance():
                return {str(at + 1): relevance(at + 1, note) for at, note in enumerate(request.notes)}
            case AnswerNotes():
                return {"action": "answer", "option": "B", "answer": None, "evidence": [1]}
        raise TypeError(type(request).__name__)

    return reply


def run(library, reply, budget=None, **parameters):
    environment, model = environment_of(library).without_shared_captions(), ScriptedModel(reply)
    events: list[Event] = []
    settings = replace(default_parameters("videotree", environment), **parameters)
    answer = asyncio.run(
        ask(
            QUESTION,
            environment,
            model,
            agent="videotree",
            parameters=settings,
            budget=budget or Budget(),
            on_event=events.append,
        )
    )
    return answer, events, model


def sizes(model):
    return [len(request.notes) for request in model.asked(JudgeRelevance)]


def read_s(model):
    return [note.start_s for note in model.asked(AnswerNotes)[-1].notes]


def deepened_s(events):
    (deepened,) = [event for event in events if isinstance(event, Acted) and event.action == "deepen"]
    return [note.start_s for note in deepened.notes]


@pytest.mark.slow
def test_it_doubles_the_clusters_until_enough_are_highly_relevant(library):
    assert sizes(run(library, script())[2]) == [8, 16, 32]
    assert sizes(run(library, script(lambda number, note: 3 if number <= 4 else 1))[2]) == [8]
    assert sizes(run(library, script(lambda number, note: 3 if number % 4 == 0 else 2))[2]) == [8, 16]


@pytest.mark.slow
@pytest.mark.parametrize(("relevance", "below"), [(1, 0), (2, 4), (3, 4 + 4 * 4)])
def test_a_relevance_deepens_the_cluster_it_was_given_for(library, relevance, below):
    """The cluster judged fifth in the order of time, and no other: the published code took another one."""
    chosen = []

    def fifth(number, note):
        if number == 5:
            chosen.append(note.start_s)
        return relevance if number == 5 else 1

    _, events, _ = run(library, script(fifth), max_breadth=8)
    environment = environment_of(library)
    (video,) = environment.videos
    (cluster,) = [
        each
        for each in k_means(environment.source.in_memory(video.video_id).units, 8)
        if float(each.middle) == chosen[-1]
    ]
    found = deepened_s(events)
    assert below / 2 <= len(found) <= below
    assert set(found) <= set(map(float, cluster.members))


@pytest.mark.slow
def test_the_answer_comes_from_captions_in_order_each_once(library):
    _, events, model = run(library, script(lambda number, note: 3))
    times_s = read_s(model)
    assert times_s == sorted(set(times_s))
    assert set(deepened_s(events)) <= set(times_s)
    assert 8 * 4 < len(times_s) <= 8 * (1 + 4 + 16)
    for request in model.asked(JudgeRelevance):
        judged_s = [note.start_s for note in request.notes]
        assert judged_s == sorted(set(judged_s)), "in the order of time"
    (asked,) = model.asked(AnswerNotes)
    assert all(note.text == CAPTIONS[int(note.start_s)] for note in asked.notes)
    assert {request.frames[0].time_s for request in model.asked(DescribeSegment)} == set(times_s)


def test_budgets_end_with_the_best_answer_so_far(library):
    answer, _, model = run(library, script(), budget=Budget(rounds=1))
    assert (answer.status, answer.reason, answer.text, sizes(model)) == ("budget_exhausted", "rounds", "red", [8])
    for frames in (10, 20):  # enough for some clusters, and for a part of the depth
        answer, events, _ = run(library, script(lambda number, note: 3), budget=Budget(frames=frames))
        assert (answer.status, answer.reason, answer.text) == ("budget_exhausted", "frames", "red")
        assert answer.ledger.frames == frames
    assert any(isinstance(event, Acted) and "were not asked for" in event.problem for event in events)


@pytest.mark.slow
def test_several_videos_are_one_tree(two_films):
    def reply(request):
        return {"queries": ["red kite desert"]} if isinstance(request, DiscoverQueries) else script()(request)

    _, _, both = run(two_films, reply)
    assert len({note.video_id for note in both.asked(AnswerNotes)[0].notes}) == 2
    assert both.asked(DiscoverQueries) == []
    _, _, one = run(two_films, reply, videos=1)
    assert [video.title for video in one.asked(AnswerNotes)[0].videos] == ["second"]
    assert len({note.video_id for note in one.asked(AnswerNotes)[0].notes}) == 1


PLACES = ["red boat sea"] * 50 + ["white dog snow"] * 20 + ["green tree forest"] * 30


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    made = make_library(tmp_path_factory.mktemp("clusters"), {"places": PLACES, "bare": film(2, 60)})
    video_id = made.video("places").video_id
    spans = [(0.0, 49.5), (49.5, 70.0), (70.0, 100.0)]
    rows = [SceneRow(video_id, "scene", at, *span, at, 1, f"scene {at}", "", "m") for at, span in enumerate(spans)]
    made.additions.discard_leftovers("summaries", "m")
    made.scenes.add({video_id: rows})
    made.additions.complete("summaries", "m", {video_id: 3}, {})
    return made


def clusters_of(places, *titles, most=32, breadth=8):
    environment = environment_of(places, *titles)
    units = np.concatenate([environment.source.in_memory(video.video_id).units for video in environment.videos])
    return chapter_clusters(environment, units, most, breadth, 0), units


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_k_means_finds_groups_that_are_apart():
    random = np.random.default_rng(0)
    directions = unit(random.normal(size=(5, 64)))
    belongs = random.integers(5, size=300)
    vectors = unit(directions[belongs] + 0.02 * random.normal(size=(300, 64)))
    found = k_means(vectors, 5)
    assert sorted(tuple(each.members) for each in found) == sorted(
        tuple(np.flatnonzero(belongs == which)) for which in range(5)
    )
    for cluster in found:
        assert cluster.middle in cluster.members
        centre = vectors[cluster.members].mean(axis=0)
        assert vectors[cluster.middle] @ centre == pytest.approx((vectors[cluster.members] @ centre).max(), abs=1e-6)
    vectors = unit(np.random.default_rng(1).normal(size=(200, 16)))
    first, again, other = ([tuple(each.members) for each in k_means(vectors, 8, seed)] for seed in (3, 3, 4))
    assert first == again != other
    assert sorted(np.concatenate(first)) == list(range(200))
    alike = unit(np.repeat(np.random.default_rng(2).normal(size=(2, 16)), 10, axis=0))
    assert sorted(len(each.members) for each in k_means(alike, 8)) == [10, 10], "as many as there are different vectors"
    assert len(k_means(alike[:1], 8)) == 1


def test_each_part_is_a_cluster_joined_or_halved_to_the_breadth(places):
    clusters, units = clusters_of(places, "places")

    def ranges(clusters):
        return [(int(each.members[0]), int(each.members[-1]) + 1) for each in clusters]

    assert ranges(clusters) == [(0, 50), (50, 70), (70, 100)]
    assert ranges(clusters_of(places, "places", most=2)[0]) == [(0, 50), (50, 100)]
    halves = halve(clusters, units, 0)
    assert 3 < len(halves) <= 6
    assert sorted(at for each in halves for at in each.members) == list(range(100))
    assert all(any(set(half.members) <= set(each.members) for each in clusters) for half in halves)
    assert all(each.middle in each.members for each in (*clusters, *halves))
    clusters, _ = clusters_of(places, "places", "bare", breadth=4)
    assert sorted(at for each in clusters for at in each.members) == list(range(160)) and len(clusters) == 3 + 4
    assert clusters_of(places, "bare")[0] == [], "a video without parts is clustered as usual"


@pytest.mark.slow
def test_what_cannot_be_read_deepens_nothing_and_is_no_guess(library):
    usual = script()
    answer, events, _ = run(
        library, lambda each: {"9": 3} if isinstance(each, JudgeRelevance) else usual(each), max_breadth=8
    )
    assert deepened_s(events) == [] and (answer.status, answer.ledger.invalid_replies) == ("answered", 2)
    answer, _, _ = run(library, lambda each: {"option": "Q"} if isinstance(each, AnswerNotes) else usual(each))
    assert (answer.status, answer.text) == ("invalid", None)

    def half_blind(request):
        late = isinstance(request, DescribeSegment) and request.frames[0].time_s > 600
        return "?" if late else usual(request)

    _, _, model = run(library, half_blind)
    assert 0 < len(read_s(model)) < 32 and max(read_s(model)) <= 600, "frames without a caption are not judged"


@pytest.mark.slow
def test_relevances_are_of_the_clusters_and_on_the_scale():
    film = Video("abcdef0123456789" * 2, "Film", 1.5, 100.0)
    notes = tuple(Note(film.video_id, at_s, at_s + 1, "caption", "A kite.", 0.8) for at_s in (20.0, 50.0))
    judging = JudgeRelevance(question=QUESTION, videos=(film,), notes=notes)
    for relevances, wrong in (
        ({}, "no cluster is there; give one for each of 1, 2"),
        ({"0": 3}, "there is no cluster 0"),
        ({"3": 3}, "there is no cluster 3; the numbers are 1, 2"),
        ([{"cluster": 1, "relevance": 3}] * 2, "cluster is there twice"),
    ):
        with pytest.raises(InvalidReply, match=wrong):
            judging.check(Relevances.model_validate(relevances))
    for level in (0, 4, "high"):
        with pytest.raises(ValueError, match="relevance"):
            Relevances.model_validate({"1": level})
    assert Relevances.model_validate({"Cluster 2": "3"}).clusters[0].cluster == 2
