"""The result file: kept line by line, gone on with, and refused for another run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.moments import Result, ResultFile

SETTINGS = {"library": "films", "most": 10}
ONE = Result("1", "frames", (("v", 0.0, 1.5),))
TWO = Result("2", "ground", (), False, 1.25, "no reply")


def test_results_are_there_again_and_half_a_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first = ResultFile(path, SETTINGS)
    first.add(ONE)
    first.add(TWO)
    assert ResultFile(path, SETTINGS).results == {("frames", "1"): ONE, ("ground", "2"): TWO}
    whole = path.read_text()
    path.write_text(whole[:-5])
    again = ResultFile(path, SETTINGS)
    assert list(again.results.values()) == [ONE]
    again.add(TWO)
    assert path.read_text() == whole


def test_another_run_s_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    ResultFile(path, SETTINGS).add(ONE)
    before = path.read_text()
    with pytest.raises(UsageError, match="most 10, and this run has 20"):
        ResultFile(path, SETTINGS | {"most": 20})
    with pytest.raises(UsageError, match="space None, and this run has x"):
        ResultFile(path, SETTINGS | {"space": "x"})
    assert path.read_text() == before
    other = tmp_path / "notes.txt"
    other.write_text("mine\n")
    with pytest.raises(UsageError, match="no result file"):
        ResultFile(other, SETTINGS)
    assert other.read_text() == "mine\n"
    with pytest.raises(UsageError, match="cannot write"):
        ResultFile(tmp_path / "no" / "results.jsonl", SETTINGS)


def test_without_a_file_results_are_kept_in_memory() -> None:
    held = ResultFile(None, SETTINGS)
    held.add(ONE)
    assert list(held.results.values()) == [ONE]


def test_a_file_that_stopped_in_its_first_line_or_is_empty_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for begun in ("", '{"kinodex_mom'):
        path.write_text(begun)
        assert ResultFile(path, SETTINGS).results == {}
        assert path.read_text() == '{"kinodex_moments": 1, "library": "films", "most": 10}\n'


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    ResultFile(path, SETTINGS).add(ONE)
    head = path.read_bytes()
    for line in (
        b'{"case_id": "1"',
        b"[]",
        b'{"case_id": "1", "system": "x", "found": [[1]]}',
        b"\xff\xfe",
        b'{"a": 1}',
    ):
        path.write_bytes(head + line + b"\n")
        with pytest.raises(UsageError, match=r"results.jsonl is damaged in line 3: .*; take the line out"):
            ResultFile(path, SETTINGS)
        assert path.read_bytes() == head + line + b"\n"


def test_a_file_of_an_older_version_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    line = '{"case_id": "1", "system": "frames", "found": [["v", 0.0, 1.5]], "present": null, "evidence": null}'
    path.write_text('{"kinodex_moments": 1, "library": "films", "most": 10}\n' + line + "\n")
    known = ResultFile(path, SETTINGS | {"contents": "videos abc"})
    assert known.results == {("frames", "1"): ONE}


def test_the_models_in_the_head_of_an_older_file_are_those_of_its_agents(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    line = '{"case_id": "1", "system": "agent:eea", "found": [], "present": false, "evidence": null, "error": ""}'
    path.write_text(
        '{"kinodex_moments": 1, "library": "films", "most": 10, "models": {"default": "a"}}\n' + line + "\n"
    )
    agent = {"models": {"default": "a"}, "code": "of today"}
    known = ResultFile(path, SETTINGS | {"state": "of today"}, {"agent:eea": agent})
    assert known.results["agent:eea", "1"].made_with == {"models": {"default": "a"}}
    assert len(ResultFile(path, SETTINGS).results) == 1, "of a run without agents"
    with pytest.raises(UsageError, match=r"results of agent:eea with models \{'default': 'a'\}, and this run has b"):
        ResultFile(path, SETTINGS, {"agent:eea": {"models": "b"}})
