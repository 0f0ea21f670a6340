"""Replies are cut to their limits, and say how to get the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mcp import Client

from kinodex.index.library import Library
from kinodex.mcp import replies
from tests.support.libraries.text_library import text_library
from tests.support.servers.mcp_client import call, use_tools

MANY = 450


def long_library(folder: Path) -> Library:
    """Many segments, captions and lines of one text-only video; some lines are very long."""
    lines = [(float(n), n + 1.0, f"caption {n}") for n in range(MANY)]
    said = [(float(n), n + 1.0, f"line {n} " + "word " * (400 if n % 50 == 7 else 30)) for n in range(MANY)]
    return text_library(folder, {"long": lines}, {"long": said})


def test_long_tables_come_in_pages_that_say_so(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for tool in ("transcript", "captions"):
            seen: list[dict[str, Any]] = []
            cut: str | None = ""
            while cut is not None:
                reply = await call(client, tool, video="long", offset=len(seen))
                cut = reply.get("cut")
                rows: Sequence[dict[str, Any]] = reply.get("lines") or reply["captions"]
                assert 0 < len(rows) <= replies.ROWS
                seen += rows
                assert cut is None or f"of {MANY}; call again with offset={len(seen)}" in cut
            assert [row["start_s"] for row in seen] == list(range(MANY))
            longest = max(len(row["text"]) for row in seen)
            assert longest < replies.CHARACTERS + 30
        assert "characters)" in (await call(client, "transcript", video="long", start_s=7, end_s=8))["lines"][0]["text"]
        overview = await call(client, "overview", video="long")
        starts = [each["start_s"] for each in overview["segments"]]
        assert len(starts) == replies.SEGMENTS
        assert np.diff(starts).max() <= 8
        assert f"60 of {MANY} segments" in overview["cut"]
        hits = await call(client, "search", query="caption", where="speech", k=5)
        assert "cut" not in hits
        hits = await call(client, "search", query="word", where="speech", k=1000)
        assert len(hits["hits"]) == replies.HITS
        assert "only 50 hits fit" in hits["cut"]

    use_tools(long_library(tmp_path / "long"), use)
