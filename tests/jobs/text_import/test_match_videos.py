"""Texts matched to videos by title, file and id; names of several videos, and several texts of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kinodex.index.library import Library
from kinodex.index.sweep import audit
from kinodex.jobs.add.import_text import ImportResult, import_text
from kinodex.jobs.add.text_files import ReadResult, TextLine, VideoText
from tests.support.libraries.agent_library import make_library


def texts(videos: Mapping[str, Sequence[str]]) -> list[ReadResult]:
    return [
        VideoText(name, tuple(TextLine(float(at), at + 1.0, each) for at, each in enumerate(said)))
        for name, said in videos.items()
    ]


def said(library: Library, name: str) -> list[tuple[float, float, str]]:
    return [(row.start_s, row.end_s, row.text) for row in library.transcript(library.video(name).video_id)]


def bring(library: Library, videos: Mapping[str, Sequence[str]], model: str = "someone", **rest) -> ImportResult:
    return import_text(library, "speech", model, "here", texts(videos), {}, **rest)


def test_text_goes_to_the_videos_that_are_there(tmp_path):
    library = make_library(tmp_path, {"one": ["boat"] * 3, "two": ["car"] * 5})
    by_id = library.video("two").video_id
    done = bring(library, {"one": ["a", "b", "c", "d", "e"], by_id: ["z"], "three": ["new"]})
    assert (done.made, done.left_out, done.report.rows) == (1, 0, 5)
    assert said(library, "one") == [(0.0, 1.0, "a"), (1.0, 2.0, "b"), (2.0, 3.0, "c")]
    assert said(library, "two") == [(0.0, 1.0, "z")]
    (late,) = [each.problem for each in done.report.outcomes if each.problem]
    assert late == "2 of 5 lines lie outside it, 0 s to 3 s"
    assert library.video("one").frames == 3
    assert audit(library).problems == ()


def test_a_name_of_two_videos_and_two_texts_of_one_are_failures(tmp_path):
    library = make_library(tmp_path, {"a": ["boat"], "dir/a.mp4": ["car"], "b": ["sea"]})
    video_id = library.video("b").video_id
    done = bring(library, {"a": ["which?"], "b": ["first"], video_id: ["second"]})
    assert [(each.title, each.error_class) for each in done.report.outcomes] == [
        ("a", "UnknownVideo"),
        (video_id, "RepeatedVideo"),
        ("b", None),
    ]
    assert said(library, "b") == [(0.0, 1.0, "first")]


def test_an_accent_is_the_same_letter_however_it_is_written(tmp_path):
    library = make_library(tmp_path, {"Cafe\u0301": ["boat"] * 3})
    done = bring(library, {"Caf\u00e9": ["a"], "Rene\u0301": ["b"]})
    assert (done.made, said(library, "Cafe\u0301")) == (1, [(0.0, 1.0, "a")])
    again = bring(library, {"Ren\u00e9": ["c"]}, model="other")
    assert (again.made, again.report.rows) == (0, 1)
