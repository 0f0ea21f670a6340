"""Moments from a search, an answer, a range or rows of videos: limited, widened, refused where they make no sense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment, MomentChoice, choose_moments


@pytest.fixture(scope="module")
def opened(library: Path) -> Library:
    return Library.open(str(library))


def chosen(library: Library, usual_rows: str | None = None, **choice: Any) -> list[Moment]:
    return choose_moments(library, MomentChoice(**choice), usual_rows)


def write_lines(path: Path, *values: object) -> None:
    path.write_text("\n".join(map(json.dumps, values)))


def times(moments: list[Moment]) -> list[tuple[str, float, float]]:
    return [(each.video.title, each.start_s, each.end_s) for each in moments]


def test_rows_of_whole_videos(opened: Library) -> None:
    shots = chosen(opened, "shots", videos=("film-01",))
    rows = opened.segments(opened.video("film-01").video_id)
    assert times(shots) == [("film-01", row.start_s, row.end_s) for row in rows]
    assert (shots[0].label, shots[0].source) == ("shot 1", "shot")
    lines = chosen(opened, "shots", rows="transcript")
    assert {each.source for each in lines} == {"transcript"}
    assert any("code word" in each.label for each in lines)
    (whole,) = chosen(opened, "shots", rows="videos", videos=("film-02",))
    assert (whole.start_s, whole.end_s) == (whole.video.start_s, whole.video.end_s)


def test_a_video_with_times_is_one_range(opened: Library) -> None:
    (one,) = chosen(opened, "shots", videos=("film-02",), start_s=5.0, end_s=8.0, label="mine")
    assert (one.start_s, one.end_s, one.label, one.source) == (5.0, 8.0, "mine", "range")
    (rest,) = chosen(opened, None, videos=("film-02",), start_s=25.0)
    assert (rest.start_s, rest.end_s) == (25.0, rest.video.end_s)


def test_hits_keep_their_order_and_lie_in_the_times(opened: Library) -> None:
    hits = chosen(opened, search="a blue boat", hits=4, videos=("film-02",), start_s=5.0, end_s=20.0)
    assert len(hits) == 4
    assert all(5.0 <= each.start_s < each.end_s <= 20.0 and each.video.title == "film-02" for each in hits)
    assert hits[0].score is not None
    found = opened.search.hybrid("a blue boat", opened.load_space(None, "text").embed_text(["a blue boat"])[0], k=1)
    assert chosen(opened, search="a blue boat", hits=1)[0].start_s == found[0].time_s


def test_rows_are_cut_to_the_times_and_widened_within_the_video(opened: Library) -> None:
    (shot,) = chosen(opened, "shots", videos=("film-01",), start_s=0.5, end_s=1.5)
    assert (shot.start_s, shot.end_s) == (0.5, 1.5)
    padded = chosen(opened, rows="shots", videos=("film-01",), pad_s=1.0)
    plain = chosen(opened, rows="shots", videos=("film-01",))
    assert padded[0].start_s == 0.0
    assert padded[1].start_s == plain[1].start_s - 1.0
    assert padded[-1].end_s == padded[-1].video.end_s


def test_the_evidence_of_a_trace(opened: Library, tmp_path: Path) -> None:
    video = opened.video("film-03")
    header = {"event": "RunStarted", "version": 2, "question": {"text": "Where is it?"}}
    evidence = [{"video_id": video.video_id, "start_s": 3.0, "end_s": 5.0}]
    trace = tmp_path / "trace.jsonl"
    trace.write_text(
        "\n".join(json.dumps(each) for each in (header, {"event": "Finished", "answer": {"evidence": evidence}}))
    )
    (one,) = chosen(opened, trace=trace)
    assert (one.video.title, one.start_s, one.end_s) == ("film-03", 3.0, 5.0)
    assert (one.label, one.source) == ("Where is it?", "evidence")
    write_lines(trace, header)
    with pytest.raises(UsageError, match="has no answer yet"):
        chosen(opened, trace=trace)
    trace.write_text(
        "\n".join(json.dumps(each) for each in (header, {"event": "Finished", "answer": {"evidence": []}}))
    )
    with pytest.raises(UsageError, match="names no evidence"):
        chosen(opened, trace=trace)


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({}, "got no moments; give --ranges FILE"),
        ({"videos": ("film-01",)}, "got no moments"),
        ({"search": "a", "rows": "shots"}, "got --search and --of; give one of them"),
        ({"rows": "rounds"}, "got --of rounds; it is one of shots"),
        ({"search": "  "}, "got an empty --search"),
        ({"rows": "shots", "start_s": 5.0, "end_s": 5.0}, "give a --to after it"),
        ({"rows": "shots", "start_s": 5000.0}, "nothing was found to export"),
        ({"rows": "captions"}, "nothing was found to export"),
    ],
)
def test_what_makes_no_sense_is_refused(opened: Library, choice: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        chosen(opened, None, **choice)


def test_a_range_ends_where_its_video_ends(opened: Library) -> None:
    film = opened.video("film-01")
    (moment,) = chosen(opened, videos=("film-01",), start_s=1.0, end_s=film.end_s + 400.0)
    assert (moment.start_s, moment.end_s) == (1.0, film.end_s)
