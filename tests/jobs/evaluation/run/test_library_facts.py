"""The evidence of a benchmark on a film whose timestamps begin at 1,000 s, and other facts from the library."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from kinodex.index.library import Library
from kinodex.jobs.eval.folder import read_items, read_plan, read_results
from kinodex.jobs.eval.report import report_run
from kinodex.jobs.eval.samples import complete_samples
from tests.support.command import Kinodex
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.runs.solved_runs import item

START_S = 1000.0
LONG_S = 8


@pytest.fixture(scope="module")
def broadcast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `library` of one transport stream that begins at 1,000 s, and questions about it."""
    folder = tmp_path_factory.mktemp("broadcast")
    film = tiny_film(folder / "news.mp4", LONG_S, 3)
    ffmpeg("-i", film, "-c", "copy", "-output_ts_offset", str(START_S), "-muxdelay", "0", folder / "news.ts")
    library_of(folder / "library", [folder / "news.ts"])
    asked = {"video": "news.ts", "question": "Which kite?", "options": ["red", "blue"], "answer": "red"}
    rows = [
        {**asked, "id": "inside", "evidence": [[2.0, 4.0]]},
        {**asked, "id": "outside", "evidence": [[START_S + 2.0, START_S + 4.0]]},
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return folder


@needs_ffmpeg
def test_evidence_of_a_stream_that_begins_late_is_found_where_a_player_shows_it(
    broadcast: Path, kinodex: Kinodex, tmp_path: Path
) -> None:
    (video,) = Library.open(str(broadcast / "library")).videos()
    assert video.start_s == 0.0
    assert video.zero_s == pytest.approx(START_S, abs=1.0)
    questions, out = broadcast / "questions.jsonl", tmp_path / "run"
    asked = (
        "eval",
        "own",
        broadcast / "library",
        "--annotations",
        questions,
        "--out",
        out,
        "--agent",
        "uniform:frames=8",
    )
    assert kinodex(*asked, "--no-controls", "--no-page").code == 0
    true = {each.item_id: each.truth.evidence for each in read_items(out)}
    assert true["inside"] == ((2.0, 4.0),)
    visited = [each for result in read_results(out) for each in result.visited]
    assert all(video.start_s <= each.start_s < each.end_s <= video.end_s for each in visited)
    (standing,) = report_run(out).standings
    assert standing.shown is not None
    assert (standing.shown.mean, standing.shown.questions) == (0.5, 2), "one range is no time of the film"


@needs_ffmpeg
def test_evidence_that_no_time_of_its_video_can_show_is_noted(
    broadcast: Path, kinodex: Kinodex, tmp_path: Path
) -> None:
    questions, out = broadcast / "questions.jsonl", tmp_path / "run"
    asked = ("eval", "own", broadcast / "library", "--annotations", questions, "--out", out, "--agent", "random")
    assert kinodex(*asked, "--no-controls", "--no-page").code == 0
    (problem,) = [each for each in read_plan(out).problems if "evidence" in each.what]
    assert problem.where == "question outside"
    assert problem.what.startswith("evidence: got 1002 s to 1004 s, and news in the library lasts from 0 s to ")


@needs_ffmpeg
def test_captions_of_a_stream_that_begins_late_are_at_the_time_a_player_shows(
    broadcast: Path, kinodex: Kinodex, tmp_path: Path
) -> None:
    library = Library.open(str(copytree(broadcast / "library", tmp_path / "library")))
    (tmp_path / "captions.json").write_text(json.dumps({"news": ["a kite", "a boat", "the sea"]}))
    assert kinodex("import", "captions", tmp_path / "captions.json", library.uri, "--model", "by hand").code == 0
    library = Library.open(library.uri)
    (video,) = library.videos()
    found = [(each.start_s - video.start_s, each.end_s - video.start_s) for each in library.captions(video.video_id)]
    assert found == [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]


def test_a_clip_goes_by_its_id_and_evidence_counts_in_it(place: Path) -> None:
    rows = {row.video_id: row for row in Library.open(str(place / "library")).videos()}
    by_title = {row.title: row.video_id for row in rows.values()}
    episode = item("a", "s01", clip="orchard", evidence=((1.0, 2.0),))
    ((sample,), problems) = complete_samples([episode], {"a": tuple(rows)}, rows, None)
    assert (sample.truth.clip, sample.truth.evidence, problems) == (by_title["orchard"], ((1.0, 2.0),), ())
    assert sample.duration_s == sum(row.duration_s for row in rows.values())
