"""VCA without a tree: the policy names the frames."""

from __future__ import annotations

import pytest

from kinodex.agent.limits import Budget
from kinodex.agent.requests.tree import Decide
from kinodex.agent.trace import Acted, Remembered
from kinodex.agent.variants.vca import ChooseFrames
from tests.support.libraries.agent_library import environment_of, explorer, film, make_library
from tests.support.runs.vca_runs import FILM, TWO_FILMS, of, run


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return make_library(tmp_path_factory.mktemp("vca"), FILM)


@pytest.fixture(scope="module")
def two_films(tmp_path_factory):
    return make_library(tmp_path_factory.mktemp("films"), TWO_FILMS)


def looking_at(*times_s, video=None):
    def script(request):
        if isinstance(request, ChooseFrames):
            return {"times_s": times_s, "video": video}
        return explorer(request)

    return script


def test_without_tree_search_the_policy_names_the_frames(library):
    answer, events, model = run(library, looking_at(425.3, 425.3, 90), Budget(rounds=3), tree_search=False)
    assert [type(request) for request in model.requests] == [ChooseFrames, ChooseFrames, Decide]
    first, second, last = of(Remembered, events)
    assert [frame.time_s for frame in first.added] == [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
    assert [frame.time_s for frame in second.added] == [90.0, 425.0, 426.0]
    assert [frame.time_s for frame in last.added] == [89.0, 424.0, 427.0]
    assert [time_s for _, time_s in model.asked(ChooseFrames)[1].seen][6:] == [90.0, 425.0, 426.0]
    assert [event.action for event in of(Acted, events)] == ["look"] * 3
    assert (answer.status, answer.ledger.frames) == ("budget_exhausted", 12)
    assert (model.requests[-1].candidates, model.requests[-1].must_answer) == ((), True)


def test_without_tree_search_the_answer_may_come_at_any_time(library):
    def at_once(request):
        return {"option": "B", "evidence": [2]} if isinstance(request, ChooseFrames) else explorer(request)

    answer, _, _ = run(library, at_once, tree_search=False)
    assert (answer.status, answer.text, answer.rounds) == ("answered", "red", 1)
    assert [(each.start_s, each.end_s) for each in answer.evidence] == [(200.0, 201.0)]


@pytest.mark.parametrize("said", [{"times_s": [-5]}, "?"])
def test_without_tree_search_two_bad_choices_lead_to_the_best_answer_so_far(library, said):
    def script(request):
        return said if isinstance(request, ChooseFrames) else explorer(request)

    answer, _, model = run(library, script, tree_search=False)
    assert (answer.status, answer.option, answer.rounds) == ("answered", 0, 1)
    assert [type(each) for each in model.requests] == [ChooseFrames, ChooseFrames, Decide]


def test_without_tree_search_a_model_that_gives_up_is_shown_the_rest(library):
    def script(request):
        return {"action": "insufficient_evidence"} if isinstance(request, ChooseFrames) else explorer(request)

    answer, events, _ = run(library, script, Budget(rounds=2), tree_search=False)
    assert (answer.status, answer.rounds, answer.ledger.declined) == ("budget_exhausted", 2, 2)
    first, then = of(Remembered, events)
    assert len(first.added) == len(then.added) and not {*first.added} & {*then.added}


def test_without_tree_search_a_video_has_to_be_named_and_is_looked_at(two_films):
    first = next(video for video in environment_of(two_films).videos if video.title == "first")
    script = looking_at(10, 20, video=first.video_id[:12])
    _, events, _ = run(two_films, script, Budget(rounds=2), tree_search=False)
    begun, then = of(Remembered, events)
    assert first.video_id not in {frame.video_id for frame in begun.added}
    assert [(frame.video_id, frame.time_s) for frame in then.added] == [(first.video_id, 10), (first.video_id, 20)]


def test_without_tree_search_a_short_video_ends_when_it_was_seen(tmp_path):
    short = make_library(tmp_path / "short", {"short": film(5, 9)})
    answer, _, model = run(short, looking_at(0, 1, 2), Budget(), tree_search=False)
    assert (answer.status, answer.ledger.frames) == ("answered", 9)
    assert isinstance(model.requests[-1], Decide)
