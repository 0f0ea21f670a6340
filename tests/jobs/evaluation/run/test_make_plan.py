"""The plan of a run: spaces, missing videos, episodes, and requests that cannot work."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kinodex.agent.protocol import AnswerRules
from kinodex.index.library import Library
from kinodex.jobs.add.run import add
from kinodex.jobs.add.vectors import Vectors
from kinodex.jobs.eval.folder import PLAN, read_items, read_plan, read_results, trace_file
from tests.support.command import Kinodex, bad
from tests.support.libraries.text_library import text_library
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.models.tiny_models import TINY, write_model
from tests.support.runs.eval_runs import ALL, ANSWER, EACH, FILMS, asked, at, caption_library, command, write_questions
from tests.support.servers.chat_server import ChatServer

PICTURED = ("harbour", "orchard")
LATER = "later"


@pytest.fixture(scope="module")
def two_spaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `library` of two films in two spaces and one in its own alone, and questions about the two."""
    folder = tmp_path_factory.mktemp("eval")
    first, second, later = (tiny_film(folder / f"{name}.mp4", 6, seed) for seed, name in enumerate((*PICTURED, LATER)))
    library = library_of(folder / "library", [first, second])
    assert add(library, Vectors(write_model(folder / "other", TINY))).added == len(PICTURED)
    library_of(folder / "library", [later])
    write_questions(folder, PICTURED, each=1)
    return folder


def space_command(two_spaces: Path, out: Path, *options: object) -> tuple[object, ...]:
    asked = ("eval", "sketch", two_spaces / "library", "--annotations", two_spaces / "questions.jsonl", "--out", out)
    return (*asked, "--no-controls", "--no-page", "--anyway", *options)


def test_a_run_is_of_one_space_and_says_of_which(two_spaces: Path, kinodex: Kinodex, tmp_path: Path) -> None:
    library, own, there = Library.open(str(two_spaces / "library")), tmp_path / "own", tmp_path / "there"
    first, other = library.spaces()
    assert kinodex(*space_command(two_spaces, own)).code == 0
    ran = kinodex(*space_command(two_spaces, there, "--space", other.name))
    assert ran.code == 0, ran
    assert f", in {other}" in " ".join(ran.out.split())
    plan, frames = read_plan(there), {f"{film}-0": library.video(film).frames for film in PICTURED}
    assert (read_plan(own).space, plan.space) == (str(first), str(other))
    assert plan.index_cost.frames == sum(frames.values())
    for record in read_results(there):
        assert (record.error, record.ledger.index_frames) == ("", frames[record.item_id])
        with gzip.open(trace_file(there, record.contender, record.item_id)) as lines:
            assert json.loads(lines.readline())["space"] == str(other)

    bad(kinodex, *space_command(two_spaces, there), code=2, says=f"space was {other} and is now {first}")
    assert kinodex(*space_command(two_spaces, there, "--space", other.digest)).code == 0
    assert kinodex(*space_command(two_spaces, own, "--space", first.digest)).code == 0
    differs = [line for line in kinodex("eval", "compare", own, there).out.splitlines() if "differs" in line]
    assert differs == [f"differs: space: {first} / {other}"]


def test_the_built_in_model_is_asked_about_its_own_space_alone(
    two_spaces: Path, kinodex: Kinodex, tmp_path: Path
) -> None:
    other = Library.open(str(two_spaces / "library")).spaces()[1]
    given = space_command(two_spaces, tmp_path / "run", "--space", other.name)
    unsure = [each for each in given if each != "--anyway"]
    bad(kinodex, *unsure, code=2, says="its answers would be nonsense; name a language model with --model")
    assert not (tmp_path / "run").exists()
    assert kinodex(*unsure, "--agent", "random").code == 0, "it asks no model"


def test_a_run_is_of_one_rule_for_its_answers_and_says_which(place: Path, kinodex: Kinodex, tmp_path: Path) -> None:
    options = command(place, tmp_path / "run", "--agent", "uniform", "--no-controls")
    bad(kinodex, *options, "--force-choice", "--early-insufficient", code=2, says="contradict each other")
    assert kinodex(*options, "--force-choice").code == 0
    assert read_plan(tmp_path / "run").rules == AnswerRules(force_choice=True)
    says = "rules of answers was an answer has to be chosen and is now usual"
    bad(kinodex, *options, code=2, says=says)
    assert kinodex(*options, "--force-choice").code == 0


def test_a_run_is_of_one_price_and_plans_without_prices_go_on(
    place: Path, kinodex: Kinodex, tmp_path: Path, server: ChatServer
) -> None:
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", "--model", "tester", "--no-cache")
    priced = (*options, "--base-url", server.base_url, "--input-price", "2")
    server.reply = lambda body: ANSWER
    assert kinodex(*priced).code == 0
    plan = tmp_path / "run" / "run.json"
    begun = json.loads(plan.read_text())
    assert (begun["at_once"], begun["prices"]) == (32, {"default": "input 2, output 0"})
    says = "list of prices was default: input 2, output 0 and is now default: input 3, output 0"
    bad(kinodex, *priced, "--input-price", "3", code=2, says=says)
    old = {name: value for name, value in begun.items() if name not in ("at_once", "prices")}
    plan.write_text(json.dumps(old))
    assert kinodex(*priced, "--input-price", "3").code == 0


def test_a_space_that_not_all_is_held_in_is_refused(two_spaces: Path, kinodex: Kinodex, tmp_path: Path) -> None:
    (_, other), out = Library.open(str(two_spaces / "library")).spaces(), tmp_path / "run"
    bad(kinodex, *space_command(two_spaces, out, "--space", "nowhere"), code=2, says=other.name)
    questions = write_questions(tmp_path, (*PICTURED, LATER), each=1)
    says = "1 of the 3 videos asked about, such as later, have no vectors yet"
    bad(
        kinodex, *space_command(two_spaces, out, "--annotations", questions, "--space", other.digest), code=4, says=says
    )
    assert not out.exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("--limit", "2"), "limit was none and is now 2"),
        (("--only", "kind=kite"), "part was all and is now kind = kite"),
        (("--agent", "random:seed=1"), "list of agents was random and is now random, random:seed=1"),
        (("--no-subtitles",), "use of subtitles was on and is now off"),
        (("--max-rounds", "2"), "budget was none and is now 2 rounds"),
    ],
)
def test_another_run_does_not_go_into_the_same_folder(place, kinodex, tmp_path, change, says):
    options = command(place, tmp_path / "run", "--agent", "random", "--no-controls")
    assert kinodex(*options).code == 0
    bad(kinodex, *options, *change, code=2, says=says)


def test_a_library_reached_by_a_link_is_the_same_library(place, kinodex, tmp_path):
    out, link = tmp_path / "run", tmp_path / "linked"
    options = command(place, out, "--agent", "random", "--no-controls")
    assert kinodex(*options).code == 0
    link.symlink_to(place / "library")
    linked = [link if each == place / "library" else each for each in options]
    assert kinodex(*linked).code == 0, "continued, not refused as a run of another library"
    there = [tmp_path / "there" if each == out else each for each in linked]
    assert kinodex(*there).code == 0
    assert "the plans agree in all except their agents" in kinodex("eval", "compare", out, tmp_path / "there").out


def test_a_plan_that_says_no_rules_was_made_when_a_model_could_give_up_at_any_time(place, kinodex, tmp_path):
    out = tmp_path / "run"
    options = command(place, out, "--agent", "random", "--no-controls")
    assert kinodex(*options).code == 0
    plan = json.loads((out / PLAN).read_text())
    del plan["rules"]
    (out / PLAN).write_text(json.dumps(plan))
    assert read_plan(out).rules is None
    bad(kinodex, *options, code=2, says="rules of answers was early and is now usual")
    assert kinodex(*options, "--early-insufficient").code == 0


def test_a_missing_video_is_listed_with_its_questions(place, kinodex, tmp_path):
    write_questions(tmp_path, (*FILMS, "lost"))
    options = ("--annotations", tmp_path / "questions.jsonl", "--agent", "random", "--no-controls")
    assert kinodex(*command(place, tmp_path / "run", *options)).code == 0
    plan = read_plan(tmp_path / "run")
    assert [(each.video, each.questions) for each in plan.missing] == [("lost.mp4", EACH)]
    assert (plan.questions, set(plan.items)) == (4 * EACH, ALL)
    assert plan.index_cost.captions == 15 * len(FILMS)


def test_an_episode_is_all_its_clips_and_the_true_one_goes_by_its_id(kinodex, tmp_path):
    clips = [f"s05e06_seg02_clip_{number:02d}" for number in (0, 1)]
    library = caption_library(tmp_path / "library", clips)
    ids = {row.title: row.video_id for row in library.videos()}
    said = {"qid": 1, "q": "Who?", **{f"a{n}": f"person {n}" for n in range(5)}, "answer": "a1", "ts": [1.0, 2.5]}
    rows = [{**said, "episode_name": "s05e06", "occur_clip": clips[1]}]
    (tmp_path / "LongTVQA_val.json").write_text(json.dumps(rows))
    options = ("eval", "longtvqa", tmp_path / "library", "--annotations", tmp_path, "--out", tmp_path / "run")
    assert kinodex(*options, "--agent", "random", "--no-controls", "--no-page").code == 0
    (item,) = read_items(tmp_path / "run")
    assert read_plan(tmp_path / "run").items == {"1": tuple(ids[clip] for clip in clips)}
    assert (item.truth.clip, item.duration_s) == (ids[clips[1]], 60.0)


def test_what_cannot_work_is_refused_before_anything_is_asked(place, kinodex, server, tmp_path):
    out = tmp_path / "run"
    bad(kinodex, *command(place, out, "--agent", "eea"), code=2, says="looks at frames")
    bad(kinodex, *command(place, out, "--agent", "videoagent2"), code=2, says="reasons in words")
    bad(kinodex, *command(place, out, "--agent", "uniform:frame=3"), code=2, says="did you mean 'frames'?")
    write_questions(tmp_path, ["lost"])
    elsewhere = ("--annotations", tmp_path / "questions.jsonl")
    bad(kinodex, *command(place, out, *elsewhere), code=2, says="holds none of the 1 videos")
    bad(kinodex, *command(place, out, "--agent", "blind", *at(server, tmp_path, model="other")), code=5, says="other")
    assert asked(out, "blind") == []


def test_a_transcript_that_is_all_there_is_cannot_be_hidden(place, kinodex, tmp_path):
    text_library(tmp_path / "library", {}, transcript={film: [(0.0, 2.0, "a kite")] for film in FILMS}, space="builtin")
    options = command(place, tmp_path / "run", "--agent", "videotree", "--no-subtitles")
    told = [tmp_path / "library" if each == place / "library" else each for each in options]
    bad(kinodex, *told, code=2, says="holds a transcript alone")
