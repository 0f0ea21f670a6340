"""Amounts of money need a value above 0 and a model with a price."""

from __future__ import annotations

import pytest

from jobs.cli.options.models import check_cost
from jobs.errors import UsageError
from jobs.model_choice import ModelChoice

PRICED = ModelChoice("m", "http://127.0.0.1:9/v1", None, 1.0, 2.0)
FREE = ModelChoice("m", "http://127.0.0.1:9/v1", None)


def test_amounts_that_are_accepted() -> None:
    check_cost(PRICED, 0.5, 10.0)
    check_cost(FREE, None, None)


@pytest.mark.parametrize(
    ("choice", "max_cost", "stop_at_cost", "says"),
    [
        (PRICED, 0.0, None, "got --max-cost 0; give an amount of more than 0"),
        (PRICED, 1.0, float("inf"), "got --stop-at-cost inf; give an amount of more than 0"),
        (FREE, None, 1.0, "got --stop-at-cost without prices: no model of this run has one"),
    ],
)
def test_amounts_that_are_refused(
    choice: ModelChoice, max_cost: float | None, stop_at_cost: float | None, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        check_cost(choice, max_cost, stop_at_cost)
