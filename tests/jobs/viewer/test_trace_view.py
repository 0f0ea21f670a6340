"""The tree, the memory and the rounds of a trace are those of its events."""

from __future__ import annotations

from kinodex.agent.trace import read_trace
from kinodex.web.trace_view import Frame, trace_view
from tests.support.libraries.viewer_library import SECONDS


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
