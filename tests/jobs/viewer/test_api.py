"""Data for the page: of the inputs, and of nothing else."""

from __future__ import annotations

import json

import pytest

from kinodex.agent.trace import read_trace
from kinodex.guards import NotGiven
from kinodex.jobs.errors import UsageError
from kinodex.web.inputs import ViewerApi, classify_inputs
from kinodex.web.search import SearchRequest
from kinodex.web.trace_view import shown_frames, trace_view
from tests.support.libraries.viewer_library import QUESTION, SCENE_S, hits_of, library_of_titles


def test_a_search_gives_frames_within_its_filters(api, shown):
    hits = hits_of(api.search(0, SearchRequest("red shoes in the city", "frames")))
    assert 0 <= hits[0]["start_s"] < SCENE_S and hits[0]["frame_no"] == hits[0]["start_s"]
    late = hits_of(api.search(0, SearchRequest("red shoes in the city", "frames", shown.video_id, 30.0, 50.0)))
    assert late and all(30 <= hit["start_s"] < 50 for hit in late)
    (line,) = hits_of(api.search(0, SearchRequest("sea", "transcript")))
    assert line["text"].startswith("we are at sea") and 20 <= line["frame_no"] < 25


def test_a_trace_knows_its_library_shots_and_titles(api):
    trace = api.trace("t0")
    assert trace["library"] == 0
    (spans,) = trace["shots"].values()
    assert spans == [(0.0, 20.0), (20.0, 40.0), (40.0, 60.0)]
    assert api.home["traces"][0]["question"]["text"] == QUESTION.text


def test_a_trace_that_another_run_wrote_again_is_read_again(shown, tmp_path):
    place = tmp_path / "trace.jsonl"
    place.write_bytes(shown.traces[0].read_bytes())
    alone = ViewerApi(classify_inputs([str(place)]))
    before = alone.view("t0")
    assert alone.view("t0") is before
    place.write_bytes(place.read_bytes().replace(json.dumps(QUESTION.text).encode(), b'"Who else is there?"'))
    assert alone.view("t0").question["text"] == "Who else is there?"


def test_a_trace_without_its_library_has_no_pictures(shown):
    alone = ViewerApi(classify_inputs([str(shown.traces[0])]))
    assert alone.trace("t0")["library"] is None
    assert alone.curves("t0") == []


def test_pictures_that_a_run_did_not_see_are_not_shown_for_it(shown, tmp_path):
    records = read_trace(shown.traces[0])
    text = shown.traces[0].read_text().replace(shown_frames(trace_view(records))[0].jpeg, "0" * 16)
    (tmp_path / "other.jsonl").write_text(text)
    trace = ViewerApi(classify_inputs([str(tmp_path / "other.jsonl"), shown.library.uri])).trace("t0")
    assert trace["library"] is None and trace["shots"] == {}


@pytest.mark.parametrize("key", ["t9", "t-1", "r0-0-0", "../trace.jsonl", "t1/../../etc"])
def test_a_key_of_no_input_opens_nothing(api, key):
    with pytest.raises(NotGiven):
        api.view(key)


def test_a_space_that_one_of_the_libraries_lacks_is_refused(two_spaces, tmp_path):
    lacking = library_of_titles(tmp_path / "lacking", 1)
    with pytest.raises(UsageError, match="lacking"):
        ViewerApi(classify_inputs([two_spaces.uri, lacking.uri]), two_spaces.spaces()[1].name)
