"""Libraries, traces, cached replies and runs of earlier versions (tests/data/README.md) are read by this one.

A change of a prompt, a schema or the steps of an agent on purpose is stated here by `ASK_OTHERWISE`, and comes with an
archive of the new ones. What an agent of before the move asked is not asked again: most of those traces can be looked
at and not be replayed, and cached replies to those prompts are not found.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.archives.read import AGENTS, SERVER, TRACES, answer_of, ask, run_again, run_ask, trace_name, unpack
from tests.support.command import Kinodex
from tests.support.house.once import made_once
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.rule_server import MODEL, Rules

BEFORE, SINCE = "before_the_move", "reasoning_first"
ASK_AS_BEFORE = "videotree-rules"
"""The trace of an agent whose requests hold the same today, though in other words.

VideoAgent's do too, but of frames alike to the last bit its trace looked at one that rounding chose, and now the
earliest is chosen.
"""
ASK_OTHERWISE = tuple(name for name in TRACES if name != ASK_AS_BEFORE)
NEW_FACTS = {"insufficient evidence", "requests at once", "prices for a million tokens", "text on screen"}
"""What the report of a run says today that the plan of that time does not hold."""


@pytest.fixture(scope="module")
def archive(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of an unpacked archive; tests that write take a copy."""
    return lambda name: made_once(
        tmp_path_factory, name, lambda folder: unpack(root / "tests" / "data" / f"{name}.tar.xz", folder)
    )


@pytest.fixture
def copied(archive: Callable[[str], Path], tmp_path: Path) -> Callable[[str], tuple[Path, Path]]:
    """An archive, and a copy of its library."""

    def copy(name: str) -> tuple[Path, Path]:
        return archive(name), Path(shutil.copytree(archive(name) / "library", tmp_path / "library"))

    return copy


Copied = Callable[[str], tuple[Path, Path]]


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
@pytest.mark.parametrize("name", ASK_OTHERWISE)
def test_a_trace_of_other_requests_is_not_replayed_but_pointed_to(kinodex: Kinodex, copied: Copied, name: str) -> None:
    archive, library = copied(BEFORE)
    trace = archive / f"{name}.jsonl"
    ran = run_ask(kinodex, library, trace, "--model", f"replay:{trace}")
    assert (ran.code, ran.out) == (2, "")
    assert f"{trace} holds no " in ran.error_line
    assert f"an earlier kinodex wrote it, it asked otherwise: `kinodex view {trace}` still shows it" in ran.error_line


@pytest.mark.slow
@pytest.mark.parametrize(("of", "name"), [(BEFORE, ASK_AS_BEFORE), *((SINCE, name) for name in TRACES)])
def test_a_trace_of_the_same_requests_is_replayed_to_the_same_answer(
    kinodex: Kinodex, copied: Copied, of: str, name: str
) -> None:
    archive, library = copied(of)
    trace = archive / f"{name}.jsonl"
    answer = ask(kinodex, library, trace, "--model", f"replay:{trace}")
    assert_same_answer(answer, trace)
    assert_same_ledger(answer, trace)


def test_the_built_in_model_gives_the_same_answer(kinodex: Kinodex, copied: Copied) -> None:
    archive, library = copied(SINCE)
    trace = archive / "eea-builtin.jsonl"
    answer = ask(kinodex, library, trace)
    assert_same_answer(answer, trace)
    assert_same_ledger(answer, trace)


def test_the_built_in_model_chose_the_same_option_before_the_move(kinodex: Kinodex, copied: Copied) -> None:
    archive, library = copied(BEFORE)
    trace = archive / "eea-builtin.jsonl"
    for answer in (ask(kinodex, library, trace), answer_of(trace)):
        assert [answer[name] for name in ("status", "text", "option")] == ["answered", "a brown key", 3]


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_cached_replies_are_found_and_no_request_is_sent(
    kinodex: Kinodex, copied: Copied, tmp_path: Path, agent: str
) -> None:
    archive, library = copied(SINCE)
    lay_cache(archive, tmp_path)
    trace = archive / f"{trace_name(agent)}.jsonl"
    answer = ask(kinodex, library, trace, "--model", MODEL, "--base-url", SERVER)
    assert_same_answer(answer, trace)
    calls = answer["ledger"]["calls"]
    assert answer["ledger"]["cached_calls"] == calls >= answer_of(trace)["ledger"]["calls"] > 0


@pytest.mark.slow
def test_the_cache_of_before_takes_new_replies(kinodex: Kinodex, copied: Copied, tmp_path: Path) -> None:
    archive, library = copied(BEFORE)
    lay_cache(archive, tmp_path)
    trace = archive / "eea-rules.jsonl"
    with ChatServer(Rules(), models=[MODEL]) as server:
        at_server = ("--model", MODEL, "--base-url", server.base_url)
        answer, again = (ask(kinodex, library, trace, *at_server) for _ in range(2))
    assert answer["option"] == answer_of(trace)["option"]
    assert again["ledger"]["cached_calls"] == again["ledger"]["calls"] > 0


def lay_cache(archive: Path, folder: Path) -> None:
    """Lay the cached replies where the command of the tests looks for them."""
    (folder / "cache").mkdir()
    shutil.copy(archive / "replies.sqlite", folder / "cache")


def test_the_report_of_a_run_is_made_again_with_the_same_figures(
    kinodex: Kinodex, archive: Callable[[str], Path], tmp_path: Path
) -> None:
    report, earlier = run_again(kinodex, archive(SINCE), tmp_path / SINCE)
    assert report == earlier
    report, earlier = run_again(kinodex, archive(BEFORE), tmp_path / BEFORE)
    assert_holds(report, earlier)
    assert report["facts"].keys() - earlier["facts"].keys() == NEW_FACTS
    assert report["facts"]["insufficient evidence"] == "not recorded (an earlier kinodex: accepted at any time)"


def assert_holds(now: object, earlier: object) -> None:
    """Check that a JSON value is what it was, but for fields that objects have in addition."""
    if isinstance(now, dict) and isinstance(earlier, dict):
        assert now.keys() >= earlier.keys()
        for name, value in earlier.items():
            assert_holds(now[name], value)
    elif isinstance(now, list) and isinstance(earlier, list):
        assert len(now) == len(earlier)
        for one, other in zip(now, earlier, strict=True):
            assert_holds(one, other)
    else:
        assert now == earlier


@pytest.mark.slow
@pytest.mark.parametrize("of", [BEFORE, SINCE])
def test_all_of_it_is_shown_in_the_viewer(kinodex: Kinodex, copied: Copied, tmp_path: Path, of: str) -> None:
    archive, library = copied(of)
    traces, page = [archive / f"{name}.jsonl" for name in TRACES], tmp_path / "page.html"
    ran = kinodex("view", library, archive / "run", *traces, "--out", page)
    assert ran.code == 0, ran.err
    assert "What appears right after the brown keys in the meadow?" in page.read_text(encoding="utf-8")
