"""`kinodex bench`: the figures of a small measurement as JSON and as a table."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import Kinodex


def test_searches_of_a_tiny_library(kinodex: Kinodex, tmp_path: Path) -> None:
    size = ("--videos", "3", "--frames", "20", "--lines", "2", "--dim", "8", "--queries", "2")
    ran = kinodex("bench", "search", tmp_path / "library", *size, "--json")
    assert json.loads(ran.out)["size"] == [3, 20, 2, 8, 1000, False]
    assert "3 of 3 videos written" in ran.err
    assert "recall@10 over all frames" in kinodex("bench", "search", tmp_path / "library", *size).out


def test_the_share_of_a_prefix_cache_needs_a_run_or_a_trace(kinodex: Kinodex, tmp_path: Path) -> None:
    ran = kinodex("bench", "prefix")
    assert ran.code == 2 and "got no folder and no --trace" in ran.err
    (tmp_path / "trace.jsonl").write_text("{}\n")
    refused = kinodex("bench", "prefix", "--trace", tmp_path / "trace.jsonl", "--rules", "gemini")
    assert refused.code == 2 and "got --rules gemini" in refused.err
