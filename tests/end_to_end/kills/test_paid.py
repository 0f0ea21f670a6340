"""Runs that pay for replies, killed in eight rounds while they wait: whole videos are seen, nothing is paid twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kinodex.index.library import Library
from kinodex.index.sweep import audit
from tests.support.models.stage_models import library_of
from tests.support.scenes.moving_film import moving_film
from tests.support.servers.embed_server import EmbedServer

pytestmark = pytest.mark.slow
ROUNDS = 8
FILMS = ("aa", "bb", "cc")
IsKilled = Callable[[], bool]
Case = tuple[Library, list[object], list[str], Callable[[], dict[str, int]], int]
"""The library, the words of the command, what was paid for, the rows that readers see by video, and how many it has."""


@contextmanager
def adding_clips(folder: Path, is_killed: IsKilled) -> Iterator[Case]:
    colours = ("red", "green", "blue", "red")
    parts = [[(one, "right"), (other, "left")] for one, other in pairwise(colours)]
    films = [moving_film(folder / f"{name}.mp4", part) for name, part in zip(FILMS, parts, strict=True)]
    library_of(folder / "library", films)
    library, paid = Library.open(str(folder / "library")), list[str]()

    def before() -> tuple[int, Any] | None:
        return (500, {"error": "nobody hears this"}) if is_killed() else None

    def seen() -> dict[str, int]:
        return {row.video_id: library.additions.counts("clips").get(row.video_id, 0) for row in library.videos()}

    with EmbedServer(before=before) as server:
        words: list[object] = ["add", "clips", library.uri, "--base-url", server.base_url]
        yield library, words, paid, seen, 3
        paid += [json.dumps(body["messages"]) for body in server.asked]
        probes, windows = (sum(len(each["messages"][1]["content"]) == 1 for each in server.asked), len(server.asked))
        assert (probes, windows) == (1, 1 + 3 * len(FILMS))


@pytest.mark.parametrize("case", [adding_clips])
def test_killed_and_run_again(case: Any, tmp_path: Path) -> None:
    children: list[subprocess.Popen[bytes]] = []
    kill_at = [0]

    def is_killed() -> bool:
        """Kill who asks, now and then, before it hears an answer: then nothing is paid."""
        kill_at[0] -= 1
        if kill_at[0] == 0:
            time.sleep(0.3)  # the reply before is stored by then: its request ended as this one began
            os.kill(children[-1].pid, signal.SIGKILL)
            return True
        return False

    environment = {**os.environ, "KINODEX_CACHE": str(tmp_path / "cache")}
    with case(tmp_path, is_killed) as (library, words, paid, seen, rows):
        line = [sys.executable, "-c", "from kinodex.cli.main import main; main()", *words]
        line += ["--model", "tester", "--batch", "1"]
        for number in range(ROUNDS + 1):
            kill_at[0] = number % 3 + 1 if number < ROUNDS else 0
            children.append(subprocess.Popen([*map(str, line)], env=environment, stdout=subprocess.DEVNULL))
            assert children[-1].wait() == (-signal.SIGKILL if number < ROUNDS else 0), number
            assert set(seen().values()) <= {0, rows}, "half of a film is seen"
        assert set(seen().values()) == {rows}
    assert len(paid) == len(set(paid)) >= len(FILMS) * rows
    assert audit(library, deep=True).problems == ()
