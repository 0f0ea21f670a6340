"""`kinodex add`, `speakers` and `import`: forecasts, models that cannot be used, voices, failures, progress."""

from __future__ import annotations

import io
import os
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from kinodex.cli.progress_bars import add_progress_bar
from kinodex.index.library import Library
from kinodex.jobs.add.run import VideoOutcome
from kinodex.jobs.text_import.captions import read_captions
from kinodex.jobs.text_import.video_text import VideoText
from tests.support.command import bad, json_of
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.libraries.text_files import written
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.model_hub import NOBODY_THERE, hub_at
from tests.world.drawn_space import DRAWN

ENDPOINT = ("--base-url", "http://127.0.0.1:9/v1", "--model", "x")


@pytest.mark.slow
def test_models_and_options_that_cannot_be_used_are_refused_in_one_line(kinodex, small_library, tiny_model, tmp_path):
    library, detector = Library.open(str(small_library)), tiny_model("rt_detr")
    costs_nothing = "for a local model, which costs nothing; give --base-url"
    for stage, options, says in (
        ("captions", ("--model", "some/x", "--dry-run"), costs_nothing),
        ("captions", ("--model", "some/x", "--batch-api"), costs_nothing),
        ("chapters", ("--model", "some/x", "--dry-run"), costs_nothing),
        ("captions", (*ENDPOINT, "--batch-api", "--ray"), "so leave one out"),
        ("chapters", ("--model", detector), "it is no model for AutoModelForCausalLM"),
        ("captions", ("--model", detector), "it is no model for AutoModelForImageTextToText"),
        ("detections", ("--model", tmp_path / "nothing"), "where there is no folder"),
    ):
        bad(kinodex, "add", stage, small_library, *options, code=2, says=says)
    with hub_at(NOBODY_THERE):
        says = "cannot get the model nobody/nothing"
        bad(kinodex, "add", "detections", small_library, "--model", "nobody/nothing", code=2, says=says)
    assert library.additions.pending("captions", str(detector)) == library.videos()
    ran = kinodex("add", "captions", small_library, *ENDPOINT, "--dry-run")
    assert ran.code == 0 and "segments" in ran.out


def test_a_model_without_an_endpoint_is_where_ask_looks_for_it(kinodex, small_library, monkeypatch, tmp_path):
    place = shutil.copytree(small_library, tmp_path / "library")
    with ChatServer(lambda body: {"caption": "a boat", "confidence": 90}, models=["gpt-4o"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        ran = kinodex("add", "captions", place, "--model", "gpt-4o")
        assert (ran.code, ran.err.splitlines()[0]) == (0, f"asking gpt-4o at {server.base_url}"), ran
        assert len(server.seen) > 0
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    bad(kinodex, "add", "chapters", place, "--model", "gpt-4o", code=5, says="OPENAI_API_KEY is not set")


def test_the_folder_of_a_model_is_one_model_from_everywhere(tiny_model, monkeypatch):
    from kinodex.jobs.add.stage import local_name

    folder = tiny_model("rt_detr")
    monkeypatch.chdir(folder.parent)
    assert local_name(folder.name) == str(folder) == local_name(os.fspath(folder))
    assert local_name("google/owlv2-base-patch16") == "google/owlv2-base-patch16"


@pytest.fixture
def voices(tmp_path) -> Library:
    voices = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(voices, made("aaaa", 4, seed=0))
    heard = [SimpleNamespace(vector=np.eye(256, dtype=np.float32)[number], seconds=9.0) for number in range(2)]
    voices.speakers.match(heard, "m", 0.8)
    return voices


def test_voices_are_listed_named_renamed_and_forgotten(kinodex, voices):
    assert "speaker-2    (no name)" in kinodex("speakers", voices.uri).out
    ran = kinodex("speakers", voices.uri, "speaker-1", "Anna")
    assert (ran.code, ran.out.split()[:2]) == (0, ["speaker-1", "Anna"])
    assert json_of(kinodex, "speakers", voices.uri, "anna", "Anna Lee")[0]["name"] == "Anna Lee"
    assert [row["name"] for row in json_of(kinodex, "speakers", voices.uri)] == ["Anna Lee", None]
    unnamed = [{"speaker": "speaker-1", "name": None, "seconds": 9.0, "model": "m"}]
    assert json_of(kinodex, "speakers", voices.uri, "Anna Lee", "--remove") == unnamed
    kinodex("speakers", voices.uri, "speaker-2", "Bo")
    bad(kinodex, "remove", "speaker", voices.uri, "bo", code=2, says="give --yes")
    ran = kinodex("remove", "speaker", voices.uri, "bo", "--yes")
    assert (ran.code, ran.out.splitlines()) == (0, ["speaker-2  Bo", "1 voice forgotten, 1 left"])
    assert [row.speaker for row in voices.speakers.rows()] == ["speaker-1"]
    bad(kinodex, "remove", "speaker", voices.uri, "bo", "--yes", code=2, says="it knows speaker-1")


def test_names_that_make_no_sense(kinodex, voices, tmp_path):
    bad(kinodex, "speakers", voices.uri, "speaker-9", "Bo", code=2, says="got speaker 'speaker-9', whom")
    bad(kinodex, "speakers", voices.uri, "speaker-1", code=2, says="got speaker 'speaker-1' with no name; give a name")
    bad(kinodex, "speakers", voices.uri, "1", "Bo", "--remove", code=2, says="with a name and --remove")
    bad(kinodex, "speakers", voices.uri, "--remove", code=2, says="got --remove and no speaker")
    bad(kinodex, "speakers", voices.uri, "1", "speaker 2", code=2, says="is no number of a speaker")
    empty = Library.create(str(tmp_path / "empty"), SETTINGS, fingerprint())
    assert "no voices are known" in kinodex("speakers", empty.uri).out


@pytest.mark.slow
def test_bad_videos_are_failures_until_they_are_put_right(kinodex, tmp_path):
    uri = tmp_path / "library"
    common = ("import", "captions", tmp_path / "caps", uri, "--model", "m", "--space", DRAWN)
    written(tmp_path / "caps" / "a_cap.json", {"0": "fine"})
    written(tmp_path / "caps" / "b_cap.json", "{")
    written(tmp_path / "caps" / "c_cap.json", {"0": "fine", "1": None})
    written(tmp_path / "caps" / "d_cap.json", {"0": " "})
    ran = kinodex(*common)
    assert ran.code == 3
    assert "failed b_cap.json: b_cap.json: is not JSON" in ran.out
    assert "in part c: c_cap.json: 1 left out: c at 1 s: got None" in ran.out
    assert "added 2 captions to 2 videos" in ran.out
    library = Library.open(str(uri))
    failures = [(row.uri, row.stage, row.error_class) for row in library.ingest_log.failures()]
    assert failures == [
        (f"{tmp_path}/caps#b_cap.json", "captions", "UnreadableText"),
        ("imported:c", "captions", "Incomplete"),
        ("imported:d", "captions", "EmptyText"),
    ]
    for name in "bcd":
        written(tmp_path / "caps" / f"{name}_cap.json", {"0": "fine now"})
    assert json_of(kinodex, *common, "--replace")["added"] == 4
    assert library.ingest_log.failures() == []


def test_what_cannot_be_imported_makes_no_library(kinodex, tmp_path):
    source, uri = written(tmp_path / "x.json", ["neither"]), tmp_path / "library"
    common = (source, uri, "--space", DRAWN)
    bad(kinodex, "import", "captions", *common, "--model", "m", code=2, says="got JSON of another form than captions")
    bad(kinodex, "import", "speech", *common, code=2, says="got JSON of another form than a transcript")
    good = (written(tmp_path / "y.jsonl", "{}"), uri, "--space", DRAWN)
    bad(kinodex, "import", "captions", *good, "--model", " ", code=2, says="got an empty --model")
    for option in ("--seconds", "--duration"):
        bad(kinodex, "import", "captions", *good, "--model", "m", option, "inf", code=2, says="without an end")
    assert not uri.exists()
    assert kinodex("import", "captions", *common).code == 2  # nobody says who wrote them


@pytest.mark.slow
def test_the_real_captions_of_egoschema_and_nextqa(benchmarks):
    ego = list(read_captions(benchmarks / "egoschema" / "lavila_subset.json", 1.0))
    nextqa = list(read_captions(benchmarks / "nextqa" / "nextqa_allcaps_1fps.zip", 1.0))
    for read, videos, lines in ((ego, 500, 90_000), (nextqa, 570, 24_089)):
        good = [each for each in read if isinstance(each, VideoText)]
        assert (len(read), len(good), sum(len(each.lines) for each in good)) == (videos, videos, lines)
        assert not any(each.problem for each in good)
    assert {each.name for each in nextqa} >= {"4010069381", "4882821564"}


ADDED = VideoOutcome("a", "/a.mp4", "a", 12)
IN_PART = VideoOutcome("b", "/b.mp4", "b", 1_000, "2 of 9 segments got no caption")
FAILED = VideoOutcome("c", "/c.mp4", "c", 0, "nothing is there", "SourceMissing")


def test_what_is_added_is_shown_in_lines_and_by_a_bar_on_a_terminal() -> None:
    out, quiet, bar = io.StringIO(), io.StringIO(), io.StringIO()
    with add_progress_bar(Console(file=out, width=20), "captions", every_s=0.0) as watch:
        for done, last in enumerate((ADDED, IN_PART, FAILED), start=1):
            watch(done, 3, last)
    assert [re.sub(r", [^,]+ left$", ", LEFT", line) for line in out.getvalue().splitlines()] == [
        "adding captions: 1 of 3 videos, 12 rows, LEFT",
        "adding captions: 2 of 3 videos, 1,012 rows, 1 in part, LEFT",
        "adding captions: 3 of 3 videos, 1,012 rows, 1 failed, 1 in part",
    ]
    with add_progress_bar(Console(file=quiet), "captions", every_s=30.0) as watch:
        watch(1, 2, ADDED)
    assert quiet.getvalue() == ""
    terminal = Console(file=bar, force_terminal=True, width=200, color_system=None)
    with add_progress_bar(terminal, "captions", every_s=0.0) as watch:
        watch(2, 4, FAILED)
    assert "2 of 4 videos, 0 rows, 1 failed" in bar.getvalue() and bar.getvalue().endswith("\x1b[2K")
