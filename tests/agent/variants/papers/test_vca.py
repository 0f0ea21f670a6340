"""VCA beside Algorithm 1, sections 3.1 to 3.3 and 4.1, and Figures 6 to 8 of its paper (ICCV 2025)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.prompts.rendering import render
from kinodex.agent.requests.tree import Decide, ScoreSegments
from kinodex.agent.traces.events import Expanded
from tests.agent.variants.papers.table_film import (
    ROUNDS,
    SPOKEN,
    WRITTEN,
    Span,
    TreePolicy,
    assert_says,
    beside,
    chosen,
    memories,
    parts_of,
    reason,
    reward,
    run,
    span_of,
    table_film,
    times_of,
    unseen,
    without_lowest,
)

SIZES = {120: (4, 8), 360: (6, 16)}
"""N and the size of the memory by seconds of film. The memory is the paper's (4.1); N is EEA's for VCA (6.2)."""
TEMPERATURE = 0.5
FORBIDDEN = (
    *("already know", "15 words", "few words", "short sentences", "log:", SPOKEN, WRITTEN, "do not explore"),
    *("query", "search text", "findings"),
)


@pytest.mark.parametrize("seconds", [*SIZES])
def test_vca_is_its_papers(tmp_path: Path, seconds: int) -> None:
    size, capacity = SIZES[seconds]
    answer, events, model = run(table_film(tmp_path, seconds), "vca", TreePolicy())
    expanded, held = [event for event in events if isinstance(event, Expanded)], list(memories(events))
    scorings, decisions = model.asked(ScoreSegments), model.asked(Decide)
    assert len(model.requests) == 2 * ROUNDS, "there are no other requests"
    candidates: dict[Span, float] = {}
    memory: list[tuple[float, float]] = []
    history: list[tuple[Span, float]] = []
    dialogue: list[tuple[list[Span], Span]] = []
    span, opened, sampled = (0.0, float(seconds)), set[Span](), set[float]()
    for at in range(ROUNDS):
        scoring, decision, frames_s = scorings[at], decisions[at], times_of(expanded[at].frames)
        assert span_of(expanded[at].parent) == span
        if span not in opened:  # line 8; the paper does not say how a segment that is opened again is sampled
            assert frames_s == equally_spaced(span, size, sampled)
        opened.add(span)
        sampled |= {*frames_s}
        children = parts_of(span, frames_s)
        assert times_of(scoring.frames) == frames_s, "the new frames alone"
        assert [span_of(each) for each in scoring.segments] == children  # line 10
        assert [(span_of(each.segment), each.score) for each in scoring.history] == history
        candidates |= {child: reward(child) for child in children}  # line 12: the one that was opened stays
        history += [(child, reward(child)) for child in children]  # line 14
        rated = [(frame_s, beside(frame_s, children)) for frame_s in frames_s]
        memory = without_lowest([*memory, *rated], capacity)  # line 16
        assert held[at] == [frame_s for frame_s, _ in memory] and times_of(decision.frames) == sorted(held[at])
        assert {span_of(each.segment): each.score for each in decision.candidates} == candidates
        rounds = [([span_of(part.segment) for part in each.segments], each.chosen) for each in decision.dialogue]
        numbers = {span_of(each.segment): each.segment.number for each in decision.candidates}
        assert rounds == [(parts, numbers[choice]) for parts, choice in dialogue]
        check_prompts(scoring, decision, history[: -len(children)])
        if at < ROUNDS - 1:
            span = chosen(candidates, at + 1, sampled)
            dialogue.append((children, span))
    assert (answer.status, answer.option, answer.rounds) == ("answered", 1, ROUNDS)
    assert {request.temperature for request in model.requests} == {TEMPERATURE}


def equally_spaced(span: Span, size: int, sampled: set[float]) -> list[float]:
    """The frames nearest to equal cuts of a segment, none twice and none that was seen."""
    left = unseen(span, sampled)
    found: list[float] = []
    for number in range(1, min(size, len(left)) + 1):
        cut_s = span[0] + (span[1] - span[0]) * number / (size + 1)
        nearest = min(left, key=lambda each: (abs(each - cut_s), each))
        left.remove(nearest)
        found.append(nearest)
    return sorted(found)


def check_prompts(scoring: Any, decision: Any, before: list[tuple[Span, float]]) -> None:
    """Figures 6, 7 and 8: what the reward model and the agent are told, and what no prompt of VCA says."""
    assert [*scoring.schema()["properties"]] == ["segments"]
    names = [*scoring.schema()["properties"]["segments"]["items"]["properties"]]
    assert names == ["segment", "reasoning", "score"], "the explanation stands before the score"
    told = [reason(span).strip() for span, _ in before]
    later = ["be consistent", "closer look"] if told else ["equally spaced"]
    rating = ["reward model", "0 to 100", "first explain", "first imagine", "how you reason", "blue", *later, *told]
    assert_says(render(scoring), rating, FORBIDDEN)
    assert [*decision.schema()["properties"]] == ["action", "segment", "option", "evidence"]
    policy = [
        "complete confidence",
        "do not rush",
        "accuracy comes before speed",
        "key information",
        "if you have enough",
    ]
    policy += [f"You: Segment {each.chosen}" for each in decision.dialogue]
    assert_says(render(decision), policy, (*FORBIDDEN, "somebody walks"))
