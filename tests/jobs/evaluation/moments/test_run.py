"""A run keeps each result, and solves only what is not there yet."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from PIL import Image

from kinodex.agent.errors import AllRejected, ModelUnreachable
from kinodex.index.library import Library
from kinodex.index.maintain import remove_videos
from kinodex.jobs.add.captions import Caption
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.moments import Bench, Case, Cases, Result, ResultFile, run_cases, run_settings
from kinodex.jobs.eval.samples import MomentQuery
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.open import open_environment
from tests.support.command import Kinodex, bad
from tests.support.runs.eval_runs import OWN_AGENT
from tests.support.servers.chat_server import Behaviour, ChatServer, failing, in_turn


def case(text: str) -> Case:
    return Case("1", MomentQuery(text, None, None), None, (("nowhere", 0.0, 1.0),), (1.0,), False, "", "nowhere")


def test_only_what_is_not_there_yet_is_solved(library: Path, tmp_path: Path) -> None:
    opened = Library.open(str(library))
    bench = Bench(opened, open_environment(opened), ModelChoice(cache=False), 5, 2.0)
    cases = Cases((case("a boat"), replace(case("a bird"), case_id="2")), (), {})
    settings = run_settings("own", tmp_path / "searches.jsonl", bench)
    assert (settings["most"], settings["videos"]) == (5, 3)
    reports: list[tuple[int, int]] = []
    file = ResultFile(tmp_path / "results.jsonl", settings)
    first = run_cases(cases, ["frames"], bench, file, lambda done, todo: reports.append((done, todo)))
    assert [each.case_id for each in first] == ["1", "2"]
    assert reports == [(0, 2), (1, 2)]
    written = (tmp_path / "results.jsonl").read_text()
    again = ResultFile(tmp_path / "results.jsonl", settings)
    assert run_cases(cases, ["frames"], bench, again, lambda done, todo: None) == first
    assert (tmp_path / "results.jsonl").read_text() == written


def test_an_edited_search_is_solved_again_and_a_library_that_grew_is_refused(library: Path, tmp_path: Path) -> None:
    opened = Library.open(str(library))
    bench = Bench(opened, open_environment(opened), ModelChoice(cache=False), 5, 2.0)
    settings = run_settings("own", tmp_path, bench)
    path = tmp_path / "results.jsonl"

    def run(*cases: Case) -> list[Result]:
        file = ResultFile(path, settings)
        return run_cases(Cases(cases, (), {}), ["frames"], bench, file, lambda done, todo: None)

    (boat,) = run(case("a boat"))
    bird, other = run(case("a bird"), replace(case("a boat"), case_id="2"))
    assert bird.found != boat.found == other.found
    assert run(case("a bird"))[0] == bird
    assert len(path.read_text().splitlines()) == 1 + 3
    grown = settings["contents"] + "; captions by x, 2 rows"
    with pytest.raises(UsageError, match=r"results with contents videos \w{12}, .*; captions by x, 2 rows; give a new"):
        ResultFile(path, settings | {"contents": grown})


def asked(library: Path, server: ChatServer, folder: Path) -> Bench:
    """A bench whose agents ask a server, each request once."""
    file = folder / "models.toml"
    file.write_text(f'[default]\nbase_url = "{server.base_url}"\nmodel = "tester"\nattempts = 1\n')
    opened = Library.open(str(library))
    return Bench(opened, open_environment(opened), ModelChoice(roles_file=file, cache=False), 5, 2.0)


def solve(bench: Bench, file: ResultFile, count: int = 4, system: str = "agent:uniform", **options) -> list[Result]:
    cases = tuple(replace(case(f"a boat {number}"), case_id=str(number)) for number in range(count))
    return run_cases(Cases(cases, (), {}), [system], bench, file, lambda done, todo: None, **options)


FILTERED = failing(400, "The response was filtered", code="content_filter")
BROKEN = failing(500, "out of memory")


def test_an_endpoint_that_is_down_ends_the_run_and_a_refused_search_does_not(library: Path, tmp_path: Path) -> None:
    with ChatServer(in_turn(FILTERED, failing(401, "bad key"))) as server:
        file = ResultFile(tmp_path / "results.jsonl", {})
        with pytest.raises(AllRejected):
            solve(asked(library, server, tmp_path), file)
    (kept,) = file.results.values()
    assert kept.case_id == "0" and "filter" in kept.error


def test_a_refused_search_is_kept_as_an_error_and_asked_again_on_request(library: Path, tmp_path: Path) -> None:
    good = {"answer": "at once", "evidence": [1]}
    with ChatServer(in_turn(FILTERED, good)) as server:
        bench, file = asked(library, server, tmp_path), ResultFile(tmp_path / "results.jsonl", {})
        first, *others = solve(bench, file)
        assert "filter" in first.error and not any(each.error for each in others)
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


def test_three_searches_in_a_row_without_a_reply_are_an_endpoint_that_is_gone(library: Path, tmp_path: Path) -> None:
    with ChatServer(lambda _: BROKEN) as server:
        file = ResultFile(tmp_path / "results.jsonl", {})
        with pytest.raises(ModelUnreachable):
            solve(asked(library, server, tmp_path), file)
        assert (len(server.seen), file.results) == (3, {})


def test_an_exception_of_an_agent_is_one_search_s(library: Path, tmp_path: Path) -> None:
    agent = tmp_path / "fragile.py"
    agent.write_text(OWN_AGENT + FRAGILE)
    with ChatServer(lambda _: {"answer": "at once", "evidence": [1]}) as server:
        found = solve(asked(library, server, tmp_path), ResultFile(None, {}), system=f"agent:{agent}")
    assert [each.error for each in found] == ["", "ZeroDivisionError: not this one", "", ""]


FRAGILE = """
async def run(session, parameters):
    if "boat 1" in session.question.text:
        raise ZeroDivisionError("not this one")
    return await UNIFORM.run(session, parameters)

MINE = replace(UNIFORM, name="mine", run=run)
"""


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


@pytest.mark.parametrize("changed", CHANGES)
def test_a_result_is_kept_only_if_all_that_it_depends_on_is_the_same(
    library: Path, tmp_path: Path, kinodex: Kinodex, changed: str
) -> None:
    change, expected = CHANGES[changed]
    shutil.copytree(library, tmp_path / "library")
    (tmp_path / "agent.py").write_text(OWN_AGENT)
    out = tmp_path / "results.jsonl"
    with ChatServer(lambda _: {"answer": "yes", "evidence": [1]}, models=("tester", "another")) as server:
        options = {"--contender": f"agent:{tmp_path / 'agent.py'}", "--model": "tester", "--base-url": server.base_url}
        of = Inputs(tmp_path, options | {"--out": out, "--library": tmp_path / "library"})

        def search():
            given = [each for pair in of.options.items() for each in pair]
            searches = tmp_path / "searches.jsonl"
            return kinodex("eval", "search", "own", searches, "--contender", "frames", *given, "--no-cache")

        of.write()
        of.paint("red")
        of.caption("a boat")
        ran = search()
        assert ran.code == 0, ran
        assert len(out.read_text().splitlines()) == 1 + 2
        change(of)
        ran = search()
    if isinstance(expected, str):
        assert ran.code == 2 and expected in ran.err and "give a new file" in ran.err, ran
    else:
        assert ran.code == 0, ran
        assert len(out.read_text().splitlines()) == 1 + 2 + expected


def test_an_agent_can_be_added_to_a_file_begun_without_one_and_left_out_again(
    library: Path, tmp_path: Path, kinodex: Kinodex
) -> None:
    searches, out = tmp_path / "searches.jsonl", tmp_path / "results.jsonl"
    searches.write_text('{"id": "1", "text": "a boat", "relevant": [["film-01", 0, 3]]}\n')
    with ChatServer(lambda _: {"answer": "yes", "evidence": [1]}, models=("tester", "another")) as server:
        given = "--library", library, "--out", out, "--base-url", server.base_url, "--no-cache", "--contender", "ground"
        command = "eval", "ground", "own", searches, *given
        agent = "--contender", "agent:uniform", "--model"
        for options, lines in (((), 1), ((*agent, "tester"), 2), (("--model", "another"), 2), ((*agent, "tester"), 2)):
            ran = kinodex(*command, *options)
            assert ran.code == 0, ran
            assert len(out.read_text().splitlines()) == 1 + lines
        assert len(server.seen) == 1
        bad(kinodex, *command, *agent, "another", code=2, says="results of agent:uniform with models")
