"""Titles and texts that hold line breaks or steer a terminal: printed as what they are, in their own line."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

import pytest

from kinodex.jobs.output import is_utf8, print_json, visible, visible_lines, write_any_text
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


def test_streams_of_another_encoding_write_escapes(tmp_path):
    strict, foreign, other = (
        io.TextIOWrapper(io.BytesIO(), encoding, errors)
        for encoding, errors in (("utf-8", "strict"), ("ascii", "surrogateescape"), ("utf-8", "replace"))
    )
    write_any_text(strict, foreign, other)
    assert (strict.errors, foreign.errors, other.errors) == ("backslashreplace", "backslashreplace", "replace")
    assert [is_utf8(stream) for stream in (strict, foreign, io.StringIO())] == [True, False, True]
    foreign.write("café 😀")
    foreign.flush()
    assert foreign.buffer.getvalue() == rb"caf\xe9 \U0001f600"


def test_json_for_a_stream_of_another_encoding_is_still_json():
    stream = io.TextIOWrapper(io.BytesIO(), "ascii", "backslashreplace")
    with redirect_stdout(stream):
        print_json({"text": "café \ud800"})
    stream.flush()
    assert json.loads(stream.buffer.getvalue()) == {"text": "café \ud800"}
