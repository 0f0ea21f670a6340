"""VideoTree: its tree of captions, its request, and clusters of frames."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.agent.limits.budget import Budget
from kinodex.agent.requests.answer import AnswerNotes
from kinodex.agent.requests.describe import DescribeSegment
from kinodex.agent.requests.tree import DiscoverQueries
from kinodex.agent.variants.videotree.k_means import k_means
from kinodex.agent.variants.videotree.requests import JudgeRelevance
from tests.support.libraries.agent_library import environment_of, film, make_library
from tests.support.runs.kite_runs import asked

CAPTIONS = film(1, 600)


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


def run(library, reply, budget=None, **settings):
    return asked(
        environment_of(library).without_shared_captions(), reply, "videotree", budget=budget, settings=settings
    )


def sizes(found):
    return [len(request.notes) for request in found.asked(JudgeRelevance)]


def deepened_s(found):
    (deepened,) = found.acted("deepen")
    return [note.start_s for note in deepened.notes]


@pytest.mark.slow
def test_it_doubles_the_clusters_until_enough_are_highly_relevant(library):
    assert sizes(run(library, script(lambda number, note: 3 if number <= 4 else 1))) == [8]
    assert sizes(run(library, script(lambda number, note: 3 if number % 4 == 0 else 2))) == [8, 16]
    answer = (whole := run(library, script(), budget=Budget(rounds=1))).answer
    assert (answer.status, answer.reason, answer.text, sizes(whole)) == ("budget_exhausted", "rounds", "red", [8])
    for frames in (10, 20):  # enough for some clusters, and for a part of the depth
        found = run(library, script(lambda number, note: 3), budget=Budget(frames=frames))
        assert (found.answer.status, found.answer.reason, found.answer.text) == ("budget_exhausted", "frames", "red")
        assert found.answer.ledger.frames == frames
    assert any("were not asked for" in event.problem for event in found.acted())


@pytest.mark.slow
def test_a_relevance_deepens_the_cluster_it_was_given_for(library):
    """The cluster judged fifth in the order of time, and no other: the published code took another one."""
    environment = environment_of(library)
    clusters = k_means(environment.source.in_memory(environment.videos[0].video_id).units, 8)
    for relevance, below in ((1, 0), (2, 4), (3, 4 + 4 * 4)):
        chosen: list[float] = []

        def fifth(number, note, relevance=relevance, chosen=chosen):
            if number == 5:
                chosen.append(note.start_s)
            return relevance if number == 5 else 1

        found = deepened_s(run(library, script(fifth), max_breadth=8))
        (cluster,) = [each for each in clusters if float(each.middle) == chosen[-1]]
        assert below / 2 <= len(found) <= below and set(found) <= set(map(float, cluster.members)), relevance


@pytest.mark.slow
def test_the_answer_comes_from_captions_in_order_each_once(library):
    found = run(library, script(lambda number, note: 3 if number <= 3 else 2))
    assert sizes(found) == [8, 16, 32]
    (asking,) = found.asked(AnswerNotes)
    times_s = [note.start_s for note in asking.notes]
    assert times_s == sorted(set(times_s)) and set(deepened_s(found)) <= set(times_s)
    assert 32 < len(times_s) <= 32 * 4 + 3 * 16
    for request in found.asked(JudgeRelevance):
        judged_s = [note.start_s for note in request.notes]
        assert judged_s == sorted(set(judged_s)), "in the order of time"
    assert all(note.text == CAPTIONS[int(note.start_s)] for note in asking.notes)
    assert {request.frames[0].time_s for request in found.asked(DescribeSegment)} >= set(times_s)


def test_several_videos_are_one_tree(two_films):
    both = run(two_films, script(), max_breadth=8)
    assert len({note.video_id for note in both.asked(AnswerNotes)[0].notes}) == 2
    assert both.asked(DiscoverQueries) == []
    usual = script()
    one = run(
        two_films,
        lambda each: {"queries": ["red kite desert"]} if isinstance(each, DiscoverQueries) else usual(each),
        videos=1,
        max_breadth=8,
    )
    (asking,) = one.asked(AnswerNotes)
    assert [video.title for video in asking.videos] == ["second"] and len({note.video_id for note in asking.notes}) == 1


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
