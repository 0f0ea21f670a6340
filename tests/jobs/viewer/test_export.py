"""One file holds the inputs, escaped, with as many pictures and traces as fit."""

from __future__ import annotations

import re

from kinodex.agent.trace import read_trace
from kinodex.web.inputs import ViewerApi, classify_inputs
from kinodex.web.page import as_json, one_file
from kinodex.web.trace_view import shown_frames, trace_view
from tests.support.libraries.viewer_library import EVIL, held_in, picture


def test_one_file_holds_all_and_escapes_it(shown):
    page = one_file(ViewerApi(classify_inputs([str(shown.traces[0]), shown.library.uri])))
    text = page.text
    assert "<img" not in text
    assert text.count("</script>") == text.count("<script") == 3
    held = held_in(text)
    assert EVIL in held["data"]["home"]["traces"][0]["question"]["text"]
    frames = shown_frames(trace_view(read_trace(shown.traces[0])))
    assert len(held["pictures"]) == len(frames) > 5
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", text)


def test_one_file_of_a_library_has_a_frame_of_each_segment_and_all_words(shown):
    alone = ViewerApi(classify_inputs([shown.library.uri]))
    held = held_in(one_file(alone).text)
    assert list(held["pictures"]) == [f"0/{shown.video_id}/{frame_no}" for frame_no in (10, 30, 50)]
    (row,) = held["data"]["libraries/0/videos"]
    assert row["title"] == f"film {EVIL}" and row["poster"] in (10, 30, 50)
    video = held["data"][f"libraries/0/videos/{shown.video_id}"]
    assert video["frame_nos"] == [10, 30, 50] and len(video["captions"]) == 3 and len(video["transcript"]) == 1
    few = one_file(alone, picture_bytes=2 * len(picture((200, 30, 30))) + 100)
    assert few.pictures_left_out == 1


def test_traces_of_a_run_as_many_as_fit(run):
    api = ViewerApi(classify_inputs([str(run)]))
    assert one_file(api).traces_left_out == 0
    small = one_file(api, data_bytes=len(as_json(api.view("r0-0-0"))) + 1)
    questions = held_in(small.text)["data"]["runs/0"]["questions"]
    kept = [answer["has_trace"] for each in questions for answer in each["answers"]]
    assert kept == [True] + [False] * small.traces_left_out
