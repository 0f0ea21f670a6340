"""`kinodex add captions`: options that contradict one another end it in one line, before anything is sent."""

from __future__ import annotations

import pytest

ENDPOINT = ("--base-url", "http://127.0.0.1:9/v1", "--model", "x")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--model", "x", "--dry-run"), "for a local model, which costs nothing; give --base-url"),
        (("--model", "x", "--batch-api"), "for a local model, which costs nothing; give --base-url"),
        ((*ENDPOINT, "--batch-api", "--ray"), "so leave one out"),
    ],
)
def test_options_that_contradict_one_another(kinodex, small_library, options, line):
    ran = kinodex("add", "captions", small_library, *options)
    assert ran.code == 2
    assert line in ran.error_line


def test_a_forecast_names_the_segments(kinodex, small_library):
    ran = kinodex("add", "captions", small_library, *ENDPOINT, "--dry-run")
    assert ran.code == 0
    assert "segments" in ran.out
