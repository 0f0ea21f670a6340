"""A library, traces, cached replies and a run that an earlier commit wrote (tests/data/README.md), read by this one.

A change of a prompt, a schema or the steps of an agent on purpose comes with a new archive.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.archives.read import AGENTS, SERVER, TRACES, answer_of, ask, run_again, run_ask, trace_name, unpack
from tests.support.command import Kinodex
from tests.support.house.once import made_once
from tests.support.servers.rule_server import MODEL

NAME = "recorded"


@pytest.fixture(scope="module")
def archive(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the unpacked archive; tests that write take a copy."""
    return made_once(tmp_path_factory, NAME, lambda folder: unpack(root / "tests" / "data" / f"{NAME}.tar.xz", folder))


@pytest.fixture
def library(archive: Path, tmp_path: Path) -> Path:
    """A copy of its library."""
    return Path(shutil.copytree(archive / "library", tmp_path / "library"))


def assert_same_answer(answer: dict, trace: Path) -> None:
    """Check that the text, the option, the rounds and the times of the evidence are those of the trace."""
    earlier = answer_of(trace)
    for name in ("status", "text", "option", "rounds", "reason"):
        assert answer[name] == earlier[name], name
    times = [[(each["start_s"], each["end_s"]) for each in one["evidence"]] for one in (answer, earlier)]
    assert times[0] == times[1]


def assert_same_ledger(answer: dict, trace: Path) -> None:
    """Check that all but the time that it took is that of the trace."""
    ledger = {name: value for name, value in answer_of(trace)["ledger"].items() if not name.endswith("seconds")}
    assert {name: answer["ledger"][name] for name in ledger} == ledger


@pytest.mark.slow
def test_a_trace_of_another_request_is_not_replayed_but_pointed_to(
    kinodex: Kinodex, archive: Path, library: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "other.jsonl"
    lines = (archive / "videotree-rules.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    trace.write_text("".join(line for line in lines if '"event": "Exchanged"' not in line), encoding="utf-8")
    ran = run_ask(kinodex, library, trace, "--model", f"replay:{trace}")
    assert (ran.code, ran.out) == (2, "")
    assert f"{trace} holds no " in ran.error_line


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACES)
def test_a_trace_of_the_same_requests_is_replayed_to_the_same_answer(
    kinodex: Kinodex, archive: Path, library: Path, name: str
) -> None:
    trace = archive / f"{name}.jsonl"
    answer = ask(kinodex, library, trace, "--model", f"replay:{trace}")
    assert_same_answer(answer, trace)
    assert_same_ledger(answer, trace)


def test_the_built_in_model_gives_the_same_answer(kinodex: Kinodex, archive: Path, library: Path) -> None:
    trace = archive / "eea-builtin.jsonl"
    answer = ask(kinodex, library, trace)
    assert_same_answer(answer, trace)
    assert_same_ledger(answer, trace)


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_cached_replies_are_found_and_no_request_is_sent(
    kinodex: Kinodex, archive: Path, library: Path, tmp_path: Path, agent: str
) -> None:
    lay_cache(archive, tmp_path)
    trace = archive / f"{trace_name(agent)}.jsonl"
    answer = ask(kinodex, library, trace, "--model", MODEL, "--base-url", SERVER)
    assert_same_answer(answer, trace)
    calls = answer["ledger"]["calls"]
    assert answer["ledger"]["cached_calls"] == calls >= answer_of(trace)["ledger"]["calls"] > 0


def lay_cache(archive: Path, folder: Path) -> None:
    """Lay the cached replies where the command of the tests looks for them."""
    (folder / "cache").mkdir()
    shutil.copy(archive / "replies.sqlite", folder / "cache")


def test_the_report_of_a_run_is_made_again_with_the_same_figures(
    kinodex: Kinodex, archive: Path, tmp_path: Path
) -> None:
    report, earlier = run_again(kinodex, archive, tmp_path / "again")
    assert report == earlier


@pytest.mark.slow
def test_all_of_it_is_shown_in_the_viewer(kinodex: Kinodex, archive: Path, library: Path, tmp_path: Path) -> None:
    traces, page = [archive / f"{name}.jsonl" for name in TRACES], tmp_path / "page.html"
    shown = [part for place in (archive / "run", *traces) for part in ("--trace", place)]
    ran = kinodex("export", "page", library, page, *shown)
    assert ran.code == 0, ran.err
    assert "What appears right after the brown keys in the meadow?" in page.read_text(encoding="utf-8")
