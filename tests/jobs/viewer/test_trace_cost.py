"""The costs of the rounds add up to the ledger of the answer."""

from __future__ import annotations

from dataclasses import fields

import pytest

from kinodex.agent.trace import read_trace
from kinodex.web.trace_view import CallCost, shown_frames, trace_view


def test_the_ledger_adds_up(view):
    total = sum((step.bill for step in view.steps), CallCost())
    ledger = view.answer["ledger"]
    for each in fields(CallCost):
        assert getattr(total, each.name) + getattr(view.elsewhere, each.name) == pytest.approx(ledger[each.name])
    assert view.steps[-1].so_far == total
    assert view.elsewhere == CallCost()
    assert total.frames == len(shown_frames(view))


def test_frames_that_no_call_showed_are_accounted_for_beside_the_calls(shown):
    records = read_trace(shown.traces[0])
    records[-1]["answer"]["ledger"]["frames"] += 3
    assert trace_view(records).elsewhere == CallCost(frames=3)
