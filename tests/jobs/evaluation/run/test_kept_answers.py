"""An answer of a run is kept only while all that it depends on is the same: else the run says what differs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kinodex.agent.limits import Budget
from kinodex.agent.protocol import AnswerRules
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import IndexCost, RunPlan
from kinodex.jobs.eval.plan import MAY_DIFFER, check_same
from kinodex.jobs.eval.systems import parse_systems
from kinodex.jobs.models import ModelChoice, local_contents
from tests.support.command import Kinodex, bad
from tests.support.libraries.text_library import text_video_id
from tests.support.runs.eval_runs import OWN_AGENT, command
from tests.support.runs.solved_runs import item, plan_of
from tests.support.servers.chat_server import ChatServer


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
        return command(
            self.folder,
            out,
            "--agent",
            agent,
            "--no-controls",
            "--models",
            self.folder / "roles.toml",
            "--no-cache",
            *self.options,
        )


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
    "max_tokens": (of_roles(max_tokens=99), MODELS),
    "reasoning": (of_roles(reasoning=False), MODELS),
    "joint_schema": (of_roles(joint_schema=True), MODELS),
    "context_tokens": (of_roles(context_tokens=9999), MODELS),
    "seed": (of_roles(seed=4), MODELS),
    "extra": (of_roles(extra={"reasoning_effort": "low"}), MODELS),
    "image_side_px": (of_roles(image_side_px=32), MODELS),
    "detail": (of_roles(detail="low"), MODELS),
    "images": (of_roles(images=3), MODELS),
    "price": (of_roles(price={"input": 1.0}), "list of prices was none and is now default: input 1"),
    "repetition": (option("--sample", 2), MODELS),
    "budget": (option("--max-frames", 3), "budget was none"),
    "rules": (option("--force-choice"), "rules of answers was"),
    "subtitles": (option("--no-subtitles"), "use of subtitles was on"),
    "text on screen": (option("--no-screen-text"), "use of text on screen was on"),
    "kept captions": (option("--no-keep-captions"), "keeping captions was on"),
    "part": (option("--only", "kind=kite"), "part was all"),
    "draw": (option("--seed", 2), "seed was 0 and is now 2"),
    "at once": (option("--at-once", 2), "number of requests at once was 32 and is now 2"),
}
MATTERS_NOT: dict[str, Callable[[Inputs], None]] = {
    "nothing": lambda inputs: None,
    "patience": of_roles(timeout_s=7.0, attempts=2, give_up_after_s=9.0),
    "key": of_roles(key_env="ANOTHER_KEY"),
    "traces": option("--no-traces"),
    "limits": option("--max-errors", 2, "--max-senseless", 3),
}


@pytest.mark.parametrize("name", [*MATTERS, *MATTERS_NOT])
def test_each_input_is_changed_in_turn(inputs: Inputs, kinodex: Kinodex, server: ChatServer, name: str) -> None:
    assert kinodex(*inputs.command()).code == 0
    change, says = MATTERS.get(name, (MATTERS_NOT.get(name), ""))
    assert change is not None
    change(inputs)
    server.seen.clear()
    if name in MATTERS:
        bad(kinodex, *inputs.command(), code=2, says=says)
    else:
        ran = kinodex(*inputs.command())
        assert ran.code == 0, ran
    assert server.seen == []


BEGUN = plan_of([item("a")], ("eea",), at_once=8, states={"v": "1"})
OTHER: dict[str, Any] = {
    "benchmark": "another",
    "title": "Another",
    "annotations": "/elsewhere",
    "annotations_sha256": "1" * 64,
    "scoring": "judge",
    "library": "/another",
    "space": "another",
    "contenders": parse_systems(["vca"], controls=False),
    "models": {"default": "another"},
    "budget": Budget(rounds=3),
    "subtitles": False,
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
    "screen_text": False,
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


def test_a_plan_of_an_older_version_goes_on_without_what_it_does_not_say() -> None:
    old = replace(BEGUN, at_once=None, states={})
    check_same(old, replace(BEGUN, prices={"default": "input 1"}, contents={"local:folder": "2"}), Path("run"))


def test_files_that_answer_are_known_by_what_they_hold(tmp_path: Path) -> None:
    trace, folder, roles = tmp_path / "a.jsonl", tmp_path / "model", tmp_path / "roles.toml"
    roles.write_text(
        f'[policy]\nmodel = "local:{folder}"\n[default]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    (folder / "sub").mkdir(parents=True)
    choices = [ModelChoice(f"replay:{trace}"), ModelChoice(f"local:{folder}"), ModelChoice(roles_file=roles)]

    def digests() -> list[str]:
        return ["".join(local_contents(each).values()) for each in choices]

    seen = [digests()]
    for path, text in ((trace, "x"), (trace, "y"), (folder / "sub" / "w", "x"), (folder / "sub" / "w", "y")):
        path.write_text(text)
        seen.append(digests())
    (folder / "sub" / "w").rename(folder / "w")
    seen.append(digests())
    assert len({each[0] for each in seen}) == 3 and len({each[1] for each in seen}) == 4
    assert [each[2] for each in seen] == [each[1] for each in seen]
    assert local_contents(ModelChoice(), None) == {}
    assert local_contents(ModelChoice(), str(folder)).keys() == {str(folder)}
