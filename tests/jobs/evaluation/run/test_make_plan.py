"""`kinodex eval run --space`: the same questions asked in another space of the library, and told apart from its own."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from index.library import Library
from jobs.annotate.run import add
from jobs.annotate.vectors import Vectors
from jobs.evaluation.run.run_folder import read_plan, read_results, trace_file
from tests.support.command import Kinodex, bad
from tests.support.eval_runs import write_questions
from tests.support.stage_models import library_of, tiny_film
from tests.support.tiny_models import TINY, write_model

FILMS = ("harbour", "orchard")
LATER = "later"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `library` of two films in two spaces and one in its own alone, and questions about the two."""
    folder = tmp_path_factory.mktemp("eval")
    first, second, later = (tiny_film(folder / f"{name}.mp4", 6, seed) for seed, name in enumerate((*FILMS, LATER)))
    library = library_of(folder / "library", [first, second])
    assert add(library, Vectors(write_model(folder / "other", TINY))).added == len(FILMS)
    library_of(folder / "library", [later])
    write_questions(folder, FILMS, each=1)
    return folder


def command(place: Path, out: Path, *options: object) -> tuple[object, ...]:
    asked = ("eval", "sketch", place / "library", "--annotations", place / "questions.jsonl", "--out", out)
    return (*asked, "--no-controls", "--no-page", *options)


def test_a_run_is_of_one_space_and_says_of_which(place: Path, kinodex: Kinodex, tmp_path: Path) -> None:
    library, own, there = Library.open(str(place / "library")), tmp_path / "own", tmp_path / "there"
    first, other = library.spaces()
    assert kinodex(*command(place, own)).code == 0
    ran = kinodex(*command(place, there, "--space", other.name))
    assert ran.code == 0, ran
    assert f", in {other}" in " ".join(ran.out.split())
    plan, frames = read_plan(there), {f"{film}-0": library.video(film).frames for film in FILMS}
    assert (read_plan(own).space, plan.space) == (str(first), str(other))
    assert plan.index_cost.frames == sum(frames.values())
    for record in read_results(there):
        assert (record.error, record.ledger.index_frames) == ("", frames[record.item_id])
        with gzip.open(trace_file(there, record.contender, record.item_id)) as lines:
            assert json.loads(lines.readline())["space"] == str(other)

    bad(kinodex, *command(place, there), code=2, says=f"space was {other} and is now {first}")
    assert kinodex(*command(place, there, "--space", other.digest)).code == 0
    assert kinodex(*command(place, own, "--space", first.digest)).code == 0
    differs = [line for line in kinodex("eval", "compare", own, there).out.splitlines() if "differs" in line]
    assert differs == [f"differs: space: {first} / {other}"]


def test_a_space_that_not_all_is_held_in_is_refused(place: Path, kinodex: Kinodex, tmp_path: Path) -> None:
    (_, other), out = Library.open(str(place / "library")).spaces(), tmp_path / "run"
    bad(kinodex, *command(place, out, "--space", "nowhere"), code=2, says=other.name)
    questions = write_questions(tmp_path, (*FILMS, LATER), each=1)
    says = "1 of the 3 videos asked about, such as later, have no vectors yet"
    bad(kinodex, *command(place, out, "--annotations", questions, "--space", other.digest), code=4, says=says)
    assert not out.exists()
