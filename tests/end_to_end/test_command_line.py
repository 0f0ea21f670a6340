"""The whole job by the command line, on sketch films; and what it says to bad input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.embedding.space import load_space
from index.library import Library
from jobs.open_library import open_environment
from jobs.viewer.api import ViewerApi
from jobs.viewer.inputs import classify_inputs
from jobs.viewer.timeline import curves
from tests.support.command import Kinodex, bad
from tests.support.random_library import caption, detection
from tests.support.tiny_models import TINY, write_model


def test_sample_ingest_again_and_info(kinodex: Kinodex, tmp_path: Path) -> None:
    films, library = tmp_path / "films", tmp_path / "library"
    assert kinodex("sample", films, "--hours", 0.01, "--seed", 5).code == 0
    (films / "noise.mp4").write_text("this is no video")

    first = kinodex("ingest", films, "--library", library, "--space", "builtin", "--json")
    told = json.loads(first.out)["sources"]
    assert first.code == 3
    assert sorted(each["state"] for each in told) == ["failed", "indexed", "indexed", "indexed"]

    info = json.loads(kinodex("info", library, "--json").out)
    assert [row["error_class"] for row in info["failures"]] == ["NotAVideo"]
    assert len(info["videos"]) == 3
    assert info["frames"] == sum(row["frames"] for row in info["videos"])

    (films / "noise.mp4").unlink()
    again = kinodex("ingest", films, "--library", library)
    assert again.code == 0
    assert "nothing to do: the library knows all 3 sources; 1 failed before" in again.out

    runs = json.loads(kinodex("report", library, "--json").out)
    assert [(run["kind"], run["state"], run["report"]["counts"]["indexed"]) for run in runs] == [
        ("ingest", "done", 0),
        ("ingest", "done", 3),
    ]
    assert "3 indexed, 0 already there, 1 failed" in kinodex("report", library, "--run", runs[1]["run_id"]).out


def test_a_broken_subtitle_file_stays_a_failure_when_there_is_nothing_to_do(
    kinodex: Kinodex, films: Path, tmp_path: Path
) -> None:
    folder, library = tmp_path / "films", tmp_path / "library"
    folder.mkdir()
    shutil.copy(films / "film-02.mp4", folder)
    (folder / "film-02.srt").write_bytes(bytes(range(256)) * 20)
    for _ in range(2):
        assert kinodex("ingest", folder, "--library", library, "--space", "builtin").code == 0
        failures = json.loads(kinodex("info", library, "--json").out)["failures"]
        assert [(row["stage"], row["error_class"]) for row in failures] == [("subtitles", "SubtitleError")]


def test_a_renamed_file_is_the_same_video(kinodex: Kinodex, films: Path, library: Path, tmp_path: Path) -> None:
    renamed = shutil.copy(films / "film-01.mp4", tmp_path / "other name.mp4")
    ran = kinodex("ingest", renamed, "--library", library, "--json")
    assert [each["state"] for each in json.loads(ran.out)["sources"]] == ["already there"]


def test_search_finds_frames_and_words(kinodex: Kinodex, library: Path) -> None:
    hits = json.loads(kinodex("search", library, "a blue boat", "-k", 4, "--min-gap", 3, "--json").out)
    assert len(hits) == 4
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    spoken = json.loads(kinodex("search", library, "code word", "--only", "transcript", "--json").out)
    assert spoken
    assert "code word" in spoken[0]["text"]
    ranged = json.loads(
        kinodex("search", library, "a boat", "--video", "film-02", "--from", 5, "--to", 9, "--json").out
    )
    assert ranged
    assert all(5 <= hit["time_s"] < 9 for hit in ranged)


@pytest.fixture(scope="module")
def described(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library with captions, detections and a second space; what is in them is chosen, not seen."""
    place = tmp_path_factory.mktemp("described") / "library"
    shutil.copytree(library, place)
    made = Library.open(str(place))
    film = made.video("film-02")
    captions = [caption(0, "a walrus plays chess"), caption(1, "nothing to be seen")]
    made.additions.add_captions({film.video_id: captions}, "captioner")
    made.additions.complete("captions", "captioner", {film.video_id: 2}, {})
    made.additions.add_detections(
        {film.video_id: [detection(3, "walrus", 0.9), detection(9, "walrus", 0.3)]}, "detector"
    )
    made.additions.complete("detections", "detector", {film.video_id: 2}, {})
    other = load_space(write_model(place.parent / "other", TINY))
    made.additions.add_space(other.fingerprint)
    held = made.vectors(film.video_id)
    looks = np.random.default_rng(0).integers(256, size=(film.frames, 32, 32, 3), dtype=np.uint8)
    vectors = other.embed(np.stack([other.prepare(look) for look in looks]))
    made.additions.add_vectors({film.video_id: replace(held, vectors=vectors)}, other.fingerprint)
    made.additions.complete("vectors", other.fingerprint.digest, {film.video_id: film.frames}, {})
    return place


def test_a_search_of_what_was_never_added_is_told_how_to_add_it(kinodex: Kinodex, library: Path) -> None:
    bad(kinodex, "search", library, "a walrus", "--only", "captions", code=2, says="kinodex add captions")
    bad(kinodex, "search", library, "--label", "walrus", code=2, says="kinodex add detections")


def test_search_looks_into_captions_detections_and_other_spaces(kinodex: Kinodex, described: Path) -> None:
    def hits(*arguments: object) -> Any:
        ran = kinodex("search", described, *arguments, "--json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    assert hits("a walrus", "--only", "captions", "-k", 1)[0]["text"] == "a walrus plays chess"
    assert any(hit["text"] == "a walrus plays chess" for hit in hits("a walrus plays chess"))
    assert [hit["score"] for hit in hits("--label", "walrus")] == pytest.approx([0.9, 0.3])
    assert len(hits("walrus", "--only", "detections", "--min-score", 0.5)) == 1
    own = Library.open(str(described)).fingerprint
    assert hits("a boat", "--space", own.digest) == hits("a boat")
    (other,) = (space for space in Library.open(str(described)).spaces() if space.digest != own.digest)
    assert any(hit["text"] == "a walrus plays chess" for hit in hits("a walrus plays chess", "--space", other.name))
    found = hits("a cat", "--space", other.name, "--only", "frames", "--min-gap", 0, "-k", 1000)
    film = Library.open(str(described)).video("film-02")
    assert (len(found), {hit["video_id"] for hit in found}) == (film.frames, {film.video_id})
    assert "detection" in kinodex("search", described, "--label", "walrus").out
    assert other.digest in kinodex("info", described).out

    at = ("search", described)
    bad(kinodex, *at, "a boat", "--space", "ViT-B-32/openai", code=2, says="builtin")
    bad(kinodex, *at, "a boat", "--only", "words", code=2, says="captions")
    bad(kinodex, *at, "a boat", "--only", "captions", "--label", "walrus", code=2, says="--label")
    bad(kinodex, *at, "a boat", "--only", "transcript", "--space", "builtin", code=2, says="--only transcript")


def test_ask_looks_for_frames_in_another_space(kinodex: Kinodex, described: Path, tmp_path: Path) -> None:
    trace, other = tmp_path / "trace.jsonl", Library.open(str(described)).spaces()[1]
    question = ("ask", described, "What is to be seen?", "--option", "a boat", "--option", "a cat")
    assert kinodex(*question, "--video", "film-02", "--space", other.digest, "--trace", trace).code == 0
    assert json.loads(trace.read_text().splitlines()[0])["space"] == str(other)
    seen = ViewerApi(classify_inputs([str(trace), str(described)]))
    drawn, in_own = seen.curves("t0"), curves(seen.view("t0"), open_environment(str(described), ["film-02"]))
    assert [each.query for each in drawn] == [each.query for each in in_own] != []
    assert [each.percent for each in drawn] != [each.percent for each in in_own]
    bad(kinodex, *question, "--video", "film-01", "--space", other.name, code=4, says="has no vectors yet")
    bad(kinodex, *question, "--space", "nowhere", code=2, says=other.name)


def test_search_by_picture_finds_that_picture(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    written = json.loads(kinodex("frames", library, "--video", "film-03", "--at", 7, "--out", tmp_path, "--json").out)
    hits = json.loads(kinodex("search", library, "--image", written[0]["path"], "-k", 1, "--json").out)
    assert hits[0]["video_id"] == written[0]["video_id"]
    assert hits[0]["score"] > 0.98


@pytest.mark.parametrize("agent", ["eea", "uniform"])
def test_ask_prints_tree_answer_and_writes_a_trace_that_replays(
    kinodex: Kinodex, library: Path, tmp_path: Path, agent: str
) -> None:
    trace = tmp_path / "trace.jsonl"
    question = ["What appears in the film?", "--option", "a blue boat", "--option", "a pink elephant"]
    ran = kinodex("ask", library, *question, "--video", "film-01", "--agent", agent, "--trace", trace)
    assert ran.code == 0
    for word in ("answer", "status", "ledger"):
        assert word in ran.out
    live = json.loads(kinodex("ask", library, *question, "--video", "film-01", "--agent", agent, "--json").out)
    replayed = json.loads(
        kinodex(
            "ask", library, *question, "--video", "film-01", "--agent", agent, "--model", f"replay:{trace}", "--json"
        ).out
    )
    for key in ("status", "option", "text", "evidence", "rounds"):
        assert live[key] == replayed[key]


def test_ask_over_all_videos_and_open_ended(kinodex: Kinodex, library: Path) -> None:
    ran = json.loads(kinodex("ask", library, "When is there a title card?", "--json").out)
    assert ran["status"] in ("answered", "insufficient_evidence", "budget_exhausted")
    assert ran["ledger"]["frames"] > 0


def test_agents_are_listed_with_what_can_be_set(kinodex: Kinodex) -> None:
    listed = json.loads(kinodex("agents", "--json").out)
    assert [each["name"] for each in listed][:1] == ["eea"]
    assert all(each["line"] and each["parameters"]["rounds"] >= 1 for each in listed)
    for each in listed:
        shown = kinodex("agents", each["name"])
        assert shown.code == 0
        assert all(f"--set {name}=" in shown.out for name in each["parameters"])
        for settings in each["ablations"].values():
            assert set(settings) <= set(each["parameters"])
    table = kinodex("agents").out
    assert all(each["name"] in table for each in listed)


def test_a_follow_up_goes_on_from_a_trace(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    ask = ("ask", library, "--video", "film-01", "--json", "--set", "frames=3")
    first = json.loads(kinodex(*ask, "When is there a title card?", "--trace", tmp_path / "first.jsonl").out)
    again = kinodex(*ask, "When is there a title card?", "--continue", tmp_path / "first.jsonl")
    assert json.loads(again.out)["ledger"]["calls"] == 1 < first["ledger"]["calls"]


def test_the_python_of_the_readme_runs(root: Path, library: Path, tmp_path: Path) -> None:
    code = (root / "README.md").read_text().split("```python\n")[1].split("```")[0]
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "library").symlink_to(library)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 1


def test_bad_sources(kinodex: Kinodex, tmp_path: Path) -> None:
    to = ("--library", tmp_path / "library", "--space", "builtin")
    bad(kinodex, "ingest", tmp_path / "none.mp4", *to, code=2, says="none.mp4")
    bad(kinodex, "ingest", str(tmp_path / "*.mp4"), *to, code=2, says="*.mp4")
    (tmp_path / "empty folder").mkdir()
    bad(kinodex, "ingest", tmp_path / "empty folder", *to, code=2, says="empty folder")
    assert not (tmp_path / "library").exists()


def test_without_a_decoder_ingest_says_what_is_missing(
    kinodex: Kinodex, films: Path, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)  # as on a platform without its wheel: importing it fails
    to = ("--library", tmp_path / "library", "--space", "builtin")
    bad(kinodex, "ingest", films, *to, code=2, says="pip install 'kinodex[ingest]'")
    assert not (tmp_path / "library").exists()
    assert kinodex("search", library, "a boat").code == 0


def test_bad_files_are_rows_and_the_rest_is_indexed(kinodex: Kinodex, media: Path, tmp_path: Path) -> None:
    awkward = media / "awkward"
    forbidden = tmp_path / "forbidden.mp4"
    shutil.copy(awkward / "torchcodec__h265_video.mp4", forbidden)
    forbidden.chmod(0)
    named = {
        awkward / "moviepy__doc_medias_result.webm": "EmptyFile",
        awkward / "pixeltable__bad_video.mp4": "NotAVideo",
        awkward / "mediabunny__multiple-aac-tracks.mp4": "NoVideoStream",
        awkward / "moviepy__with-attached-pic.mp3": "NoVideoStream",
        awkward / "mediabunny__segment.mp4": "NotAVideo",
    }
    good = [awkward / "decord__corrupted.mp4", awkward / "mediabunny__annex-b.mp4"]
    if os.geteuid() != 0:
        named[forbidden] = "SourceForbidden"
    library = tmp_path / "library"
    ran = kinodex("ingest", *named, *good, "--library", library, "--space", "builtin", "--json")
    assert ran.code == 3
    info = json.loads(kinodex("info", library, "--json").out)
    assert {row["uri"]: row["error_class"] for row in info["failures"]} == {str(p): name for p, name in named.items()}
    assert {row["uri"] for row in info["videos"]} == set(map(str, good))
    assert all(row["decode_errors"] > 0 for row in info["videos"] if "corrupted" in row["uri"])


def test_bad_libraries(kinodex: Kinodex, films: Path, library: Path, tmp_path: Path) -> None:
    bad(kinodex, "info", tmp_path / "nowhere", code=4, says="nowhere")
    bad(kinodex, "info", "", code=4, says="empty name for a library")
    bad(kinodex, "search", films, "a boat", code=4, says="films")
    bad(kinodex, "ingest", films, "--library", films, "--space", "builtin", code=4, says="films")
    bad(kinodex, "ingest", films, "--library", library, "--fps", 2, code=4, says="fps=2")
    bad(kinodex, "ingest", films, "--library", library, "--fps", -1, code=2, says="fps=-1")


def test_bad_spaces(kinodex: Kinodex, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    to = ("--library", tmp_path / "library")
    bad(kinodex, "ingest", films, *to, "--space", "ViT-B-33/laion2b_s34b_b79k", code=2, says="ViT-B-32")
    bad(kinodex, "ingest", films, *to, "--space", "ViT-B-32/laion2b_s34b_b79k", code=2, says="builtin")
    assert not (tmp_path / "library").exists()


def test_bad_places(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    at = ("frames", library, "--out", tmp_path)
    bad(kinodex, *at, "--video", "zzzz", "--at", 1, code=2, says="zzzz")
    bad(kinodex, *at, "--video", "film-01", "--at", 99999, code=2, says="99999")
    bad(kinodex, *at, "--video", "film-01", "--at", 1, "--mode", "near", code=2, says="near")
    bad(kinodex, "search", library, "  ", code=2, says="query")
    bad(kinodex, "search", library, "--image", tmp_path / "none.png", code=2, says="none.png")


def test_bad_questions(kinodex: Kinodex, library: Path) -> None:
    many = [part for number in range(200) for part in ("--option", f"thing {number}")]
    bad(kinodex, "ask", library, " ", code=2, says="question is empty")
    bad(kinodex, "ask", library, "what?", "--option", "one", code=2, says="1 option")
    bad(kinodex, "ask", library, "what?", *many, code=2, says="200 options")
    bad(kinodex, "ask", library, "what?", "--agent", "eeaa", code=2, says="eeaa")
    bad(kinodex, "ask", library, "what?", "--set", "frames", code=2, says="NAME=VALUE")
    bad(kinodex, "ask", library, "what?", "--set", "frame=3", code=2, says="did you mean 'frames'")
    bad(kinodex, "ask", library, "what?", "--set", "frames=x", code=2, says="got frames='x'")
    bad(kinodex, "ask", library, "what?", "--continue", library / "none.jsonl", code=2, says="none.jsonl")
    bad(kinodex, "ask", library, "what?", "--continue", "a", "--trace", "a", code=2, says="overwrite")
    bad(kinodex, "agents", "eeaa", code=2, says="did you mean 'eea'")
    bad(kinodex, "ask", library, "what?", "--max-rounds", 0, code=2, says="0 rounds")
    bad(kinodex, "ask", library, "what?", "--max-cost", 1, code=2, says="--max-cost")


def test_a_full_disk_is_one_line(kinodex: Kinodex, library: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    asked = ("ask", library, "what?", "--video", "film-01", "--trace", full)
    bad(kinodex, *asked, code=2, says="No space left on device; free some space")


def test_bad_models(kinodex: Kinodex, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ask = ("ask", library, "what colour is the boat?", "--video", "film-01")
    bad(kinodex, *ask, "--model", "some-model", code=5, says="OPENAI_API_KEY")
    bad(kinodex, *ask, "--model", "m", "--base-url", "nonsense", code=2, says="nonsense")
    roles = tmp_path / "roles.toml"
    roles.write_text('[default]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\nattempts = 1\n')
    bad(kinodex, *ask, "--models", roles, code=5, says="127.0.0.1:9")
