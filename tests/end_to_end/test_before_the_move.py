"""A library, traces, cached replies and a run of an earlier version (tests/data/README.md) are read by this one."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Kinodex
from tests.support.models.stage_models import tiny_film
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.rule_server import MODEL, Rules

SERVER = "http://127.0.0.1:8731/v1"
"""Where the model was that wrote the cached replies; nothing listens there."""
AGENTS = ("eea", "longvideoagent", "vca", "videoagent", "videoagent2", "videoseek", "videotree")
TRACES = (*(f"{agent}-rules" for agent in AGENTS), "eea-builtin")
CLOCK = ("seconds", "model_seconds")


@pytest.fixture(scope="module")
def before(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what the earlier version wrote; tests that write take a copy."""
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(root / "tests" / "data" / "before_the_move.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def library(before: Path, tmp_path: Path) -> Path:
    """A copy of the library."""
    return Path(shutil.copytree(before / "library", tmp_path / "library"))


def events_of(trace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]


def ask(kinodex: Kinodex, library: Path, trace: Path, *options: object) -> dict[str, Any]:
    """The answer to a trace's question by its agent."""
    started = events_of(trace)[0]
    question = started["question"]
    choices = [part for choice in question["options"] for part in ("--option", choice)]
    ran = kinodex("ask", library, question["text"], *choices, "--agent", started["agent"], "--json", *options)
    assert ran.code == 0, ran.err
    answer: dict[str, Any] = json.loads(ran.out)
    return answer


def answer_of(trace: Path) -> dict[str, Any]:
    answer: dict[str, Any] = events_of(trace)[-1]["answer"]
    return answer


def assert_same_answer(answer: dict[str, Any], trace: Path) -> None:
    """Check that the text, the option, the rounds and the times of the evidence are those of the trace."""
    earlier = answer_of(trace)
    for name in ("status", "text", "option", "rounds", "reason"):
        assert answer[name] == earlier[name], name
    times = [[(each["start_s"], each["end_s"]) for each in one["evidence"]] for one in (answer, earlier)]
    assert times[0] == times[1]


def assert_same_ledger(answer: dict[str, Any], trace: Path) -> None:
    """Check that all but the time that it took is that of the trace."""
    ledger = {name: figure for name, figure in answer_of(trace)["ledger"].items() if name not in CLOCK}
    assert {name: answer["ledger"][name] for name in ledger} == ledger


def test_the_library_is_opened_and_searched(kinodex: Kinodex, library: Path) -> None:
    info = json.loads(kinodex("info", library, "--json").out)
    (film,) = info["videos"]
    assert (film["title"], film["frames"]) == ("film-01", 30)
    ran = kinodex("search", library, "a brown key in the meadow", "--json")
    assert ran.code == 0, ran.err
    assert "film-01" in ran.out
    assert kinodex("maintain", library).code == 0


def test_a_video_and_captions_are_added_to_it(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    film = tiny_film(tmp_path / "boat.mp4", 3, 0)
    ran = kinodex("ingest", film, "--library", library)
    assert (ran.code, ran.err) == (0, "")
    with ChatServer(Rules(), models=[MODEL]) as server:
        ran = kinodex("add", "captions", library, "--model", MODEL, "--base-url", server.base_url)
        assert ran.code == 0, ran.err
        assert len(server.seen) > 0
    info = json.loads(kinodex("info", library, "--json").out)
    assert {video["title"] for video in info["videos"]} == {"film-01", "boat"}


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_replayed_to_the_same_answer(kinodex: Kinodex, before: Path, library: Path, name: str) -> None:
    trace = before / f"{name}.jsonl"
    answer = ask(kinodex, library, trace, "--model", f"replay:{trace}")
    assert_same_answer(answer, trace)
    assert_same_ledger(answer, trace)


def test_the_built_in_model_gives_the_same_answer(kinodex: Kinodex, before: Path, library: Path) -> None:
    trace = before / "eea-builtin.jsonl"
    answer = ask(kinodex, library, trace)
    assert_same_answer(answer, trace)
    assert_same_ledger(answer, trace)


@pytest.mark.parametrize("agent", AGENTS)
def test_cached_replies_are_found_and_no_request_is_sent(
    kinodex: Kinodex, before: Path, library: Path, tmp_path: Path, agent: str
) -> None:
    shutil.rmtree(library / "clips.lance")  # with the captions that agents keep there, most requests are not made
    (tmp_path / "cache").mkdir()
    shutil.copy(before / "replies.sqlite", tmp_path / "cache")
    trace = before / f"{agent}-rules.jsonl"
    answer = ask(kinodex, library, trace, "--model", MODEL, "--base-url", SERVER)
    assert_same_answer(answer, trace)
    calls = answer["ledger"]["calls"]
    assert answer["ledger"]["cached_calls"] == calls >= answer_of(trace)["ledger"]["calls"] > 0


def test_the_report_of_a_run_is_made_again_with_the_same_figures(
    kinodex: Kinodex, before: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(before / "run", tmp_path / "run")
    ran = kinodex("eval", "report", run, "--no-page", "--json")
    assert ran.code == 0, ran.err
    earlier = json.loads((before / "run" / "report.json").read_text(encoding="utf-8"))
    assert json.loads(ran.out) == earlier


def test_all_of_it_is_shown_in_the_viewer(kinodex: Kinodex, before: Path, library: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    traces = [before / f"{name}.jsonl" for name in TRACES]
    ran = kinodex("view", library, before / "run", *traces, "--out", page)
    assert ran.code == 0, ran.err
    assert "What appears right after the brown keys in the meadow?" in page.read_text(encoding="utf-8")
