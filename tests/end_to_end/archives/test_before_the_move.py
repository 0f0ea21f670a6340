"""A library, traces, cached replies and a run of an earlier version (tests/data/README.md) are read by this one.

Its prompts, the schemas of its replies and some of its agents' steps were others: what it asked is not asked again, so
most of its traces can be looked at and not be replayed, and cached replies to its prompts are not found.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.archives.read import (
    TRACES,
    answer_of,
    ask,
    assert_replayed,
    assert_shown,
    copy_cache,
    reports_of,
    run_ask,
)
from tests.support.command import Kinodex
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.rule_server import MODEL, Rules

ARCHIVE = "before_the_move.tar.xz"
ASK_AS_BEFORE = ("videotree-rules",)
"""Traces of agents whose requests hold the same today, though in other words.

VideoAgent's do too, but of frames alike to the last bit its trace looked at one that rounding chose, and now the
earliest is chosen.
"""
ASK_OTHERWISE = tuple(name for name in TRACES if name not in ASK_AS_BEFORE)
NEW_FACTS = {"insufficient evidence", "requests at once", "prices for a million tokens", "text on screen"}
"""What the report of a run says today that the plan of that time does not hold."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ASK_OTHERWISE)
def test_a_trace_of_other_requests_is_not_replayed_but_pointed_to(
    kinodex: Kinodex, archive: Path, library: Path, name: str
) -> None:
    trace = archive / f"{name}.jsonl"
    ran = run_ask(kinodex, library, trace, "--model", f"replay:{trace}")
    assert (ran.code, ran.out) == (2, "")
    assert f"{trace} holds no " in ran.error_line
    assert f"an earlier kinodex wrote it, it asked otherwise: `kinodex view {trace}` still shows it" in ran.error_line


@pytest.mark.parametrize("name", ASK_AS_BEFORE)
def test_a_trace_of_the_same_requests_is_replayed_to_the_same_answer(
    kinodex: Kinodex, archive: Path, library: Path, name: str
) -> None:
    assert_replayed(kinodex, library, archive / f"{name}.jsonl")


def test_the_built_in_model_chooses_the_same_option(kinodex: Kinodex, archive: Path, library: Path) -> None:
    trace = archive / "eea-builtin.jsonl"
    answer = ask(kinodex, library, trace)
    earlier = answer_of(trace)
    assert [answer[name] for name in ("status", "text", "option")] == ["answered", "a brown key", 3]
    assert [earlier[name] for name in ("status", "text", "option")] == ["answered", "a brown key", 3]


@pytest.mark.slow
def test_the_cache_of_before_takes_new_replies(kinodex: Kinodex, archive: Path, library: Path, tmp_path: Path) -> None:
    copy_cache(archive, tmp_path / "cache")
    trace = archive / "eea-rules.jsonl"
    with ChatServer(Rules(), models=[MODEL]) as server:
        at_server = ("--model", MODEL, "--base-url", server.base_url)
        answer, again = (ask(kinodex, library, trace, *at_server) for _ in range(2))
    assert answer["option"] == answer_of(trace)["option"]
    assert again["ledger"]["cached_calls"] == again["ledger"]["calls"] > 0


def test_the_report_of_a_run_is_made_again_with_the_same_figures(
    kinodex: Kinodex, archive: Path, tmp_path: Path
) -> None:
    report, earlier = reports_of(kinodex, archive, tmp_path)
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
def test_all_of_it_is_shown_in_the_viewer(kinodex: Kinodex, archive: Path, library: Path, tmp_path: Path) -> None:
    assert_shown(kinodex, archive, library, tmp_path / "page.html")
