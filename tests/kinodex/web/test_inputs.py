"""Data for the page: of the traces, runs and libraries that the user named, and of nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from kinodex.agent.traces.trace import read_trace
from kinodex.index.errors import TimeOutside
from kinodex.index.rows import Scope, SegmentRow
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import Vectors
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import read_run
from kinodex.jobs.eval.imported_predictions import ImportRequest, import_predictions
from kinodex.jobs.eval.report import report_run
from kinodex.requests import Find
from kinodex.server.responses import NotGiven
from kinodex.web.inputs import classify_inputs
from kinodex.web.run_view import run_view
from kinodex.web.trace_view import shown_frames, trace_view
from kinodex.web.video_list import ROWS, VideoList, natural
from kinodex.web.video_view import frame_detections, opening_s, video_view
from kinodex.web.viewer_api import ViewerApi
from tests.support.libraries.viewer_library import (
    EVIL,
    QUESTION,
    SECONDS,
    SEEN,
    hits_of,
    library_of_films,
    library_of_titles,
)
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.models.tiny_models import TINY, write_model
from tests.support.runs.solved_runs import answer, item, seen, write_run


def test_places_are_sorted_and_a_run_brings_its_library(shown, run, tmp_path):
    trace, other = map(str, shown.traces)
    inputs = classify_inputs([shown.library.uri, trace, str(run), other, trace])
    assert [str(path) for path in inputs.traces] == [trace, other]
    assert [each.folder for each in inputs.runs] == [run]
    assert [each.uri for each in inputs.libraries] == [shown.library.uri, inputs.runs[0].plan.library]
    assert inputs.missing == ()
    folder = tmp_path / "run"
    folder.mkdir()
    for path in run.glob("*.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    library = json.loads((folder / "run.json").read_text())["library"]
    (folder / "run.json").write_text((folder / "run.json").read_text().replace(library, f"{library}-moved"))
    inputs = classify_inputs([str(folder)])
    assert (inputs.libraries, inputs.missing) == ((), (f"{library}-moved",))
    for place in ("nowhere", str(tmp_path)):
        with pytest.raises(UsageError, match="which is no trace, run or library"):
            classify_inputs([place])


def test_a_trace_knows_its_library_shots_and_titles(api, shown, tmp_path):
    trace = api.trace("t0")
    assert trace["library"] == 0
    (spans,) = trace["shots"].values()
    assert spans == [(0.0, 20.0), (20.0, 40.0), (40.0, 60.0)]
    assert api.home["traces"][0]["question"]["text"] == QUESTION.text
    for key in ("t9", "t-1", "r0-0-0", "../trace.jsonl", "t1/../../etc"):
        with pytest.raises(NotGiven):
            api.view(key)
    alone = ViewerApi(classify_inputs([str(shown.traces[0])]))
    assert alone.trace("t0")["library"] is None and alone.curves("t0") == []
    seen_first = shown_frames(trace_view(read_trace(shown.traces[0])))[0].jpeg
    (tmp_path / "other.jsonl").write_text(shown.traces[0].read_text().replace(seen_first, "0" * 16))
    trace = ViewerApi(classify_inputs([str(tmp_path / "other.jsonl"), shown.library.uri])).trace("t0")
    assert trace["library"] is None and trace["shots"] == {}, "pictures that a run did not see are not shown for it"


def test_a_trace_that_another_run_wrote_again_is_read_again(shown, tmp_path):
    place = tmp_path / "trace.jsonl"
    place.write_bytes(shown.traces[0].read_bytes())
    alone = ViewerApi(classify_inputs([str(place)]))
    before = alone.view("t0")
    assert alone.view("t0") is before
    place.write_bytes(place.read_bytes().replace(json.dumps(QUESTION.text).encode(), b'"Who else is there?"'))
    assert alone.view("t0").question["text"] == "Who else is there?"


def test_pictures_are_searched_in_the_chosen_space_and_captions_by_their_words(two_spaces, tmp_path):
    own, other = two_spaces.spaces()
    inputs = classify_inputs([two_spaces.uri])
    for named, space in ((None, own), (other.name, other), (other.digest, other)):
        vector = two_spaces.load_space(space.name, "text").embed_text(["a boat"])[0]
        best = two_spaces.search.frames(vector, Scope(), 24, 2.0, space.digest)
        api = ViewerApi(inputs, named)
        found = hits_of(api.search(0, Find(query="a boat", in_="frames", k=24)))
        assert [(each["start_s"], each["score"]) for each in found] == [
            (each.time_s, pytest.approx(each.score, abs=1e-3)) for each in best
        ]
        assert api.library(0)["searched"] == space.name
    for kind in ("captions", "all"):
        assert SEEN in [each["text"] for each in hits_of(api.search(0, Find(query=SEEN, in_=kind)))]
    none: dict[str, Any] = {"count": 0, "basis": "ranking", "claim": "nothing was found", "groups": []}
    none["notes"] = ()
    assert api.search(0, Find(query="zebra", in_="captions")) == none
    lacking = library_of_titles(tmp_path / "lacking", 1)
    with pytest.raises(UsageError, match="lacking"):
        ViewerApi(classify_inputs([two_spaces.uri, lacking.uri]), other.name)


def test_what_is_said_is_found_where_the_model_of_the_space_is_gone(tmp_path):
    library = library_of(tmp_path / "library", [tiny_film(tmp_path / "pier.mp4", 6, 2)])
    unlike_others = write_model(tmp_path / "gone", TINY, seed=7)  # a process keeps vectors of words by their space
    assert add(library, Vectors(space=unlike_others, text_tower=False)).added == 1
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    api = ViewerApi(classify_inputs([library.uri]), library.spaces()[1].digest)
    for kind in ("speech", "words"):
        assert api.search(0, Find(query="boat", in_=kind))["groups"] == []
    with pytest.raises(Exception, match="gone"):
        api.search(0, Find(query="boat", in_="frames"))


# Videos of a library in the orders of its page, and one video as its page draws it.


def titles(page) -> list[str]:
    return [row["title"] for row in page["rows"]]


def test_videos_come_in_pages_and_by_all_words_of_title_or_place(many, shown):
    videos, count = VideoList(many), ROWS + 5
    first, last = videos.page(), videos.page(start=ROWS)
    assert first["count"] == last["count"] == count
    assert (len(first["rows"]), len(last["rows"])) == (ROWS, 5)
    assert titles(first)[0] == "film 0000" and titles(last)[-1] == f"film {count - 1:04}"
    assert titles(videos.page("0007 FILM")) == ["film 0007"]
    assert videos.page("film.mp4")["count"] == count and videos.page("film zebra")["count"] == 0
    (row,) = VideoList(shown.library).page("film.mp4")["rows"]
    assert (row["frames"], row["speech_lines"]) == (SECONDS, 1)
    assert row["counts"] == [
        f"{SECONDS} frames",
        "1 line of speech",
        "2 lines of text on screen",
        "3 captions",
        "1 detection",
    ]


def test_videos_are_sorted_as_people_count_by_length_and_by_age(tmp_path):
    films = library_of_films(tmp_path / "films", ["Harbour 10", "harbour 9", "Bakery"])
    videos = VideoList(films)
    assert titles(videos.page()) == ["Bakery", "harbour 9", "Harbour 10"]
    row = replace(films.videos()[0], video_id="f" * 32, title="long", frames=0, segments=0, speech_lines=0)
    films.writer.complete([replace(row, duration_s=9999.0, ingested_at=row.ingested_at + timedelta(hours=1))])
    assert titles(videos.page())[-1] == "long"  # noticed without opening the library again
    assert titles(videos.page(order="length"))[0] == titles(videos.page(order="newest"))[0] == "long"
    with pytest.raises(UsageError, match="title, length, newest"):
        videos.page(order="codec")
    assert sorted(["b", "part 10", "Part 2", "10", "9a"], key=natural) == ["9a", "10", "b", "Part 2", "part 10"]


def test_a_video_comes_in_columns_with_frames_by_label_and_boxes_frame_by_frame(shown):
    view = video_view(shown.library, shown.video_id)
    assert view["frame_nos"] == view["times_s"] == list(range(SECONDS))
    assert view["segments"][1] == {"start_s": 20.0, "end_s": 40.0, "kind": "shot"}
    written = next(each for each in view["lines"] if each["kind"] == "screen_text")
    assert (written["label"], written["rows"][1]["start_s"], written["rows"][1]["text"]) == (
        "text on screen",
        50.0,
        "THE END",
    )
    assert [(each["level"], each["title"]) for each in view["contents"]] == [
        ("chapter", "The harbour"),
        ("scene", "Scene of boats 0"),
        ("scene", "Scene of boats 1"),
        ("chapter", ""),
        ("scene", "Scene of boats 2"),
    ]
    assert view["detected"] == {f"shoe {EVIL}": [3]}
    (box,) = frame_detections(shown.library, shown.video_id, 3)
    assert box.box == (0.25, 0.25, 0.5, 0.75)
    assert frame_detections(shown.library, shown.video_id, 4) == []
    with pytest.raises(TimeOutside):
        frame_detections(shown.library, shown.video_id, 999)
    times_s = np.arange(0.0, 60.0)
    shots = [SegmentRow("v", at, *span, "shot") for at, span in enumerate([(0.0, 10.0), (10.0, 50.0), (50.0, 60.0)])]
    opens_at_s = [opening_s(times_s, shots), opening_s(times_s, []), opening_s(times_s[:0], shots)]
    assert opens_at_s == [30.0, 29.0, None], "in the middle of its longest shot"


# A run of `kinodex eval`: standings, answers, truth.


def test_a_run_shows_every_answer_and_has_its_traces(run):
    api = ViewerApi(classify_inputs([str(run)]))
    report = api.run(0)
    assert [len(each["answers"]) for each in report["questions"]] == [len(report["contenders"])] * 4
    at = report["contenders"].index("uniform")
    assert all(each["answers"][at]["has_trace"] for each in report["questions"])
    trace = api.trace(f"r0-{at}-3")
    assert trace["trace"].question["text"] == report["questions"][3]["question"].text
    assert trace["truth"]["option"] == 0 and trace["truth"]["evidence"][0]["end_s"] == 2.0
    assert trace["library"] == 0


def test_a_run_shows_imported_answers_as_such_and_cited_evidence_apart_from_shown(tmp_path):
    items = [item(name, f"v{name}", evidence=((1.0, 2.0),)) for name in "ab"]
    records = [answer(name, evidence=(seen(0, 3, f"v{name}"),), evidence_cited=name == "a") for name in "ab"]
    run = write_run(tmp_path / "run", items, records)
    report_run(run)  # the page does not show its file, which is older than the import
    (tmp_path / "theirs.json").write_text(json.dumps({"a": "A", "b": "B"}))
    import_predictions(run, ImportRequest(tmp_path / "theirs.json"))
    shown = run_view(read_run(run))
    assert shown["contenders"] == ["eea", "theirs (imported)"]
    own, theirs = shown["standings"]
    assert (own["imported"], own["cited"].mean, own["shown"].mean) == (False, 0.5, 1.0)
    assert (theirs["imported"], theirs["cited"], theirs["costs"]) == (True, None, {})
    assert [[each["score"] for each in question["answers"]] for question in shown["questions"]] == [[1, 1], [1, 0]]
