"""Work in a fresh process: what it made, what it raised, and how it ended."""

from __future__ import annotations

import os
import time

import pytest

from kinodex.doctor.alone import Lost, run_alone_within


@pytest.mark.slow
def test_a_fresh_process_gives_what_it_made_what_it_raised_or_how_it_ended():
    assert run_alone_within(None, sum, [1, 2, 3]) == 6
    with pytest.raises(ZeroDivisionError):
        run_alone_within(None, divmod, 1, 0)
    with pytest.raises(Lost, match="status 7"):
        run_alone_within(None, os._exit, 7)
    with pytest.raises(Lost, match=r"more than 0\.3 s"):
        run_alone_within(0.3, time.sleep, 60)
