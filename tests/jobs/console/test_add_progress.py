"""Progress of `kinodex add`: lines in a file, a bar on a terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console

from kinodex.cli.add_progress import add_progress_bar
from kinodex.jobs.add.run import VideoOutcome

ADDED = VideoOutcome("a", "/a.mp4", "a", 12)


IN_PART = VideoOutcome("b", "/b.mp4", "b", 1_000, "2 of 9 segments got no caption")


FAILED = VideoOutcome("c", "/c.mp4", "c", 0, "nothing is there", "SourceMissing")


def test_what_is_added_is_told_in_lines_too_with_what_failed() -> None:
    out = io.StringIO()
    with add_progress_bar(Console(file=out, width=20), "captions", every_s=0.0) as watch:
        for done, last in enumerate((ADDED, IN_PART, FAILED), start=1):
            watch(done, 3, last)
    lines = [re.sub(r", [^,]+ left$", ", LEFT", line) for line in out.getvalue().splitlines()]
    assert lines == [
        "adding captions: 1 of 3 videos, 12 rows, LEFT",
        "adding captions: 2 of 3 videos, 1,012 rows, 1 in part, LEFT",
        "adding captions: 3 of 3 videos, 1,012 rows, 1 failed, 1 in part",
    ]
    quiet = io.StringIO()
    with add_progress_bar(Console(file=quiet), "captions", every_s=30.0) as watch:
        watch(1, 2, ADDED)
    assert quiet.getvalue() == ""


def test_what_is_added_is_told_by_a_bar_on_a_terminal() -> None:
    out = io.StringIO()
    with add_progress_bar(
        Console(file=out, force_terminal=True, width=200, color_system=None), "captions", every_s=0.0
    ) as watch:
        watch(2, 4, FAILED)
    assert "2 of 4 videos, 0 rows, 1 failed" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")
