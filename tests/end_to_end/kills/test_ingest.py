"""Killed at any instant and run again, an ingest leaves the library that an undisturbed one leaves, row for row.

The default is short. Longer, as before a release:
    KINODEX_KILL_VIDEOS=200 KINODEX_KILL_ROUNDS=20 python -m pytest tests/end_to_end/kills/test_ingest.py -s
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.sources import list_sources
from tests.support.libraries.corpus import assert_same, make_corpus, other_version
from tests.support.servers.ray_node import RayCluster, cluster, ingest, kill, log_of, named, node, stopped, vanish
from tests.world.drawn_space import DRAWN

VIDEOS = int(os.environ.get("KINODEX_KILL_VIDEOS", "10"))
ROUNDS = int(os.environ.get("KINODEX_KILL_ROUNDS", "1"))
KILLS_A_ROUND = 2 if ROUNDS == 1 else 4
LONGEST_PEACE_S = 1.0
EARLY = 0.2
"""The part of the kills that come at any time, not only once videos are being read."""
SWAPS = 0.3
"""The part of the faults that are changes of a source."""
SEED = int(os.environ.get("KINODEX_KILL_SEED", "1"))
SOME_FAILED = 3
pytestmark = [pytest.mark.ray, pytest.mark.slow]
CUT = ("--set", "cut_s=8", "--set", "bundle=2")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, media_or_none: Path | None) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "films", VIDEOS, media_or_none, length_s=16.0)


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The corpus as an undisturbed ingest leaves it."""
    place = tmp_path_factory.mktemp("whole") / "library"
    run_ingest(IngestConfig(space=DRAWN), list_sources([str(corpus)]), str(place))
    return Library.open(str(place))


def finish(run: subprocess.Popen[bytes], library: Path) -> int:
    """Its exit code, which is one of the expected ones or comes with its last words."""
    code = run.wait()
    assert code in (0, SOME_FAILED, -signal.SIGKILL), log_of(library).read_text()[-4000:]
    return code


def strike(run: subprocess.Popen[bytes], head: int, chance: random.Random, swaps: Swaps) -> str:
    """Swap a source, or kill a process: mostly a worker, sometimes its reader child, an embedder or the driver."""
    if chance.random() < SWAPS:
        swaps.swap()
        return "source"
    victims = {
        "worker": named(head, "ray::RayWorker"),
        "reader": named(head, "sandbox_child"),
        "embedder": named(head, "ray::Embedder"),
        "driver": [run.pid],
    }
    kinds = [kind for kind in ("worker", "worker", "reader", "embedder", "driver", "driver") if victims[kind]]
    kind = chance.choice(kinds)
    kill(chance.choice(victims[kind]))
    return kind


@pytest.mark.timeout(1200 + 600 * ROUNDS)  # against a hang; nothing here waits for a time
def test_a_killed_ingest_run_again_leaves_the_same_library(
    corpus: Path, whole: Library, ray_cluster: RayCluster, tmp_path: Path
) -> None:
    """Among the faults are files whose bytes change in a run; they have their old ones again before the last one."""
    chance = random.Random(SEED)
    for number in range(ROUNDS):
        place = tmp_path / f"round-{number}"
        swaps = Swaps(corpus, chance)
        try:
            struck = disturbed(corpus, place, ray_cluster, chance, swaps)
        finally:
            swaps.undo()
        if swaps.versions:
            finish(ingest(corpus, place, ray_cluster.address, *CUT), place)
        print(f"round {number}: {', '.join(struck) or 'nothing'}")
        assert_same(Library.open(str(place)), whole, swaps.versions)


class Swaps:
    """Films of a corpus that other versions of them replace, in place or by another file, until it is undone."""

    def __init__(self, corpus: Path, chance: random.Random) -> None:
        self._films = sorted(corpus.glob("film-*.mp4"))
        self._chance = chance
        self._originals: dict[Path, bytes] = {}
        self.versions: dict[str, str] = {}
        """Ids of the other versions, and of the films that show the same."""

    def swap(self) -> None:
        film = self._chance.choice(self._films)
        original = self._originals.setdefault(film, film.read_bytes())
        other = other_version(original, 1_000_000 + len(self.versions))
        self.versions[_id(other)] = _id(original)
        if self._chance.random() < 0.5:
            film.write_bytes(other)
        else:
            beside = film.with_name(f".{film.name}")
            beside.write_bytes(other)
            beside.replace(film)

    def undo(self) -> None:
        for film, original in self._originals.items():
            film.write_bytes(original)


def _id(film: bytes) -> str:
    return hashlib.sha256(film).hexdigest()[:32]


def disturbed(corpus: Path, place: Path, running: RayCluster, chance: random.Random, swaps: Swaps) -> list[str]:
    """An ingest with faults, begun again after each end of its driver, until it has gone through."""
    struck: list[str] = []
    run = ingest(corpus, place, running.address, *CUT)
    for _ in range(KILLS_A_ROUND):
        if chance.random() > EARLY:
            wait_until(run, lambda: bool(named(running.head, "sandbox_child")))
        with suppress(subprocess.TimeoutExpired):
            run.wait(chance.uniform(0.0, LONGEST_PEACE_S))
        if run.poll() is not None:
            break
        struck.append(strike(run, running.head, chance, swaps))
        if struck[-1] == "driver":
            finish(run, place)
            run = ingest(corpus, place, running.address, *CUT)
    finish(run, place)
    return struck


def wait_until(run: subprocess.Popen[bytes], holds: Callable[[], bool]) -> bool:
    """Wait until the condition holds, or the run has ended; returns True if it held."""
    while run.poll() is None:
        if holds():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.timeout(1200)  # against a hang; nothing here waits for a time
def test_a_node_joins_and_vanishes_and_the_library_is_the_same(corpus: Path, whole: Library, tmp_path: Path) -> None:
    place = tmp_path / "library"
    with cluster(1) as (address, head), node(address, 1) as spot:
        run = ingest(corpus, place, address, *CUT, "--workers", "2")
        assert wait_until(run, lambda: bool(named(head, "ray::RayWorker"))), log_of(place).read_text()
        with stopped(named(head, "ray::RayWorker")):  # or it might be through with all before the other has begun
            assert wait_until(run, lambda: bool(named(spot, "sandbox_child"))), log_of(place).read_text()
            vanish(spot)
        assert finish(run, place) == SOME_FAILED
    library = Library.open(str(place))
    assert_same(library, whole)
    assert library.ingest_log.runs()[0].report["retried"] > 0


@pytest.mark.timeout(600)  # against a hang
def test_an_embedder_that_is_made_again_says_what_it_carried(whole: Library, ray_cluster: RayCluster) -> None:
    from kinodex.jobs.ingest.ray import ray_executor
    from kinodex.jobs.ingest.ray_embedders import Sizes
    from kinodex.jobs.ray_cluster import connected

    towers = whole.uri, ("text",)
    with connected(ray_cluster.address), ray_executor(DRAWN, "cpu", Sizes(1, 1), "auto") as executor:
        executor.ask_embedder("begin_carrying", *towers)
        noted = executor.ask_embedder("carried", *towers)
        for embedder in named(ray_cluster.head, "ray::Embedder"):
            kill(embedder)
        assert executor.ask_embedder("carried", *towers) == noted
