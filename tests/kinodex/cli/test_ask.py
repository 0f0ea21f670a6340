"""`kinodex ask` and `agents`: the search as a tree, the answer with its ledger, traces, follow-ups, refusals."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kinodex.agent.ask import ask
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.question import Question
from kinodex.agent.videos.environment import Environment
from kinodex.cli.tree_view import TreeView, show_answer
from kinodex.index.library import Library
from kinodex.index.store.filters import at_least
from kinodex.index.store.schema import CHECKSUM
from kinodex.jobs.open import open_environment
from kinodex.web.curves import curves
from kinodex.web.inputs import classify_inputs
from kinodex.web.viewer_api import ViewerApi
from tests.support.command import Kinodex, bad, json_of
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library
from tests.support.servers.chat_server import ChatServer


@pytest.mark.slow
def test_ask_prints_tree_answer_and_writes_a_trace_that_replays(
    kinodex: Kinodex, library: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    options = "--option", "a blue boat", "--option", "a pink elephant"
    asked = "ask", library, "What appears in the film?", *options, "--video", "film-01"
    ran, whole = kinodex(*asked, "--trace", trace), kinodex(*asked, "-v")
    assert ran.code == whole.code == 0
    titles = [line.split()[0] for line in ran.out.splitlines()]
    assert titles == ["answer", "status", *["evidence"] * (len(titles) - 4), "ledger", "trace"], "no step of the search"
    assert whole.out.startswith("kino with similarity on film-01, 30 frames in the index\n  answer")
    live, replayed = json_of(kinodex, *asked), json_of(kinodex, *asked, "--model", f"replay:{trace}")
    for key in ("status", "option", "text", "evidence", "rounds"):
        assert live[key] == replayed[key]


@pytest.mark.slow
def test_ask_looks_for_frames_in_another_space(kinodex: Kinodex, described: Path, tmp_path: Path) -> None:
    trace, other = tmp_path / "trace.jsonl", Library.open(str(described)).spaces()[1]
    question = ("ask", described, "What is to be seen?", "--option", "a boat", "--option", "a cat", "--agent", "eea")
    there = (*question, "--video", "film-02", "--space", other.digest)
    assert kinodex(*there, "--trace", trace).code == 0
    assert json.loads(trace.read_text().splitlines()[0])["space"] == str(other)
    seen = ViewerApi(classify_inputs([str(trace), str(described)]))
    drawn, in_own = seen.curves("t0"), curves(seen.view("t0"), open_environment(str(described), ["film-02"]))
    assert [each.query for each in drawn] == [each.query for each in in_own] != []
    assert [each.percent for each in drawn] != [each.percent for each in in_own]
    bad(kinodex, *question, "--video", "film-01", "--space", other.name, code=4, says="has no vectors yet")
    bad(kinodex, *question, "--space", "nowhere", code=2, says=other.name)


def test_a_model_that_never_makes_sense_has_an_exit_code_of_its_own(kinodex: Kinodex, library: Path) -> None:
    with ChatServer(lambda body: "Lorem ipsum.") as server:
        model = ("--model", "tester", "--base-url", server.base_url, "--no-cache")
        ran = kinodex("ask", library, "What is it?", *model)
    assert ran.code == 6, ran
    assert ran.error_line.startswith("error: no reply of tester could be used, the last because: ")
    assert ran.error_line.endswith("`kinodex doctor --base-url URL` finds out what the endpoint can do")
    assert "invalid" in ran.out


def test_force_choice_leaves_no_way_out(kinodex: Kinodex, library: Path) -> None:
    with ChatServer(lambda body: {"action": "answer", "option": "B"}) as server:
        model = ("--model", "tester", "--base-url", server.base_url, "--no-cache", "--agent", "uniform", "--json")
        asked = ("ask", library, "What is it?", "--option", "a boat", "--option", "a cat", *model)
        assert json.loads(kinodex(*asked, "--force-choice").out)["letter"] == "B"
        assert "insufficient" not in json.dumps(server.seen[-1].body)
        assert kinodex(*asked).code == 0
        assert "insufficient" in json.dumps(server.seen[-1].body)


def test_a_follow_up_goes_on_from_a_trace(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    ask = ("ask", library, "What colour is the bird at sea?", "--option", "red", "--option", "black")
    first = json_of(kinodex, *ask, "--trace", tmp_path / "first.jsonl")
    again = json_of(kinodex, *ask, "--follow-up", tmp_path / "first.jsonl")
    assert again["ledger"]["calls"] == 1 < first["ledger"]["calls"]


def test_bad_questions(kinodex: Kinodex, library: Path) -> None:
    bad(kinodex, "ask", library, " ", code=2, says="question is empty")
    for options, says in (
        (("--option", "one"), "1 option"),
        (("--agent", "eeaa"), "eeaa"),
        (("--set", "frames"), "NAME=VALUE"),
        (("--set", "frame=3"), "did you mean 'frames'"),
        (("--follow-up", library / "none.jsonl"), "none.jsonl"),
        (("--follow-up", "a", "--trace", "a"), "overwrite"),
        (("--max-rounds", 0), "0 rounds"),
        (("--max-cost", 1), "--max-cost"),
    ):
        bad(kinodex, "ask", library, "what?", *options, code=2, says=says)


def test_a_full_disk_is_one_line(kinodex: Kinodex, library: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    asked = ("ask", library, "what?", "--video", "film-01", "--trace", full)
    bad(kinodex, *asked, code=2, says="No space left on device; free some space")


def test_a_model_that_reads_text_alone_is_refused_before_it_is_loaded(kinodex: Kinodex, library: Path) -> None:
    says = "got --model constrained:nowhere, which reads only text, and the agent eea shows it frames; give --agent"
    bad(kinodex, "ask", library, "What is it?", "--agent", "eea", "--model", "constrained:nowhere", code=2, says=says)


def test_bad_models(kinodex: Kinodex, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ask = ("ask", library, "what colour is the boat?", "--video", "film-01")
    bad(kinodex, *ask, "--model", "some-model", code=5, says="OPENAI_API_KEY")
    bad(kinodex, *ask, "--model", "tester", "--base-url", "nonsense", code=2, says="nonsense")
    roles = tmp_path / "roles.toml"
    roles.write_text('[default]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\nattempts = 1\n')
    bad(kinodex, *ask, "--models", roles, code=5, says="127.0.0.1:9")


def test_a_dry_run_refuses_what_the_run_would(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    asking = ("ask", library, "What appears?", "--video", "film-01")
    nowhere = tmp_path / "nowhere" / "trace.jsonl"
    cases = (("--model", f"replay:{nowhere}"), ("--trace", nowhere), ("--trace", tmp_path))
    for options in cases:
        real, dry = kinodex(*asking, *options), kinodex(*asking, *options, "--dry-run")
        assert real.code == dry.code == 2
        assert dry.error_line == real.error_line
    good = kinodex(*asking, "--dry-run", "--trace", tmp_path / "trace.jsonl")
    assert good.code == 0 and "| kino | 1 |" in good.out
    assert "--limit" not in good.out, "`ask` has no such option"
    assert not (tmp_path / "trace.jsonl").exists()


def test_a_damaged_picture_is_an_error_wherever_it_would_be_shown(
    kinodex: Kinodex, library: Path, tmp_path: Path
) -> None:
    damaged, out = Library.open(str(shutil.copytree(library, tmp_path / "damaged"))), tmp_path / "out"
    damaged.tables.update("frames", at_least("frame_no", 0), {CHECKSUM: 1})
    uri = damaged.uri
    says = f"in {uri} is not as it was written; `kinodex maintain {uri} --check --deep` names every such"
    for command in (
        ("ask", uri, "What is it?", "--video", "film-01", "--agent", "uniform"),
        ("export", "frames", uri, out, "--of", "shots"),
        ("export", "hf", uri, out),
    ):
        bad(kinodex, *command, code=4, says=says)
        assert not list(out.rglob("*.jpg"))


QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    films = {"[b]film[/b]\n": film(1, 900, {700: ("red kite desert", 12)})}
    return environment_of(make_library(tmp_path_factory.mktemp("tree") / "library", films))


def test_a_tree_and_an_answer_with_evidence_ledger_and_second_look(environment: Environment) -> None:
    out = io.StringIO()
    view = TreeView(Console(file=out, width=200))
    given: dict[str, Any] = {"agent": "eea", "budget": Budget(rounds=3), "on_event": view}
    answer = asyncio.run(ask(QUESTION, environment, ScriptedModel(explorer), **given))
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("eea with scripted on [b]film[/b]\\n, 900 frames in the index")
    assert [line.split()[1] for line in lines if line.startswith("round ")] == ["1", "2", "3"]
    assert "opens 0: 0:00.0 to 15:00.0, sees " in out.getvalue()
    assert any(line.startswith("   ") and " reward " in line for line in lines)

    def shown(**changes: Any) -> str:
        out = io.StringIO()
        bill = replace(answer.ledger, **changes.pop("bill", {}))
        show_answer(replace(answer, ledger=bill, **changes), environment.videos, Console(file=out, width=200))
        return out.getvalue()

    lines = shown().splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["answer", "status"]
    assert all("[b]film[/b]\\n" in line for line in lines if line.startswith("evidence"))
    ledger = answer.ledger
    assert lines[-1].startswith(f"ledger    {ledger.frames} frames of 900, {ledger.frame_shows} shows, 3 rounds")
    assert "a second look at the evidence alone comes to this answer" in shown(supported=True)
    assert "a second look at the evidence alone does not come to this answer" in shown(supported=False)
    refused = shown(unverified="the second look was refused: a [filter]")
    assert "verified  no: the second look was refused: a [filter]\n" in refused
    for bill, said in (
        ({"chapters": 4}, "4 scenes or chapters listed"),
        ({"videos_without_chapters": 1}, "1 video without scenes and chapters"),
        ({"chapters": 4, "videos_without_chapters": 2}, "listed, 2 videos without scenes and chapters"),
    ):
        assert shown(bill=bill).splitlines()[-1].endswith(said)


def test_agents_are_listed_with_what_can_be_set(kinodex: Kinodex) -> None:
    listed = json_of(kinodex, "agents")
    assert [each["name"] for each in listed][:1] == ["eea"]
    assert all(each["line"] and each["parameters"]["rounds"] >= 1 for each in listed)
    for each in listed:
        shown = kinodex("agents", each["name"])
        assert shown.code == 0
        assert all(f"--set {name}=" in shown.out for name in each["parameters"])
        assert each["meanings"].keys() == each["parameters"].keys(), "every parameter is explained"
        for settings in each["ablations"].values():
            assert set(settings) <= set(each["parameters"])
    table = kinodex("agents").out
    assert all(each["name"] in table for each in listed)
    bad(kinodex, "agents", "eeaa", code=2, says="did you mean 'eea'")
