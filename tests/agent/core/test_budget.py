"""Budgets: what they allow, and what an account counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kinodex.agent.errors import BadSettings
from kinodex.agent.limits import Account, Budget
from kinodex.agent.protocol import ShownFrame, Usage


@pytest.mark.parametrize("limit", [{"rounds": 0}, {"frames": -1}, {"cost": 0.0}, {"seconds": -2.0}])
def test_budgets_that_allow_nothing(limit):
    with pytest.raises(BadSettings, match="above 0"):
        Budget(**limit)


def account(**limits: Any) -> Account:
    return Account(replace(Budget(), **limits), index_frames=900)


def frame(frame_no: int, video_id: str = "film") -> ShownFrame:
    return ShownFrame(video_id, frame_no, float(frame_no), 8, 8, b"")


def call(running: Account, tokens: int = 100, cost: float = 0.0) -> None:
    running.begin_call(())
    running.end_call()
    running.charge(Usage(input_tokens=tokens, cost=cost), cached=False, invalid=False, seconds=0.0)


def test_frames_count_once_and_every_showing_counts() -> None:
    running = account(frames=5)
    for _ in range(2):
        running.count_shown([frame(1), frame(2), frame(1, "other")])
    running.count_captioned("film", [2, 3, 4])
    ledger = running.ledger
    assert (ledger.frames, ledger.frame_shows, ledger.frames_with_kept, ledger.index_frames) == (3, 6, 5, 900)
    assert sorted(running.shown_frame_nos("film")) == [1, 2]
    assert running.frames_left == 2
    assert account().frames_left is None


def test_a_call_is_charged_with_its_tokens_money_and_faults() -> None:
    running = account()
    running.begin_call([frame(1)])
    running.end_call()
    usage = Usage(input_tokens=10, output_tokens=4, cached_tokens=6, cost=0.5)
    running.charge(usage, cached=True, invalid=True, seconds=2.0)
    ledger = running.ledger
    assert (ledger.calls, ledger.cached_calls, ledger.invalid_replies, ledger.frames) == (1, 1, 1, 1)
    assert (ledger.input_tokens, ledger.output_tokens, ledger.cached_tokens) == (10, 4, 6)
    assert (ledger.cost, ledger.model_seconds) == (0.5, 2.0)


def test_a_call_is_allowed_while_a_final_one_as_large_still_fits() -> None:
    running = account(tokens=430)
    assert running.exhausted_by_call() is None
    call(running)
    assert running.exhausted_by_call() is None  # 100 spent, and two calls of 110 at most
    running.begin_call(())
    assert running.exhausted_by_call() == "tokens"  # beside one in flight
    running.end_call()
    call(running)
    call(running)
    assert running.exhausted_by_call() == "tokens"
    assert running.exhausted() is None
    call(running, 130)
    assert running.exhausted() == "tokens"


def test_a_round_is_expected_to_cost_as_much_as_the_one_before() -> None:
    running = account(tokens=1000)
    assert running.begin_round() == 1
    for _ in range(4):
        call(running)
    assert running.exhausted_by_round() == "tokens"  # 400, 400 more, and two decisions of 110
    assert account(tokens=2000).exhausted_by_round() is None


def test_rounds_and_frames_end_a_search_by_their_number() -> None:
    running = account(rounds=1, frames=1)
    running.count_shown([frame(1)])
    assert running.exhausted_by_round() == "frames"
    running.begin_round()
    assert running.exhausted_by_round() == "rounds"


def test_money_is_a_budget_too() -> None:
    running = account(cost=1.0)
    call(running, cost=0.4)
    assert running.exhausted_by_call() == "cost"
    assert running.exhausted() is None


def test_estimated_tokens_of_calls_that_no_server_counted_spend_a_budget_too() -> None:
    running = account(tokens=410)
    for _ in range(2):
        assert running.exhausted_by_call() is None
        running.begin_call(())
        running.end_call()
        usage = Usage(unknown_calls=1, estimated_tokens=100, sheets=2, left_out_frames=3)
        running.charge(usage, cached=False, invalid=False, seconds=0.0)
    assert running.exhausted_by_call() == "tokens"
    ledger = running.ledger
    assert (ledger.input_tokens, ledger.unknown_calls, ledger.estimated_tokens, ledger.tokens) == (0, 2, 200, 200)
    assert (ledger.sheets, ledger.left_out_frames) == (4, 6)
