"""Traces, cached replies and a run of the prompts whose replies begin with the reasoning (tests/data/README.md).

A change of a prompt, a schema or the steps of an agent on purpose is stated in this test, as `test_before_the_move.py`
does for the archive before, and comes with an archive of the new ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.archives.read import (
    AGENTS,
    SERVER,
    TRACES,
    ask,
    assert_all_cached,
    assert_replayed,
    assert_same_answer,
    assert_same_ledger,
    assert_shown,
    copy_cache,
    reports_of,
    trace_name,
)
from tests.support.command import Kinodex
from tests.support.servers.rule_server import MODEL

ARCHIVE = "reasoning_first.tar.xz"


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_replayed_to_the_same_answer(kinodex: Kinodex, archive: Path, library: Path, name: str) -> None:
    assert_replayed(kinodex, library, archive / f"{name}.jsonl")


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
    copy_cache(archive, tmp_path / "cache")
    trace = archive / f"{trace_name(agent)}.jsonl"
    answer = ask(kinodex, library, trace, "--model", MODEL, "--base-url", SERVER)
    assert_same_answer(answer, trace)
    assert_all_cached(answer, trace)


def test_the_report_of_a_run_is_made_again_with_the_same_figures(
    kinodex: Kinodex, archive: Path, tmp_path: Path
) -> None:
    report, earlier = reports_of(kinodex, archive, tmp_path)
    assert report == earlier


@pytest.mark.slow
def test_all_of_it_is_shown_in_the_viewer(kinodex: Kinodex, archive: Path, library: Path, tmp_path: Path) -> None:
    assert_shown(kinodex, archive, library, tmp_path / "page.html")
