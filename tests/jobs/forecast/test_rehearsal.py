"""A rehearsal stands for many questions: some are run, the rest is expected alike."""

from __future__ import annotations

import pytest

from agent.core.question import Question
from jobs.forecast.forecast import Forecast, add_up, table
from jobs.forecast.rehearsal import REHEARSED, _mix, _spread

TASKS = [(Question(f"What is {number}?"), (str(number),)) for number in range(100)]


def test_tasks_are_taken_evenly_from_the_first_to_the_last() -> None:
    some = _spread(TASKS, REHEARSED)
    assert len(some) == REHEARSED and some[0] == TASKS[0] and some[-1] == TASKS[-1]
    assert _spread(TASKS[:3], REHEARSED) == TASKS[:3]


def test_two_rehearsals_are_weighed() -> None:
    short, long = Forecast("eea", 4, 10, 8, 1000, 100, 1.0), Forecast("eea", 4, 40, 20, 5000, 300, 4.0)
    mixed = _mix(short, long, 0.25)
    assert (mixed.calls, mixed.frames, mixed.input_tokens, mixed.cost) == (17.5, 11.0, 2000.0, 1.75)
    assert mixed.questions == 4


def test_rows_add_up() -> None:
    one, two = Forecast("eea", 4, 10, 8, 1000, 100, 1.0), Forecast("vca", 4, 5, 2, 500, 50, 0.5)
    assert add_up([one, two]).cost == pytest.approx(1.5)
    assert "| all | 8 | 15 | 10 | 1,500 | 150 | 1.5 |" in table([one, two])
    assert "| all |" not in table([one])
