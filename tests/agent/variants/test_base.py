"""Settings of agents: set by name, from text, and checked."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import BadSettings
from kinodex.agent.variants.base import with_settings
from kinodex.agent.variants.eea import EEAParameters


def test_parameters_are_set_by_name_and_checked():
    defaults = EEAParameters()
    assert with_settings(defaults, {"frames": "4", "query_update": "false", "clip_s": "2.5"}) == EEAParameters(
        frames=4, query_update=False, clip_s=2.5
    )
    with pytest.raises(BadSettings, match="no parameter 'frame'; did you mean 'frames'"):
        with_settings(defaults, {"frame": "4"})
    with pytest.raises(BadSettings, match="no parameter 'foo'; the parameters are "):
        with_settings(defaults, {"foo": "3"})
    with pytest.raises(BadSettings, match="got frames='many'; Input should be a valid integer"):
        with_settings(defaults, {"frames": "many"})
    with pytest.raises(BadSettings, match="got anchor_frames=9 of frames=6"):
        with_settings(defaults, {"anchor_frames": "9"})
    with pytest.raises(BadSettings, match="got memory=0; it is at least 1"):
        with_settings(defaults, {"memory": "0"})
