"""Killed at any instant and run again, an ingest leaves the library that an undisturbed one leaves, row for row.

The default is short. Longer, as before a release:
    KINODEX_KILL_VIDEOS=200 KINODEX_KILL_ROUNDS=20 python -m pytest tests/test_ingest_kills.py -s
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from index.library import Library
from tests.cluster_kit import cluster, ingest, kill, named
from tests.corpus_kit import assert_same, make_corpus

VIDEOS = int(os.environ.get("KINODEX_KILL_VIDEOS", "24"))
ROUNDS = int(os.environ.get("KINODEX_KILL_ROUNDS", "2"))
KILLS_A_ROUND = 3
SEED = int(os.environ.get("KINODEX_KILL_SEED", "1"))
SOME_FAILED = 3
CUT = ("--cut", "30")


def finish(run: subprocess.Popen[bytes]) -> int:
    output, _ = run.communicate(timeout=600)
    if run.returncode not in (0, SOME_FAILED):
        print(output.decode(errors="replace"))
    return run.returncode


def strike(run: subprocess.Popen[bytes], head: int, chance: random.Random) -> str:
    """Kill one process of the run: mostly a worker, sometimes its reader child, an embedder or the driver."""
    victims = {
        "worker": named(head, "ray::RayWorker"),
        "reader": named(head, "reader_process"),
        "embedder": named(head, "ray::Embedder"),
        "driver": [run.pid],
    }
    kinds = [kind for kind in ("worker", "worker", "reader", "embedder", "driver", "driver") if victims[kind]]
    kind = chance.choice(kinds)
    kill(chance.choice(victims[kind]))
    return kind


@pytest.mark.timeout(120 + 120 * ROUNDS)
def test_a_killed_ingest_run_again_leaves_the_same_library(tmp_path: Path, media_or_none: Path | None) -> None:
    corpus = make_corpus(tmp_path / "corpus", VIDEOS, media_or_none)
    chance = random.Random(SEED)
    assert finish(ingest(corpus, tmp_path / "whole", None)) == SOME_FAILED
    whole = Library.open(str(tmp_path / "whole"))
    with cluster(3, tmp_path / "ray") as (address, head):
        for number in range(ROUNDS):
            place = tmp_path / f"round-{number}"
            struck = []
            run = ingest(corpus, place, address, *CUT)
            for _ in range(KILLS_A_ROUND):
                time.sleep(chance.uniform(0.5, 8.0))
                if run.poll() is None:
                    struck.append(strike(run, head, chance))
                if run.poll() is not None or struck[-1:] == ["driver"]:
                    run.wait()
                    run = ingest(corpus, place, address, *CUT)
            code = finish(run)
            while code not in (0, SOME_FAILED):
                code = finish(ingest(corpus, place, address, *CUT))
            print(f"round {number}: killed {', '.join(struck) or 'nothing'}")
            assert_same(whole, Library.open(str(place)))
