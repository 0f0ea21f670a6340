"""Budgets: what they allow, and what an account counts."""

from __future__ import annotations

import pytest

from agent.core.budget import Budget
from agent.errors import BadSettings


@pytest.mark.parametrize("limit", [{"rounds": 0}, {"frames": -1}, {"cost": 0.0}, {"seconds": -2.0}])
def test_budgets_that_allow_nothing(limit):
    with pytest.raises(BadSettings, match="more than 0"):
        Budget(**limit)
