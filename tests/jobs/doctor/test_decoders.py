"""Decoders, tried on the film that is drawn for them."""

from __future__ import annotations

import importlib.util

from kinodex.doctor.machine import check_decoders
from kinodex.pipeline.decoding.open import DECODERS
from tests.support.runs.check_results import by_name


def test_decoders_are_tried_where_they_are_installed() -> None:
    found = by_name(check_decoders())
    assert list(found) == list(DECODERS)
    assert found["pyav"].said == "read 13 frames of a film that was drawn for it"
    if importlib.util.find_spec("decord") is None:
        assert (found["decord"].state, found["decord"].todo) == ("missing", "pip install 'kinodex[decord]'")
