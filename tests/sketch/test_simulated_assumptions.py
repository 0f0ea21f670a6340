"""Assumptions of a simulation that make no sense."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import BadSettings
from tests.sketch.simulated_world import Noise, Scenery


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Scenery(fits=1.5), "fits=1.5"),
        (lambda: Scenery(match=-1.0), "match=-1.0"),
        (lambda: Noise(suffices=2.0), "suffices=2.0"),
        (lambda: Noise(context_s=0.0), "context_s=0.0"),
        (lambda: Noise(reward=-1.0), "reward=-1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, said):
    with pytest.raises(BadSettings, match=said):
        make()
