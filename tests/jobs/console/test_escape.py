"""Titles and texts that hold line breaks or steer a terminal: printed as what they are, in their own line."""

from __future__ import annotations

import json

import pytest

from jobs.console.escape import visible, visible_lines
from tests.support.libraries.agent_library import make_library

TITLE = "two\nlines \x1b[31mred\r.mp4"
SHOWN = "two\\nlines \\x1b[31mred\\r.mp4"


def test_a_title_stays_in_its_line(kinodex, tmp_path):
    library = make_library(tmp_path / "library", {TITLE: ["a red kite"] * 3, "plain.mp4": ["a boat"] * 3}).uri
    told = kinodex("info", library)
    assert [line.split()[-1] for line in told.out.splitlines() if "8x8" in line] == ["none", "none"]
    assert len([line for line in told.out.splitlines() if SHOWN in line and "8x8" in line]) == 1
    assert "\x1b" not in told.out

    refused = kinodex("frames", library, "--video", "nobody", "--at", 1)
    assert SHOWN.split("\\n")[1] in refused.error_line + refused.err.splitlines()[-1]
    assert "\x1b" not in refused.err

    assert TITLE in {row["title"] for row in json.loads(kinodex("info", library, "--json").out)["videos"]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [("Größe 電影 👩‍🚀 a\u00a0b", "Größe 電影 👩‍🚀 a\u00a0b"), ("a\u202eb\x07\udcff", "a\\u202eb\\x07\\udcff")],
)
def test_only_what_is_unseen_is_spelled_out(text, shown):
    assert visible(text) == shown


def test_line_breaks_that_are_meant_stay():
    assert visible_lines("one\ntwo\tthree") == "one\ntwo\\tthree"
