"""`kinodex search`, `ground` and `duplicates`: hits, ranges and pairs as tables, JSON and files."""

from __future__ import annotations

import csv
import io
import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kinodex.cli.duplicates import CSV_COLUMNS, show_duplicates
from kinodex.index.library import Library
from kinodex.jobs.duplicates.alignment import DuplicateRange
from kinodex.jobs.duplicates.search import Duplicate
from kinodex.jobs.grounding.search import NOTHING_FITS
from kinodex.jobs.verdicts import RANKED
from tests.support.command import Kinodex, bad, json_of
from tests.support.duplicates.walks import DIM, shot, walk
from tests.support.libraries.random_library import SETTINGS, MadeVideo, fingerprint, made, write
from tests.support.servers.looking_server import looking_server
from tests.support.servers.rerank_server import RerankServer
from tests.world.drawn_space import DRAWN


def test_hits_are_the_best_first_apart_and_in_the_part_that_is_named(kinodex: Kinodex, library: Path) -> None:
    hits = json_of(kinodex, "search", library, "a blue boat", "-k", 4, "--min-gap", 3)
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True) and len(hits) == 4
    starts = sorted((hit["video_id"], hit["start_s"]) for hit in hits)
    assert all(a[0] != b[0] or b[1] - a[1] >= 3 for a, b in pairwise(starts))
    part = json_of(kinodex, "search", library, "a boat", "--video", "film-02", "--from", 5, "--to", 9)
    assert part and all(5 <= hit["time_s"] < 9 for hit in part)


@pytest.mark.slow
def test_search_by_label_score_and_space(kinodex: Kinodex, described: Path) -> None:
    def hits(*arguments: object) -> Any:
        return json_of(kinodex, "search", described, *arguments)

    assert [hit["score"] for hit in hits("--label", "walrus")] == pytest.approx([0.9, 0.3])
    assert len(hits("walrus", "--in", "detections", "--min-score", 0.5)) == 1
    own = Library.open(str(described)).fingerprint
    assert hits("a boat", "--space", own.digest) == hits("a boat")
    (other,) = (space for space in Library.open(str(described)).spaces() if space.digest != own.digest)
    assert any(hit["text"] == "a walrus plays chess" for hit in hits("a walrus plays chess", "--space", other.name))
    found = hits("a cat", "--space", other.name, "--in", "frames", "--min-gap", 0, "-k", 1000)
    film = Library.open(str(described)).video("film-02")
    assert (len(found), {hit["video_id"] for hit in found}) == (film.frames, {film.video_id})
    assert "detection" in kinodex("search", described, "--label", "walrus").out
    assert other.digest in kinodex("info", described).out


def test_searches_that_are_refused(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    for arguments, says in (
        (("a walrus", "--in", "captions"), "kinodex add captions"),
        (("--label", "walrus"), "kinodex add detections"),
        (("a boat", "--in", "sounds"), "captions"),
        (("a boat", "--in", "captions", "--label", "walrus"), "--label"),
        (("a boat", "--in", "speech", "--space", DRAWN), "--in speech"),
        (("  ",), "query"),
        (("--image", tmp_path / "none.png"), "none.png"),
    ):
        bad(kinodex, "search", library, *arguments, code=2, says=says)


@pytest.mark.slow
def test_ranges_are_printed_written_as_a_table_and_cut_out(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    table, clip = tmp_path / "ranges.csv", tmp_path / "boat.mp4"
    made = json_of(kinodex, "ground", library, "a boat", "-k", 3, "--csv", table)
    assert (made["present"], made["basis"], len(made["ranges"])) == (None, "probability", 3)
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [row["label"] for row in rows] == ["a boat"] * 3
    one = "ground", library, "a boat", "--video", "film-02", "-k", 1
    shown = kinodex(*one)
    assert shown.code == 0 and shown.out.startswith(made["claim"])
    assert "film-02" in shown.out and "film-01" not in shown.out
    assert [each["error"] for each in json_of(kinodex, *one, "--clip", clip)["clips"]] == [""]
    assert clip.stat().st_size > 1000


@pytest.mark.slow
def test_an_event_that_is_nowhere_and_an_agents_evidence(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    for command in ("ground", "search"):
        ran = kinodex(command, library, "zzzzqqq", "--in", "frames")
        assert ran.code == 0 and ran.out.startswith(RANKED), "the space never met this word"
        made = json_of(kinodex, command, library, "zzzzqqq", "--in", "frames")
        assert {each["basis"] for each in (made if command == "search" else made["ranges"])} == {"ranking"}
    ran = kinodex("ground", library, "zzzzqqq", "--in", "words", "--clip", tmp_path / "none.mp4")
    assert (ran.code, list(tmp_path.glob("*.mp4")), ran.out.strip()) == (0, [], NOTHING_FITS)
    made = json_of(kinodex, "ground", library, "a boat", "--agent", "uniform", "--video", "film-01", "--max-frames", 4)
    assert (made["by"], made["evidence"]) == ("uniform", None)


@pytest.mark.slow
def test_a_model_looks_and_says_present_or_absent_in_table_and_json(
    kinodex: Kinodex, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    place = shutil.copytree(library, tmp_path / "library")
    with looking_server(lambda number, line: number == 2) as server:
        looking = "--verify", 3, "--model", "tester", "--base-url", server.base_url
        asked = "a boat", "--in", "frames"
        bill = json_of(kinodex, "search", place, *asked, *looking, "--input-price", 2, "--dry-run")
        assert (bill["questions"], bill["calls"], bill["cost"] > 0, server.seen) == (3, 1, True, [])
        hits = json_of(kinodex, "search", place, *asked, *looking)
        assert [hit["present"] for hit in hits[:4]] == [False, True, False, None]
        assert (hits[1]["basis"], hits[1]["reason"]) == ("verified", "a boat is in the picture (2)")
        ran = kinodex("search", place, *asked, *looking)
        assert ran.out.startswith("present: a model saw it in 1 of the 3 moments it looked at")
        assert "seen" in ran.out and "only the sea is seen (1)" in ran.out and len(server.seen) == 1, "kept"
        assert "tester" not in kinodex("info", place).out, "the library is as it was"
        assert json_of(kinodex, "search", place, *asked, *looking, "--dry-run")["calls"] == 0
        assert "3" in kinodex("ground", place, *asked, *looking, "--no-cache", "--dry-run").out
        made = json_of(kinodex, "ground", place, *asked, *looking, "-k", 3)
        assert (made["present"], made["basis"], made["ranges"][0]["reason"]) == (
            True,
            "verified",
            "a boat is in the picture (2)",
        )
        assert [each["present"] for each in made["weaker"]] == [False, False]
        bad(kinodex, "search", place, *asked, *looking[2:], code=2, says="--verify K")
        bad(kinodex, "search", place, *asked, "--verify", 2, code=2, says="--model")
        bad(kinodex, "ground", place, "a boat", "--agent", "uniform", *looking, code=2, says="--verify")
    with RerankServer("vllm") as server:
        hits = json_of(kinodex, "search", place, "a long story", "--rerank", server.url)
    assert hits[0]["reranked"] is not None and hits[0]["basis"] in ("ranking", "probability")


def test_options_that_do_not_fit_are_refused_before_the_search(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("mine")
    agent = "a boat", "--agent", "uniform"
    for arguments, says in (
        (("a boat", "--model", "gpt-4o"), "--verify K"),
        (("a boat", "--base-url", "http://127.0.0.1:9/v1"), "--verify K"),
        (("a boat", "--max-frames", 3), "got a budget, and no agent"),
        ((*agent, "--in", "words"), "with an agent, which decides by itself"),
        ((" ",), "empty text"),
        (("a boat", "--csv", tmp_path / "there.csv"), "there.csv"),
        (("a boat", "--clip", tmp_path / "film.mov"), ".mp4"),
    ):
        bad(kinodex, "ground", library, *arguments, code=2, says=says)


FILM, OTHER = walk(90, 1), walk(90, 2)


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of a film, a part of it from 0:25 on, and another film."""
    folder = tmp_path_factory.mktemp("duplicates") / "library"
    library = Library.create(str(folder), SETTINGS, fingerprint(dim=DIM))
    parts = {"whole": shot(FILM, 0, 90), "cut": shot(FILM, 25, 65, noise=0.05), "other": shot(OTHER, 0, 60)}
    for name, units in parts.items():
        write(library, MadeVideo(name, units.astype("float16")), name)
    return folder


def test_table_json_and_csv_have_the_pair_with_its_offset(kinodex: Kinodex, cut: Path) -> None:
    said = kinodex("duplicates", cut).out
    (line,) = [line for line in said.splitlines() if "whole" in line]
    assert line.split()[:2] == ["cut", "whole"] and "+0:2" in line and "other" not in said
    (pair,) = json_of(kinodex, "duplicates", cut, "--video", "whole")
    assert (pair["a"]["title"], pair["b"]["title"], pair["speed"]) == ("cut", "whole", 1.0)
    (row,) = csv.DictReader(io.StringIO(kinodex("duplicates", cut, "--csv").out))
    assert float(row["offset_s"]) == pytest.approx(pair["offset_s"], abs=0.001)
    assert float(row["start_b_s"]) == pytest.approx(pair["ranges"][0]["start_b_s"], abs=0.001)


def test_none_and_wrong_options_are_said(kinodex: Kinodex, cut: Path) -> None:
    assert "no two videos show the same" in kinodex("duplicates", cut, "--video", "other").out
    assert json.loads(kinodex("duplicates", cut, "--min-seconds", 60, "--json").out) == []
    bad(kinodex, "duplicates", cut, "--json", "--csv", code=2, says="give one of them")
    bad(kinodex, "duplicates", cut, "--every", 0, code=2, says="give more than 0")
    bad(kinodex, "duplicates", cut, "--space", "nowhere", code=4, says="got space nowhere")


A, B = (made(name, 60, 1).video_row(name) for name in ("a [b]film[/b]", "b\x1b[31m"))
RANGES = (
    DuplicateRange(0.0, 20.0, 75.5, 95.5, 75.5, 25 / 24),
    DuplicateRange(30.0, 40.0, 105.5, 115.5, 75.5, 25 / 24),
    DuplicateRange(40.0, 50.0, 20.0, 30.0, -20.0, 1.0),
)
PAIR = Duplicate(A, B, 75.5, 25 / 24, RANGES, 30.0, 0.5, 0.25, 0.91, 0.8)


def test_each_range_has_a_line_or_a_row_of_csv_and_the_pair_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    show_duplicates([PAIR], as_json=False, as_csv=False)
    head, first, second, third = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["video", "shows"]
    assert "a [b]film[/b]" in first and "\x1b" not in first
    for cell in ("+1:15.5", "1.042", "0:00.0 to 0:20.0", "1:15.5 to 1:35.5", "50% / 25%", "0.91"):
        assert cell in first
    assert second.split() == ["0:30.0", "to", "0:40.0", "1:45.5", "to", "1:55.5"]
    assert third.split()[:2] == ["-0:20.0", "1"], "a range of another offset says so"
    show_duplicates([PAIR], as_json=False, as_csv=True)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == list(CSV_COLUMNS)
    assert [(row["start_a_s"], row["end_b_s"], row["offset_s"]) for row in rows] == [
        ("0.0", "95.5", "75.5"),
        ("30.0", "115.5", "75.5"),
        ("40.0", "30.0", "-20.0"),
    ]
