"""The bench of ingests on a film of ten seconds: what is counted is right, times are not judged."""

from __future__ import annotations

import os
import time

import pytest

from kinodex.doctor.alone import run_alone_within
from tests.bench import ingest
from tests.bench.conftest import FILM_S
from tests.bench.ingest import FIRST, NEXT, SCRIPT, measure_usage
from tests.support.models.tiny_models import TINY, write_model


@pytest.mark.slow
def test_whole_ingests_are_measured_in_turn_with_a_script_and_what_does_not_run_is_left_out(film, tmp_path, bench):
    """Several seconds: two ingests and the script, each a process of its own that loads a model."""
    write_model(tmp_path / "model", TINY)
    ran = bench(ingest.main, film, "--model", tmp_path / "model", "--rounds", 1)
    assert ran.code == 0, ran.err
    rows = [row.split(" | ") for row in ran.out.splitlines() if row.startswith(f"| {film.name}, {FILM_S} s, ")]
    assert [row[1] for row in rows] == [FIRST, NEXT, SCRIPT]
    seconds, cpu_s, memory_mb = (
        min(float(row[column].strip(" |").replace(",", "")) for row in rows) for column in (2, 3, 4)
    )
    assert seconds > 0.5 and cpu_s > 0.5 and memory_mb > 100
    assert " cores of " in ran.out and "median of 1 rounds" in ran.out
    assert bench(ingest.main, tmp_path / "none.mp4").code == 2


SPARE_BYTES = 60_000_000


def hold_memory(seconds):
    with measure_usage() as load:
        held = bytearray(os.urandom(1) * SPARE_BYTES)
        time.sleep(seconds)
    return load, len(held)


@pytest.mark.slow
def test_memory_of_a_process_and_of_its_largest_child_is_seen():
    with measure_usage() as load:
        inner, held = run_alone_within(None, hold_memory, 0.8)
    assert inner.parent_bytes > held
    assert inner.child_bytes == 0
    assert load.child_bytes > held
