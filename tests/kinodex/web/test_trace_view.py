"""The tree, memory, rounds, costs and curves of a trace are those of its events, and frames stand for its evidence."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from kinodex.agent.trace import read_trace
from kinodex.web.trace_view import CallCost, Frame, evidence_frames, shown_frames, trace_view
from tests.support.libraries.viewer_library import SCENE_S, SECONDS


def test_the_tree_has_every_segment_with_its_parent_and_round(view):
    by_number = {node.number: node for node in view.nodes}
    assert by_number[0].parent is None and by_number[0].depth == 0
    assert (by_number[0].start_s, by_number[0].end_s) == (0.0, SECONDS)
    for node in view.nodes[1:]:
        parent = by_number[node.parent]
        assert parent.start_s <= node.start_s < node.end_s <= parent.end_s
        assert node.depth == parent.depth + 1
        assert node.made_in == parent.opened_in


def test_the_open_segments_of_each_round_are_those_that_were_scored(view):
    for step in view.steps:
        if step.scored:
            there = {node.number for node in view.nodes if node.made_in <= step.round}
            divided = {node.number for node in view.nodes if (node.opened_in or SECONDS) <= step.round}
            assert {each["number"] for each in step.scored["candidates"]} == there - divided


def test_memory_is_what_was_added_less_what_was_evicted(view):
    kept: set[Frame] = set()
    for step in view.steps:
        kept = (kept | set(step.added)) - set(step.evicted)
        assert set(step.memory) == kept
    assert kept


def test_a_run_that_was_cut_short_is_drawn_as_far_as_it_came(shown):
    view = trace_view(read_trace(shown.traces[0])[:-2])
    assert view.answer is None
    assert view.steps[-1].calls


def test_every_round_and_the_end_are_said_in_plain_words(view):
    assert view.steps[1].sentence.startswith("Round 1: it opened the whole video, looked at ")
    assert all(step.sentence.startswith(f"Round {step.round}: it ") for step in view.steps[1:])
    assert view.ending.startswith("It ended after 4 rounds, because no further round was allowed: ")


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


def test_curves_are_high_where_the_query_is_seen(api):
    (curve,) = [each for each in api.curves("t0") if each.query.startswith("red shoes")]
    assert len(curve.percent) == len(curve.times_s) == SECONDS
    assert min(curve.percent[:SCENE_S]) > max(curve.percent[SCENE_S:])


def with_evidence(view, *ranges):
    video_id = view.videos[0]["video_id"]
    held = [{"video_id": video_id, "start_s": start_s, "end_s": end_s} for start_s, end_s in ranges]
    return replace(view, answer=view.answer | {"evidence": held})


def test_the_frame_of_a_range_is_the_one_nearest_its_middle_that_a_model_saw(view, shown):
    (first, *_, last) = sorted(shown_frames(view), key=lambda frame: frame.time_s)
    narrow = with_evidence(view, (last.time_s - 0.2, last.time_s + 0.4), (first.time_s, first.time_s + 0.1))
    assert evidence_frames(shown.library, narrow) == [last, first]
    whole = with_evidence(view, (0.0, 2 * first.time_s + 1e-9))
    assert evidence_frames(None, whole) == [min(shown_frames(view), key=lambda frame: abs(frame.time_s - first.time_s))]


def test_a_range_that_no_model_saw_a_frame_of_has_the_stored_one_in_its_middle(view, shown):
    seen = {frame.time_s for frame in shown_frames(view)}
    unseen_s = next(each for each in range(60) if float(each) not in seen)
    words = with_evidence(view, (unseen_s - 0.4, unseen_s + 0.4))
    (frame,) = evidence_frames(shown.library, words)
    assert frame is not None
    assert (frame.time_s, frame.frame_no) == (unseen_s, unseen_s)
    assert evidence_frames(None, words) == [None]


def test_a_run_without_an_answer_has_no_evidence(view, shown):
    assert evidence_frames(shown.library, replace(view, answer=None)) == []
