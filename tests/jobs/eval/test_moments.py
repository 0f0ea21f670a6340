"""Runs of searches and grounding: cases, contenders, results that are kept, and searches by pictures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from PIL import Image

from kinodex.agent.errors import AllRejected
from kinodex.index.library import Library
from kinodex.index.remove import remove_videos
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.captions import Caption
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from kinodex.jobs.eval.items import MomentQuery, SearchItem
from kinodex.jobs.eval.moments.cases import Case, Cases, make_cases
from kinodex.jobs.eval.moments.contenders import Bench, solver
from kinodex.jobs.eval.moments.query_pictures import Pictures, open_pictures
from kinodex.jobs.eval.moments.results import Result, ResultFile
from kinodex.jobs.eval.moments.run import run_cases
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.open import open_environment
from tests.support.command import Kinodex, Ran
from tests.support.runs.eval_runs import OWN_AGENT
from tests.support.servers.chat_server import Behaviour, ChatServer, failing, in_turn

# Systems see the query alone: results of searches, groundings and agents in one form.


@pytest.fixture(scope="module")
def bench(library: Path) -> Bench:
    opened = Library.open(str(library))
    return Bench(opened, open_environment(opened), ModelChoice(cache=False), 5, 2.0)


def case(text: str, video_id: str | None = None) -> Case:
    return Case("1", MomentQuery(text, None, None), video_id, (("nowhere", 0.0, 1.0),), (1.0,), False, "", "nowhere")


def test_a_hit_is_the_moment_at_which_it_begins(bench: Bench) -> None:
    found = solver("frames", bench)(case("a boat"))
    hits = bench.library.search.frames(bench.environment.embed_text("a boat"), k=5, min_gap_s=2.0)
    assert found.found == tuple((hit.video_id, hit.time_s, hit.time_s) for hit in hits)
    assert (found.present, found.evidence, found.error) == (None, None, "")
    line = bench.library.speech(bench.library.video("film-01").video_id)[0]
    spoken = solver("words", bench)(case(line.text))
    assert spoken.found[0] == (line.video_id, line.start_s, line.start_s)
    assert solver("captions", bench)(case("a boat")).found == ()
    assert len(solver("fused", bench)(case("a boat")).found) == 5


# A run keeps each result, and solves only what is not there yet.


def asked(library: Path, server: ChatServer, folder: Path) -> Bench:
    """A bench whose agents ask a server, each request once."""
    file = folder / "models.toml"
    file.write_text(f'[default]\nbase_url = "{server.base_url}"\nmodel = "tester"\nattempts = 1\n')
    opened = Library.open(str(library))
    return Bench(opened, open_environment(opened), ModelChoice(roles_file=file, cache=False), 5, 2.0)


def solve(bench: Bench, file: ResultFile, count: int = 4, system: str = "agent:uniform", **options) -> list[Result]:
    cases = tuple(replace(case(f"a boat {number}"), case_id=str(number)) for number in range(count))
    return run_cases(Cases(cases, (), {}), [system], bench, file, lambda done, todo: None, **options)


REFUSED = failing(422, "the picture of frame 3 cannot be decoded")
BROKEN = failing(500, "out of memory")


def test_an_endpoint_that_is_down_ends_the_run_and_a_refused_search_does_not(library: Path, tmp_path: Path) -> None:
    with ChatServer(in_turn(REFUSED, failing(401, "bad key"))) as server:
        file = ResultFile(tmp_path / "results.jsonl", {})
        with pytest.raises(AllRejected):
            solve(asked(library, server, tmp_path), file)
    (kept,) = file.results.values()
    assert kept.case_id == "0" and "cannot be decoded" in kept.error


def test_a_refused_search_is_kept_as_an_error_and_asked_again_on_request(library: Path, tmp_path: Path) -> None:
    good = {"answer": "at once", "evidence": [1]}
    with ChatServer(in_turn(REFUSED, good)) as server:
        bench, file = asked(library, server, tmp_path), ResultFile(tmp_path / "results.jsonl", {})
        first, *others = solve(bench, file)
        assert "cannot be decoded" in first.error and not any(each.error for each in others)
        asked_before = len(server.seen)
        assert solve(bench, file) == [first, *others] and len(server.seen) == asked_before
        again, *same = solve(bench, file, retry_errors=True)
        assert again.error == "" and same == others and len(server.seen) == asked_before + 1
        assert solve(bench, file, retry_errors=True) == [again, *others] and len(server.seen) == asked_before + 1


def test_a_search_that_an_endpoint_cannot_bear_holds_up_no_other_and_is_not_kept(library: Path, tmp_path: Path) -> None:
    """Its error stands in this run's table; the next run asks it again."""
    good = {"answer": "at once", "evidence": [1]}
    broken = True

    def reply(body: dict) -> dict | Behaviour:
        return BROKEN if broken and "a boat 1" in str(body["messages"]) else good

    with ChatServer(reply) as server:
        bench, file = asked(library, server, tmp_path), ResultFile(tmp_path / "results.jsonl", {})
        errors = [each.error for each in solve(bench, file)]
        assert "out of memory" in errors[1] and errors[:1] + errors[2:] == [""] * 3
        assert {each.case_id for each in file.results.values()} == {"0", "2", "3"}
        broken = False
        assert [each.error for each in solve(bench, file)] == [""] * 4


@dataclass
class Inputs:
    """All that the results of a run depend on, in a folder; a test changes one of them and runs the command again."""

    folder: Path
    options: dict[str, object]

    def write(self, **changes: object) -> None:
        row = {"id": "1", "text": "a boat", "image": "picture.png", "relevant": [["film-01", 0, 3]], **changes}
        (self.folder / "searches.jsonl").write_text(json.dumps(row) + "\n")

    def paint(self, colour: str) -> None:
        Image.new("RGB", (32, 32), colour).save(self.folder / "picture.png")

    def caption(self, text: str) -> None:
        """Give film-01 a caption in the place of that of before."""
        library = Library.open(str(self.folder / "library"))
        video_id = library.video("film-01").video_id
        library.additions.discard("captions", "me", video_id)
        vector = library.load_space(None, "text").embed_text([text])[0]
        library.additions.add_captions({video_id: [Caption(0, 0.0, 3.0, text, None, vector)]}, "me")
        library.additions.complete("captions", "me", {video_id: 1}, {})

    def remove(self, video: str) -> None:
        library = Library.open(str(self.folder / "library"))
        remove_videos(library, library.video(video).video_id)


CHANGES: dict[str, tuple[Callable[[Inputs], object], int | str]] = {
    "nothing": (lambda of: None, 0),
    "the true moments": (lambda of: of.write(relevant=[["film-02", 0, 3]]), 0),
    "the text": (lambda of: of.write(text="a bird"), 2),
    "the picture": (lambda of: of.paint("blue"), 2),
    "the video": (lambda of: of.write(video="film-01", relevant=[[0, 3]]), 2),
    "the model": (lambda of: of.options.update({"--model": "another"}), "with models"),
    "the agent's code": (lambda of: (of.folder / "agent.py").write_text(OWN_AGENT + "# changed\n"), "with code"),
    "the number of results": (lambda of: of.options.update({"-k": 20}), "with most"),
    "the gap": (lambda of: of.options.update({"--min-gap": 9}), "with min_gap_s"),
    "a caption": (lambda of: of.caption("a bird"), "with state"),
    "the videos": (lambda of: of.remove("film-03"), "with videos 3"),
}


@pytest.mark.slow
def test_a_result_is_kept_only_if_all_that_it_depends_on_is_the_same(
    library: Path, tmp_path: Path, kinodex: Kinodex
) -> None:
    place, begun = tmp_path / "place", tmp_path / "begun"
    shutil.copytree(library, place / "library")
    (place / "agent.py").write_text(OWN_AGENT)
    with ChatServer(lambda _: {"answer": "yes", "evidence": [1]}, models=("tester", "another")) as server:
        options: dict[str, object] = {
            "--contender": f"agent:{place / 'agent.py'}",
            "--model": "tester",
            "--base-url": server.base_url,
        }
        options |= {"--out": place / "results.jsonl", "--library": place / "library"}

        def search(of: Inputs) -> Ran:
            given = [each for pair in of.options.items() for each in pair]
            searches = place / "searches.jsonl"
            return kinodex("eval", "search", "own", searches, "--contender", "frames", *given, "--no-cache")

        def lines() -> int:
            return len((place / "results.jsonl").read_text().splitlines())

        of = Inputs(place, options)
        of.write()
        of.paint("red")
        of.caption("a boat")
        assert search(of).code == 0
        assert lines() == 1 + 2
        shutil.copytree(place, begun)
        for name, (change, expected) in CHANGES.items():
            changed = replace(of, options=dict(of.options))
            change(changed)
            ran = search(changed)
            if isinstance(expected, str):
                assert ran.code == 2 and expected in ran.err and "give a new file" in ran.err, f"{name}: {ran}"
            else:
                assert (ran.code, lines()) == (0, 1 + 2 + expected), f"{name}: {ran}"
            shutil.rmtree(place)
            shutil.copytree(begun, place)


# The result file: kept line by line, gone on with, and refused for another run.


HEAD = {"library": "films", "most": 10}
ONE = Result("1", "frames", (("v", 0.0, 1.5),))
TWO = Result("2", "ground", (), False, 1.25, "no reply")


def test_results_are_there_again_and_half_a_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first = ResultFile(path, HEAD)
    first.add(ONE)
    first.add(TWO)
    assert ResultFile(path, HEAD).results == {("frames", "1"): ONE, ("ground", "2"): TWO}
    whole = path.read_text()
    path.write_text(whole[:-5])
    again = ResultFile(path, HEAD)
    assert list(again.results.values()) == [ONE]
    again.add(TWO)
    assert path.read_text() == whole


def test_another_run_s_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    ResultFile(path, HEAD).add(ONE)
    before = path.read_text()
    with pytest.raises(UsageError, match="most 10, and this run has 20"):
        ResultFile(path, HEAD | {"most": 20})
    with pytest.raises(UsageError, match="space None, and this run has x"):
        ResultFile(path, HEAD | {"space": "x"})
    assert path.read_text() == before
    other = tmp_path / "notes.txt"
    other.write_text("mine\n")
    with pytest.raises(UsageError, match="no result file"):
        ResultFile(other, HEAD)
    assert other.read_text() == "mine\n"
    with pytest.raises(UsageError, match="cannot write"):
        ResultFile(tmp_path / "no" / "results.jsonl", HEAD)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    ResultFile(path, HEAD).add(ONE)
    head = path.read_bytes()
    for line in (
        b'{"case_id": "1"',
        b"[]",
        b'{"case_id": "1", "system": "x", "found": [[1]]}',
        b"\xff\xfe",
        b'{"a": 1}',
    ):
        path.write_bytes(head + line + b"\n")
        with pytest.raises(UsageError, match=r"results.jsonl is damaged in line 3: .*; take the line out"):
            ResultFile(path, HEAD)
        assert path.read_bytes() == head + line + b"\n"


# Cases: searches matched with a library's videos; what is missing is counted and never left out in silence.


@pytest.fixture(scope="module")
def videos(library: Path) -> list[VideoRow]:
    return Library.open(str(library)).videos()


def sample(
    name: str,
    video: str | None,
    *relevant: tuple[str, float, float],
    text: str = "a boat",
    grades: tuple[float, ...] | None = None,
    image: Path | None = None,
    absent: bool = False,
    category: str | None = None,
) -> SearchItem:
    return SearchItem(name, "own", text, video, relevant, grades, image, absent, category)


def test_videos_are_named_by_id_and_a_missing_one_keeps_its_moments(videos: list[VideoRow]) -> None:
    made = make_cases(
        [
            sample("1", "film-01.mp4", ("film-01.mp4", 1.0, 2.0), grades=(4.0,), category="boats"),
            sample("2", None, ("film-02", 3.0, 4.0), ("lost", 0.0, 9.0)),
            sample("3", None, absent=True),
        ],
        videos,
    )
    ids = {row.title: row.video_id for row in videos}
    first, second, third = made.cases
    assert (first.video_id, first.relevant) == (ids["film-01"], ((ids["film-01"], 1.0, 2.0),))
    assert (first.grades, first.category, first.cluster) == ((4.0,), "boats", "film-01.mp4")
    assert (second.video_id, second.grades) == (None, (1.0, 1.0))
    assert second.relevant == ((ids["film-02"], 3.0, 4.0), ("lost", 0.0, 9.0))
    assert (third.absent, third.relevant, third.cluster) == (True, (), "none/3")
    assert [each.video for each in made.missing] == ["lost"]


def test_searches_that_cannot_be_scored_are_counted_by_reason(videos: list[VideoRow], tmp_path: Path) -> None:
    left_out = [
        sample("1", "lost", ("lost", 0.0, 1.0)),
        sample("2", None, ("lost", 0.0, 1.0)),
        sample("3", None),
        sample("4", None, ("film-01", 0.0, 1.0), text="", image=tmp_path),
    ]
    made = make_cases([*left_out, sample("5", None, absent=True)], videos)
    assert [case.case_id for case in made.cases] == ["5"]
    assert sorted(made.left_out) == [
        "a picture without text",
        "its video is not in the library",
        "moments not published",
        "no video of its moments is in the library",
    ]
    with pytest.raises(UsageError, match="none of 4 searches can be scored"):
        make_cases(left_out, videos)


# Searches by a picture, as MomentSeeker publishes them: found by the image tower, or left out and counted.


AT = 3
"""The frame of film-02 whose picture is searched by."""


@pytest.fixture(scope="module")
def published(opened: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`i2v.json` in the published form: a picture alone, a picture and words, words alone, and a file that is none."""
    folder = tmp_path_factory.mktemp("momentseeker")
    (frame,) = opened.frames(opened.video("film-02").video_id, [AT])
    (folder / "query.jpg").write_bytes(frame.jpeg)
    (folder / "broken.jpg").write_bytes(b"no picture")
    moment = {"src_video_path": "videos/film-02.mp4", "answering_time_interval": [[frame.time_s, frame.time_s + 1]]}
    rows = [
        {"qry_text": "", "qry_img_path": "query.jpg", "task": "IMS"},
        {"qry_text": "a boat", "qry_img_path": "query.jpg", "task": "IMS"},
        {"qry_text": "a boat", "qry_img_path": "", "task": "TMS"},
        {"qry_text": "", "qry_img_path": "broken.jpg", "task": "IMS"},
    ]
    (folder / "i2v.json").write_text(json.dumps([row | moment for row in rows]))
    return folder


def samples_of(folder: Path) -> tuple[SearchItem, ...]:
    return read_moment_benchmark("momentseeker", folder / "i2v.json").items


def solved(opened: Library, cases: Cases, pictures: Pictures, *names: str) -> dict[tuple[str, str], Result]:
    environment = open_environment(opened)
    bench = Bench(opened, environment, ModelChoice(cache=False), 5, 2.0, embed_picture=pictures.embed)
    found = run_cases(cases, names, bench, ResultFile(None, {}), lambda done, todo: None)
    return {(each.case_id, each.system): each for each in found}


def test_a_picture_finds_its_frame_and_with_words_it_is_searched_by_both(opened: Library, published: Path) -> None:
    samples = samples_of(published)
    pictures = open_pictures(opened, None, ["frames", "fused"], samples)
    cases = make_cases(samples, opened.videos(), None, pictures)
    assert (len(cases.cases), cases.left_out) == (4, {})
    found = solved(opened, cases, pictures, "frames", "fused")
    truth = cases.cases[0].relevant[0]
    for name in ("frames", "fused"):
        video_id, start_s, _ = found["i2v-1", name].found[0]
        assert video_id == truth[0] and abs(start_s - truth[1]) <= 1.0
        assert found["i2v-2", name].found != found["i2v-3", name].found
        assert found["i2v-4", name].found == () and "cannot read the picture" in found["i2v-4", name].error
