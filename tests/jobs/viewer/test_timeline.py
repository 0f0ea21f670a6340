"""Curves and shots of the videos behind a trace."""

from __future__ import annotations

from tests.support.libraries.viewer_library import SCENE_S, SECONDS


def test_curves_are_high_where_the_query_is_seen(api):
    (curve,) = [each for each in api.curves("t0") if each.query.startswith("red shoes")]
    assert len(curve.percent) == len(curve.times_s) == SECONDS
    assert min(curve.percent[:SCENE_S]) > max(curve.percent[SCENE_S:])
