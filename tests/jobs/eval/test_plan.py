"""The plan of a run: its contenders, its items and their videos, and what makes it another run."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.errors import UnknownAgent
from kinodex.agent.limits.budget import Budget
from kinodex.index.library import Library
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import Vectors
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import LIKE_FIRST, parse_contenders
from kinodex.jobs.eval.folder import IndexCost, RunPlan, read_items, read_plan, read_results, trace_file
from kinodex.jobs.eval.plan import MAY_DIFFER, check_same
from kinodex.jobs.eval.report import report_run
from tests.support.command import Kinodex, bad
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg
from tests.support.libraries.text_library import text_video_id
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.models.tiny_models import TINY, write_model
from tests.support.runs.eval_runs import OWN_AGENT, asked, at, command, write_questions
from tests.support.runs.solved_runs import item, plan_of
from tests.support.servers.chat_server import ChatServer
from tests.world.benchmark import SKETCHES

# Specs of agents parsed into systems, with ablations and controls.


def test_a_spec_is_an_agent_and_its_settings() -> None:
    (system,) = parse_contenders(["eea:anchor-frames=2,pooling=sum"], controls=False)
    assert (system.name, system.agent) == ("eea:anchor-frames=2,pooling=sum", "eea")
    assert system.settings == {"anchor_frames": "2", "pooling": "sum"}
    assert (system.source, system.code, system.is_control) == (None, None, False)


def test_controls_are_added_and_uniform_follows_the_first_agent() -> None:
    names = [each.name for each in parse_contenders(["vca", "eea"])]
    assert names == ["vca", "eea", *(f"{each}, as many frames as vca" for each in LIKE_FIRST), "blind", "random"]
    assert [each.name for each in parse_contenders(["vca"], has_language=False)][1:] == [
        "uniform, as many frames as vca",
        "random",
    ]
    assert [each.name for each in parse_contenders(["blind", "uniform"])] == [
        "blind",
        "uniform",
        "similarity",
        "random",
    ]


def test_the_file_of_ones_own_agent_is_kept_with_its_code(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN_AGENT)
    (system,) = parse_contenders([f"{path}:frames=3"], controls=False)
    assert (system.name, system.source, system.settings) == ("mine:frames=3", OWN_AGENT, {"frames": "3"})
    path.write_text(OWN_AGENT + "\n")
    (changed,) = parse_contenders([str(path)], controls=False)
    assert None not in (system.code, changed.code)
    assert system.code != changed.code
    assert system.find_variant().name == "mine"


@pytest.mark.parametrize(
    ("specs", "error", "says"),
    [
        (["eea", "eea"], UsageError, "got the agent 'eea' twice"),
        (["eea:frames"], UsageError, "got --agent eea:frames; write it as"),
        (["eea:=3"], UsageError, "write it as AGENT or AGENT:NAME=VALUE"),
        (["nobody"], UnknownAgent, "nobody"),
    ],
)
def test_specs_that_make_no_sense_are_refused(specs: list[str], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        parse_contenders(specs)


# The plan of a run: spaces, missing videos, episodes, and requests that cannot work.


PICTURED = ("harbour", "orchard")


@pytest.fixture(scope="module")
def two_spaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `library` of two films in two spaces and one in its own alone, and questions about the two."""
    folder = tmp_path_factory.mktemp("eval")
    first, second, later = (
        tiny_film(folder / f"{name}.mp4", 6, seed) for seed, name in enumerate((*PICTURED, "later"))
    )
    library = library_of(folder / "library", [first, second])
    assert add(library, Vectors(space=write_model(folder / "other", TINY))).added == len(PICTURED)
    library_of(folder / "library", [later])
    write_questions(folder, PICTURED, each=1)
    return folder


def space_command(two_spaces: Path, out: Path, *options: object) -> tuple[object, ...]:
    asked = ("eval", SKETCHES, two_spaces / "library", "--annotations", two_spaces / "questions.jsonl", "--out", out)
    return (*asked, "--no-controls", "--no-page", *options)


@pytest.mark.slow
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


@pytest.mark.slow
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


# An answer of a run is kept only while all that it depends on is the same: else the run says what differs.


@dataclass
class Inputs:
    """All that a run is given, as files and options that a test may change."""

    folder: Path
    roles: dict[str, Any]
    options: list[object]

    def command(self) -> tuple[object, ...]:
        (self.folder / "roles.toml").write_text(
            "[default]\n" + "".join(f"{name} = {toml(value)}\n" for name, value in self.roles.items())
        )
        out, agent = self.folder / "run", self.folder / "mine.py"
        models = "--models", self.folder / "roles.toml", "--no-cache"
        return command(self.folder, out, "--agent", agent, "--no-controls", *models, *self.options)


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {toml(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture
def inputs(place: Path, server: ChatServer, tmp_path: Path) -> Inputs:
    shutil.copytree(place / "library", tmp_path / "library")
    shutil.copy(place / "questions.jsonl", tmp_path)
    (tmp_path / "mine.py").write_text(OWN_AGENT)
    return Inputs(tmp_path, {"model": "tester", "base_url": server.base_url, "attempts": 1}, ["--limit", 4])


def of_roles(**settings: object) -> Callable[[Inputs], None]:
    return lambda inputs: inputs.roles.update(settings)


def option(*options: object) -> Callable[[Inputs], None]:
    return lambda inputs: inputs.options.extend(options)


def edit(name: str, old: str, new: str) -> Callable[[Inputs], None]:
    def change(inputs: Inputs) -> None:
        file = inputs.folder / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    return change


def caption(inputs: Inputs) -> None:
    """Write a film's captions again."""
    library, id_ = Library.open(str(inputs.folder / "library")), text_video_id("harbour")
    vector = None
    row = SimpleNamespace(segment_no=0, start_s=0.0, end_s=2.0, text="a grey kite", confidence=None, vector=vector)
    library.additions.add_captions({id_: [row]}, "another")
    assert library.additions.complete("captions", "another", {id_: 1}, {}) == ()


def speech(inputs: Inputs) -> None:
    library, id_ = Library.open(str(inputs.folder / "library")), text_video_id("harbour")
    line = SimpleNamespace(start_s=0.0, end_s=2.0, text="a red kite", language=None, speaker=None)
    library.additions.add_speech({id_: [line]}, "another", "imported")
    assert library.additions.complete("speech", "another", {id_: 1}, {}) == ()


def forget(inputs: Inputs) -> None:
    library, id_ = Library.open(str(inputs.folder / "library")), text_video_id("orchard")
    library.additions.discard("captions", "by hand", id_)


MODELS = "list of models was"
CHANGED = "of the videos changed in the library since, such as "
MATTERS: dict[str, tuple[Callable[[Inputs], None], str]] = {
    "questions": (edit("questions.jsonl", "number 3?", "number three?"), "hash of the annotations was"),
    "agent's file": (edit("mine.py", '"mine"', '"mine" '), "list of agents was mine"),
    "agent's parameter": (option("--agent", "uniform:frames=9"), "list of agents was mine"),
    "captions": (caption, CHANGED),
    "speech": (speech, CHANGED),
    "captions taken away": (forget, CHANGED),
    "model": (of_roles(model="other"), MODELS),
    "temperature": (of_roles(temperature=0.5), MODELS),
    "price": (of_roles(price={"input": 1.0}), "list of prices was none and is now default: input 1"),
    "repetition": (option("--repetition", 2), MODELS),
    "budget": (option("--max-frames", 3), "budget was none and is now 3 frames"),
    "limit": (option("--limit", 2), "limit was 4 and is now 2"),
    "rules": (option("--force-choice"), "rules of answers was usual and is now an answer has to be chosen"),
    "what is said": (option("--hide", "speech"), "list of hidden lines was empty and is now speech"),
    "text on screen": (option("--hide", "screen_text"), "list of hidden lines was empty and is now screen_text"),
    "kept captions": (option("--no-keep-captions"), "keeping captions was on"),
    "part": (option("--only", "kind=kite"), "part was all and is now kind = kite"),
    "draw": (option("--seed", 2), "seed was 0 and is now 2"),
    "at once": (option("--at-once", 2), "number of requests at once was 32 and is now 2"),
    "nothing": (lambda inputs: None, ""),
    "patience": (of_roles(timeout_s=7.0, attempts=2, give_up_after_s=9.0), ""),
    "key": (of_roles(key_env="ANOTHER_KEY"), ""),
    "traces": (option("--no-traces"), ""),
    "limits of the run": (option("--max-errors", 2, "--max-senseless", 3), ""),
}
"""Changes, and what is said of them; those of which nothing is said do not matter."""


@pytest.mark.slow
def test_each_input_is_changed_in_turn(
    inputs: Inputs, kinodex: Kinodex, server: ChatServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert kinodex(*inputs.command()).code == 0
    begun = shutil.copytree(inputs.folder, tmp_path_factory.mktemp("kept") / "begun")
    server.seen.clear()
    for name, (change, says) in MATTERS.items():
        changed = replace(inputs, roles=dict(inputs.roles), options=list(inputs.options))
        change(changed)
        ran = kinodex(*changed.command())
        assert ran.code == (2 if says else 0) and says in ran.err, f"{name}: {ran}"
        assert server.seen == [], name
        shutil.rmtree(inputs.folder)
        shutil.copytree(begun, inputs.folder)


BEGUN = plan_of([item("a")], ("eea",), at_once=8, states={"v": "1"})
OTHER: dict[str, Any] = {
    "benchmark": "another",
    "title": "Another",
    "annotations": "/elsewhere",
    "annotations_sha256": "1" * 64,
    "scoring": "judge",
    "library": "/another",
    "space": "another",
    "contenders": parse_contenders(["vca"], controls=False),
    "models": {"default": "another"},
    "budget": Budget(rounds=3),
    "hide": ("speech",),
    "keep_captions": False,
    "limit": 3,
    "seed": 9,
    "questions": 7,
    "items": {"b": ("w",)},
    "missing": ("one",),
    "problems": ("one",),
    "index_cost": IndexCost(2, 2.0, 2, 2),
    "version": "9.9",
    "part": "kind = kite",
    "rules": AnswerRules(force_choice=True),
    "at_once": 9,
    "prices": {"default": "input 1, output 0"},
    "states": {"v": "2"},
    "contents": {"local:folder": "2"},
}


@pytest.mark.parametrize("name", [each.name for each in fields(RunPlan)])
def test_a_plan_that_differs_in_one_field_is_another_run(name: str) -> None:
    assert set(OTHER) == {each.name for each in fields(RunPlan)}
    now = replace(BEGUN, **{name: OTHER[name]})
    check_same(BEGUN, BEGUN, Path("run"))
    if name in MAY_DIFFER:
        check_same(BEGUN, now, Path("run"))
        return
    with pytest.raises(UsageError, match="run holds another run: "):
        check_same(BEGUN, now, Path("run"))


# The evidence of a benchmark on a film whose timestamps begin at 1,000 s, and other facts from the library.


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
