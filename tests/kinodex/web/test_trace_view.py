"""The tree, memory, rounds, costs and curves of a trace are those of its events, and frames stand for its evidence."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from kinodex.agent.traces.trace import read_trace
from kinodex.web.call_costs import CallCost
from kinodex.web.evidence_frames import evidence_frames
from kinodex.web.trace_view import Frame, shown_frames, trace_view
from tests.support.libraries.viewer_library import EVIL, SCENE_S, SECONDS


def test_tree_rounds_and_memory_are_those_of_the_events(view):
    by_number = {node.number: node for node in view.nodes}
    root = by_number[0]
    assert (root.parent, root.depth, root.start_s, root.end_s) == (None, 0, 0.0, SECONDS)
    for node in view.nodes[1:]:
        parent = by_number[node.parent]
        assert parent.start_s <= node.start_s < node.end_s <= parent.end_s
        assert (node.depth, node.made_in) == (parent.depth + 1, parent.opened_in)
    kept: set[Frame] = set()
    for step in view.steps:
        kept = (kept | set(step.added)) - set(step.evicted)
        assert set(step.memory) == kept
        if step.scored:
            there = {node.number for node in view.nodes if node.made_in <= step.round}
            divided = {node.number for node in view.nodes if (node.opened_in or SECONDS) <= step.round}
            assert {each["number"] for each in step.scored["candidates"]} == there - divided
        opened = {number for each in step.opened for number in each["children"]}
        places = {(by_number[each].start_s, by_number[each].end_s) for each in opened}
        rated = {(each.start_s, each.end_s): (each.text, each.score) for each in step.said if each.score is not None}
        assert rated.keys() == places
        assert set(rated.values()) <= {(EVIL, 50.0)}, "as the model scored and explained them"
    assert kept
    assert view.steps[1].sentence.startswith("Round 1: it opened the whole video, looked at ")
    assert all(step.sentence.startswith(f"Round {step.round}: it ") for step in view.steps[1:])
    assert view.ending.startswith("It ended after 4 rounds, because no further round was allowed: ")


def test_the_ledger_adds_up_and_a_run_that_was_cut_short_is_drawn_as_far_as_it_came(view, shown):
    total = sum((step.bill for step in view.steps), CallCost())
    ledger = view.answer["ledger"]
    for each in fields(CallCost):
        assert getattr(total, each.name) + getattr(view.elsewhere, each.name) == pytest.approx(ledger[each.name])
    assert (view.steps[-1].so_far, view.elsewhere, total.frames) == (total, CallCost(), len(shown_frames(view)))
    records = read_trace(shown.traces[0])
    cut = trace_view(records[:-2])
    assert cut.answer is None and cut.steps[-1].calls
    records[-1]["answer"]["ledger"]["frames"] += 3
    assert trace_view(records).elsewhere == CallCost(frames=3), "frames that no call showed"


def test_notes_and_plain_replies_are_said_of_the_frames_they_are_about(shown):
    header, *_, last = read_trace(shown.traces[0])
    call = next(
        each for each in read_trace(shown.traces[0]) if each["event"] == "Exchanged" and each["inputs"].get("frames")
    )
    times_s = [each["time_s"] for each in call["inputs"]["frames"]]
    plain = call | {"reply": {"thought": "", "answer": "a boat"}}
    note = {"video_id": shown.video_id, "start_s": 3.0, "end_s": 4.0, "source": "caption", "text": "a dog"}
    notes = [note, note | {"source": "speech"}]
    acted = {"event": "Acted", "round": 2, "action": "look", "arguments": {}, "problem": "", "notes": notes}
    _, *steps = trace_view([header, call | {"round": 0}, plain | {"round": 1}, acted, last]).steps
    said = [(each.start_s, each.end_s, each.text) for step in steps for each in step.said]
    assert said == [(min(times_s), max(times_s), "a boat"), (3.0, 4.0, "a dog")]


def test_curves_are_high_where_the_query_is_seen(api):
    (curve,) = [each for each in api.curves("t0") if each.query.startswith("red shoes")]
    assert len(curve.percent) == len(curve.times_s) == SECONDS
    assert min(curve.percent[:SCENE_S]) > max(curve.percent[SCENE_S:])


def with_evidence(view, *ranges):
    video_id = view.videos[0]["video_id"]
    held = [{"video_id": video_id, "start_s": start_s, "end_s": end_s} for start_s, end_s in ranges]
    return replace(view, answer=view.answer | {"evidence": held})


def test_the_frame_of_a_range_is_the_one_nearest_its_middle_that_a_model_saw_else_the_stored_one(view, shown):
    (first, *_, last) = sorted(shown_frames(view), key=lambda frame: frame.time_s)
    narrow = with_evidence(view, (last.time_s - 0.2, last.time_s + 0.4), (first.time_s, first.time_s + 0.1))
    assert evidence_frames(shown.library, narrow) == [last, first]
    whole = with_evidence(view, (0.0, 2 * first.time_s + 1e-9))
    assert evidence_frames(None, whole) == [min(shown_frames(view), key=lambda frame: abs(frame.time_s - first.time_s))]
    seen = {frame.time_s for frame in shown_frames(view)}
    unseen_s = next(each for each in range(60) if float(each) not in seen)
    words = with_evidence(view, (unseen_s - 0.4, unseen_s + 0.4))
    (frame,) = evidence_frames(shown.library, words)
    assert frame is not None and (frame.time_s, frame.frame_no) == (unseen_s, unseen_s)
    assert evidence_frames(None, words) == [None]
    assert evidence_frames(shown.library, replace(view, answer=None)) == []
