"""Moments: chosen from a library or read from a file of ranges, and as rows."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kinodex.index.library import Library
from kinodex.index.rows import SegmentRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.clips import export_clips
from kinodex.jobs.export.coco import export_coco
from kinodex.jobs.export.cutting import CutWay
from kinodex.jobs.export.fiftyone import export_fiftyone
from kinodex.jobs.export.frames import export_frames
from kinodex.jobs.export.joined_clips import export_joined
from kinodex.jobs.export.label_studio import export_label_studio
from kinodex.jobs.export.moment_choice import MomentChoice, choose_moments
from kinodex.jobs.export.moment_rule import AS_FOUND, PLAYED, MomentRule, arranged
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.export.range_files import read_ranges
from kinodex.jobs.export.tables import csv_text
from kinodex.jobs.export.target_folder import NOTE, UNFINISHED, target_folder
from tests.support.libraries.moments import video
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.scenes.chapters import add_chapters


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
    lines = chosen(opened, "shots", rows="speech")
    assert {each.source for each in lines} == {"speech"}
    assert any("code word" in each.label for each in lines)
    (whole,) = chosen(opened, "shots", rows="videos", videos=("film-02",))
    assert (whole.start_s, whole.end_s) == (whole.video.start_s, whole.video.end_s)


def test_hits_keep_their_order_and_lie_in_the_times(opened: Library) -> None:
    hits = chosen(opened, search="a blue boat", hits=4, videos=("film-02",), start_s=5.0, end_s=20.0)
    assert len(hits) == 4
    assert all(5.0 <= each.start_s < each.end_s <= 20.0 and each.video.title == "film-02" for each in hits)
    assert hits[0].score is not None
    found = opened.search.hybrid("a blue boat", opened.load_space(None, "text").embed_text(["a blue boat"])[0], k=1)
    assert chosen(opened, search="a blue boat", hits=1)[0].start_s == found[0].time_s


HITS = ((6.0, 7.0), (20.0, 20.0), (9.0, 9.5), (29.5, 30.0))
RULES: tuple[tuple[MomentRule, list[tuple[float, float]]], ...] = (
    (AS_FOUND, [*HITS]),
    (MomentRule(1.0), [(5.0, 8.0), (19.0, 21.0), (8.0, 10.5), (28.5, 30.0)]),
    (MomentRule(1.0, 0.0), [(5.0, 10.5), (19.0, 21.0), (28.5, 30.0)]),
    (MomentRule(1.0, 8.5), [(5.0, 30.0)]),
    (MomentRule(1.0, -1.0), [(5.0, 8.0), (19.0, 21.0), (8.0, 10.5), (28.5, 30.0)]),
    # Cuts at 0, 4, 9.8 and 30: an end goes to one that lies in the padding, or at most 1.5 s behind it.
    (MomentRule(1.0, None, snap=True), [(4.0, 8.0), (19.0, 21.0), (8.0, 9.8), (28.5, 30.0)]),
    (MomentRule(0.0, 0.0, snap=True), [(6.0, 7.0), (20.0, 20.0), (9.0, 9.8), (29.5, 30.0)]),
    (PLAYED, [(4.0, 11.5), (18.0, 22.0), (27.5, 30.0)]),
)


def test_one_rule_pads_joins_and_ends_at_cuts() -> None:
    film = replace(video(), duration_s=30.0)
    cuts_s = (0.0, 4.0, 9.8, 30.0)
    shots = [SegmentRow(film.video_id, at, *span_s, "shot") for at, span_s in enumerate(pairwise(cuts_s))]
    hits = [Moment(film, start_s, end_s, f"hit {start_s:g}", start_s) for start_s, end_s in HITS]
    for rule, expected in RULES:
        assert [(each.start_s, each.end_s) for each in arranged(hits, rule, lambda _: shots)] == expected, rule
    joined, *_ = arranged(hits, PLAYED, lambda _: shots)
    assert (joined.label, joined.score, joined.source) == ("hit 6 / hit 9", 9.0, "range")


def test_the_evidence_of_a_trace(opened: Library, tmp_path: Path) -> None:
    video = opened.video("film-03")
    header = {"event": "RunStarted", "version": 2, "question": {"text": "Where is it?"}}
    evidence = [{"video_id": video.video_id, "start_s": 3.0, "end_s": 5.0}]
    trace = tmp_path / "trace.jsonl"
    write_lines(trace, header, {"event": "Finished", "answer": {"evidence": evidence}})
    (one,) = chosen(opened, traces=(trace,))
    assert (one.video.title, one.start_s, one.end_s) == ("film-03", 3.0, 5.0)
    assert (one.label, one.source) == ("Where is it?", "evidence")
    write_lines(trace, header)
    with pytest.raises(UsageError, match="has no answer yet"):
        chosen(opened, traces=(trace,))
    for wrong in ({"start_s": math.nan}, {"end_s": "x"}, {"end_s": 1.0}):
        write_lines(trace, header, {"event": "Finished", "answer": {"evidence": [evidence[0] | wrong]}})
        with pytest.raises(UsageError, match="record it again"):
            chosen(opened, traces=(trace,))
    with pytest.raises(UsageError, match="got --join nan"):
        chosen(opened, "shots", join_s=math.nan)
    write_lines(trace, header, {"event": "Finished", "answer": {"evidence": []}})
    with pytest.raises(UsageError, match="names no evidence"):
        chosen(opened, traces=(trace,))


Export = Callable[[Library, Sequence[Moment], Path], Any]
KINDS: dict[str, tuple[str, Export, Export]] = {
    "clips": (
        "clips.csv",
        lambda library, moments, out: export_clips(library, moments, out, CutWay()),
        lambda library, moments, out: export_clips(library, moments, out, CutWay(exact=True)),
    ),
    "joined": ("clips.csv", export_joined, export_joined),
    "frames": ("frames.csv", export_frames, lambda library, moments, out: export_frames(library, moments, out, 1)),
    "coco": (
        "annotations.json",
        export_coco,
        lambda library, moments, out: export_coco(library, moments, out, min_score=0.01),
    ),
    "fiftyone": (
        "labels.json",
        lambda library, moments, out: export_fiftyone(moments, out),
        lambda library, moments, out: export_fiftyone(moments, out, {moments[0].video.video_id: [0.0, 3.0, 9.0]}),
    ),
    "label-studio": (
        "tasks.json",
        lambda library, moments, out: export_label_studio(library, moments, out, None, boxes=False),
        lambda library, moments, out: export_label_studio(library, moments, out, None, boxes=True),
    ),
}
"""For each: the file that is written last, the export, and the same with another setting."""
CHANGES: dict[str, dict[str, Any]] = {
    "labels": {"label": "dog"},
    "scores": {"score": 0.8},
    "sources": {"source": "shot"},
    "speakers": {"speaker": "B"},
    "ranges": {"end_s": 3.5},
    "videos": {},
    "settings": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_resume_with_another_input_is_refused_and_says_which(kind: str, described: Path, tmp_path: Path) -> None:
    library = Library.open(str(described))
    last, export, with_other_setting = KINDS[kind]
    film = library.video("film-02")
    begun = Moment(film, film.start_s, film.start_s + 4.0, "cat", 0.5, "visual", "A")
    in_the_way = tmp_path / ".unfinished" / last
    (in_the_way / "x").mkdir(parents=True)
    with pytest.raises(OSError, match=last):
        export(library, [begun], tmp_path)
    (in_the_way / "x").rmdir()
    in_the_way.rmdir()
    for what, change in CHANGES.items():
        moment = replace(begun, **change)
        if what == "videos":
            moment = replace(begun, video=replace(film, title="another"))
        if what != "settings":
            with pytest.raises(UsageError, match=rf"with another .*\b{what}\b"):
                export(library, [moment], tmp_path)
        elif with_other_setting is not export:
            with pytest.raises(UsageError, match="with another"):
                with_other_setting(library, [begun], tmp_path)
    export(library, [begun], tmp_path)
    assert (tmp_path / last).is_file()


MISTAKES: tuple[tuple[str, str, str], ...] = (
    ("a.csv", "video,start_s,end_s\nfilm-01,1,2\nfilm-01,5,4\n", r"a\.csv, line 3: it ends at 4 s, before"),
    ("a.csv", "video,start_s,end_s\nfilm-99,1,2\n", r"line 2: got video 'film-99'"),
    ("a.csv", "video,start_s,end_s\nfilm,1,2\n", r"line 2: got video 'film'"),
    ("a.csv", "video,start_s\nfilm-01,1\n", "it has no end_s"),
    ("a.csv", "video,start_s,end_s\nfilm-01,soon,2\n", "start_s: got the time 'soon'"),
    ("a.csv", "video,start_s,end_s\nfilm-01,nan,2\n", "start_s: got the time 'nan'"),
    ("a.csv", "start_s,end_s\n1,2\n", "it names no video"),
    ("a.csv", "video,start_s,end_s\n", "which holds no range"),
    ("a.jsonl", '{"video": "film-01"\n', r"a\.jsonl, line 1: is no JSON"),
    ("a.jsonl", "[1, 2]\n", "is no object"),
    ("a.jsonl", '{"video": "film-01", "start_s": 1, "end_s": 2, "label": "\\ud800"}', "line 1: .*surrogates"),
)


def test_a_mistake_is_named_with_its_line(opened: Library, tmp_path: Path) -> None:
    for name, text, says in MISTAKES:
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError, match=says):
            read_ranges(tmp_path / name, opened)
    with pytest.raises(UsageError, match="cannot read the ranges"):
        read_ranges(tmp_path / "missing.csv", opened)


def test_no_label_is_a_formula_of_a_spreadsheet_and_each_is_read_again(opened: Library, tmp_path: Path) -> None:
    labels = ("=1+1", "+49", "-5", "@sum", "'=a", "''+b", "'quoted'", "plain", "a = b", "\ttab")
    moments = [Moment(opened.video("film-02"), 0.0, 1.0, label) for label in labels]
    path, text = tmp_path / "ranges.csv", csv_text(moments)
    path.write_text(text, encoding="utf-8", newline="")
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t")]
    assert [each.label for each in read_ranges(path, opened)] == list(labels)


def test_chapters_and_scenes_in_text_exports(kinodex, tmp_path):
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aa", 40, 1))
    assert kinodex("export", "vtt", library.uri, "--of", "chapters").code != 0
    add_chapters(library, "aa", 40.0)
    written = kinodex("export", "vtt", library.uri, "--of", "chapters").out
    assert "00:00:00.000 --> 00:00:20.000\nThe harbour\n" in written
    assert "00:00:20.000 --> 00:00:40.000\nchapter 2\n" in written
    lines = [json.loads(line) for line in kinodex("export", "jsonl", library.uri, "--of", "scenes").out.splitlines()]
    assert [(line["label"], line["start_s"], line["source"]) for line in lines] == [
        ("Scene of boats 0", 0.0, "scene"),
        ("Scene of boats 1", 10.0, "scene"),
        ("Scene of boats 2", 20.0, "scene"),
    ]
    for form in ("srt", "csv", "edl"):
        assert "THE HARBOUR" in kinodex("export", form, library.uri, "--of", "chapters").out.upper()


WANTED = {"size": 3}


def text(path: Path) -> None:
    path.write_text("text")


def plan() -> dict[str, int]:
    return {"parts": 2}


def test_files_appear_at_the_end_alone(tmp_path: Path) -> None:
    with target_folder(tmp_path / "out", WANTED, plan) as target:
        assert target.plan == {"parts": 2}
        target.write("data/one", text)
        target.write("card", text)
        assert target.has("data/one") and not target.has("data/two")
        assert [entry.name for entry in (tmp_path / "out").iterdir()] == [UNFINISHED]
        target.finish("data", "card")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "out",
        "out/card",
        "out/data",
        "out/data/one",
    ]


def test_an_unfinished_folder_keeps_its_plan_and_its_files_and_is_finished(tmp_path: Path) -> None:
    def half(path: Path) -> None:
        path.write_text("te")
        raise OSError("no room")

    with target_folder(tmp_path, WANTED, plan) as target:
        target.write("data/one", text)
        with pytest.raises(OSError, match="no room"):
            target.write("card", half)
        assert not target.has("card")
    with target_folder(tmp_path, WANTED, lambda: {"parts": 9}) as target:
        assert (target.plan, target.has("data/one")) == ({"parts": 2}, True)
        target.write("card", text)
        (target.work / "data").rename(tmp_path / "data")  # it died while it finished
    with target_folder(tmp_path, WANTED, plan) as target:
        assert target.has("data/one")
        target.finish("data", "card")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["card", "data"]


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with (
        target_folder(tmp_path / "a", WANTED, plan),
        pytest.raises(UsageError, match="which another export writes at this moment"),
        target_folder(tmp_path / "a", WANTED, plan),
    ):
        pass
    with (
        pytest.raises(UsageError, match="an unfinished export with another size"),
        target_folder(tmp_path / "a", {"size": 4}, plan),
    ):
        pass
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").write_text("")
    with pytest.raises(UsageError, match=r"which is not empty \(mine\)"), target_folder(tmp_path / "b", WANTED, plan):
        pass
    with pytest.raises(UsageError, match="which is a file"), target_folder(tmp_path / "b" / "mine", WANTED, plan):
        pass
    (tmp_path / "c" / UNFINISHED).mkdir(parents=True)  # it was killed before it wrote its note
    with target_folder(tmp_path / "c", WANTED, plan) as target:
        assert (target.work / NOTE).is_file() and target.plan == plan()
