"""Work in a fresh process returns, raises or is lost; memory of processes is measured."""

from __future__ import annotations

import os
import time

import pytest

from kinodex.bench.ingest import Lost, measure_usage, run_alone, run_alone_within

SPARE_BYTES = 60_000_000


def hold_memory(seconds):
    with measure_usage() as load:
        held = bytearray(os.urandom(1) * SPARE_BYTES)
        time.sleep(seconds)
    return load, len(held)


def test_a_fresh_process_gives_what_it_made_what_it_raised_or_how_it_ended():
    assert run_alone(sum, [1, 2, 3]) == 6
    with pytest.raises(ZeroDivisionError):
        run_alone(divmod, 1, 0)
    with pytest.raises(Lost, match="status 7"):
        run_alone(os._exit, 7)
    with pytest.raises(Lost, match=r"more than 0\.3 s"):
        run_alone_within(0.3, time.sleep, 60)


@pytest.mark.slow
def test_memory_of_a_process_and_of_its_largest_child_is_seen():
    with measure_usage() as load:
        inner, held = run_alone(hold_memory, 0.8)
    assert inner.parent_bytes > held
    assert inner.child_bytes == 0
    assert load.child_bytes > held
