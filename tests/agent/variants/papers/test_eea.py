"""EEA beside Algorithm 1, sections 3.1 to 3.3, 4.1 and 6.2, and Tables 7 to 11 of arXiv 2512.03500."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.traces.events import Expanded, Scored
from kinodex.agent.variants.eea.requests import ProposeQueries
from tests.agent.variants.papers.table_film import (
    ROUNDS,
    SPOKEN,
    TEXTS,
    WRITTEN,
    Span,
    TreePolicy,
    assert_says,
    beside,
    calibrated,
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

B_S = 3
"""Anchors of a round (Figure 6)."""
SIZES = {120: (4, 8), 360: (6, 16)}
"""B and the size of the memory by seconds of film: EgoSchema's and LVBench's (sections 4.1 and 6.2)."""
TAU_C = 0.1
TEMPERATURE = 0.5
RETRIEVED, CLIP_S = 16, 8.0
"""The paper names neither the number nor the length of retrieved clips; `docs/papers.md` has these."""
DISCOVERED = TEXTS[:2]
PROPOSED = {1: [TEXTS[2]], 2: ["RED kite desert", TEXTS[3]], 3: []}
FORBIDDEN = ("already know", "15 words", "few words", "short sentences", "log:", SPOKEN, WRITTEN, "do not explore")


class Policy(TreePolicy):
    """A model of trees that proposes these queries besides."""

    proposals = 0

    def __call__(self, request: Request[Any]) -> Any:
        match request:
            case DiscoverQueries():
                return [*DISCOVERED]
            case ProposeQueries():
                self.proposals += 1
                return {f"query{n}": text for n, text in enumerate(PROPOSED.get(self.proposals, []), 1)}
        return super().__call__(request)


def as_in_the_paper(seconds: int, drawn: Sequence[list[float]]) -> Iterator[dict[str, Any]]:
    """Algorithm 1; of sets of frames that cover a segment equally well it takes the agent's."""
    size, capacity = SIZES[seconds]
    queries: list[str] = []
    clips: list[tuple[float, float]] = []
    candidates: dict[Span, tuple[float, float]] = {}
    memory: list[tuple[float, float]] = []
    history: list[tuple[Span, float]] = []

    def anchors_with(found: Sequence[str]) -> list[tuple[float, float]]:
        """Section 3.1: retrieve for new queries, merge, cluster by overlap, keep each cluster's best frame."""
        new = [text for text in found if text.casefold() not in {each.casefold() for each in queries}]
        queries.extend(new)
        for similarities in calibrated(new, seconds).values() if new else ():
            clips.extend(retrieved(similarities))
        clusters: list[list[tuple[float, float]]] = []
        for clip in sorted(clips):
            if clusters and clip[0] - clusters[-1][-1][0] < CLIP_S:
                clusters[-1].append(clip)
            else:
                clusters.append([clip])
        return [max(cluster, key=lambda clip: (clip[1], -clip[0])) for cluster in clusters]

    anchors = anchors_with(DISCOVERED)  # lines 5 and 6
    span, sampled = (0.0, float(seconds)), set[float]()
    for number, frames_s in enumerate(drawn, 1):
        points = unseen(span, sampled)
        best = sorted((each for each in anchors if each[0] in points), key=lambda each: -each[1])[:B_S]  # line 9
        fixed = [time_s for time_s, _ in best]
        assert {*fixed} <= {*frames_s} <= {*points} and len(frames_s) == min(size, len(points))
        assert coverage(points, frames_s) == least_coverage(points, fixed, size - len(fixed))  # line 10
        sampled |= {*frames_s}
        children = parts_of(span, frames_s)
        candidates.pop(span, None)  # line 15
        candidates |= {child: (reward(child), pooled(child, anchors)) for child in children}  # lines 12 and 13
        exponents = [math.exp(r) for r, _ in candidates.values()]  # line 17
        shares = [each / sum(exponents) for each in exponents]
        entropy = -sum(share * math.log(share) for share in shares) / math.log(len(shares))
        fused = {each: (1 - entropy) * r / 100 + entropy * u for each, (r, u) in candidates.items()}
        before = list(history)
        history += [(child, reward(child)) for child in children]  # line 19
        rated = [(frame_s, beside(frame_s, children)) for frame_s in frames_s]
        memory = without_lowest([*memory, *rated], capacity)  # line 20
        known = list(queries)
        yield {"history": before, "children": children, "entropy": entropy, "fused": fused, "memory": memory,
               "known": known}  # fmt: skip
        anchors = anchors_with(PROPOSED.get(number, []))  # lines 22 and 23
        span = chosen(fused, number, sampled)  # line 25


def retrieved(similarities: Sequence[float]) -> list[tuple[float, float]]:
    """The best frames of a query, none closer to a better one than half a clip; one at the median matches nothing."""
    found: list[tuple[float, float]] = []
    for second in sorted(range(len(similarities)), key=lambda at: (-similarities[at], at)):
        if len(found) < RETRIEVED and all(abs(second - at_s) >= CLIP_S / 2 for at_s, _ in found):
            found.append((float(second), similarities[second]))
    return [each for each in found if each[1] > 0]


def pooled(span: Span, anchors: Sequence[tuple[float, float]]) -> float:
    """Section 3.2: softmax pooling of the similarities within a segment; 0 without any."""
    inside = [similarity for time_s, similarity in anchors if span[0] <= time_s <= span[1]]
    return TAU_C * math.log(sum(math.exp(each / TAU_C) for each in inside) / len(inside)) if inside else 0.0


def coverage(points_s: Sequence[float], frames_s: Sequence[float]) -> float:
    """The largest distance of a point from the nearest frame."""
    return max(min(abs(point_s - frame_s) for frame_s in frames_s) for point_s in points_s)


def least_coverage(points_s: Sequence[float], fixed_s: Sequence[float], count: int) -> float:
    """The smallest distance that `count` further points can reach: they are whole seconds, so it is one."""
    for radius in range(int(points_s[-1]) + 1):
        left = [each for each in points_s if all(abs(each - at) > radius for at in fixed_s)]
        needed = 0
        while left:
            needed += 1
            middle = max(each for each in points_s if each <= left[0] + radius)
            left = [each for each in left if each > middle + radius]
        if needed <= count:
            return float(radius)
    raise AssertionError("no radius is enough")


@pytest.mark.parametrize("seconds", [*SIZES])
def test_eea_is_its_papers(tmp_path: Path, seconds: int) -> None:
    answer, events, model = run(table_film(tmp_path, seconds), "eea", Policy())
    expanded = [event for event in events if isinstance(event, Expanded)]
    scored = [event for event in events if isinstance(event, Scored)]
    drawn = [times_of(event.frames) for event in expanded]
    scorings, decisions, proposing = model.asked(ScoreSegments), model.asked(Decide), model.asked(ProposeQueries)
    held = list(memories(events))
    assert [len(each) for each in (drawn, scorings, decisions, proposing, held)] == [ROUNDS] * 5
    for at, step in enumerate(as_in_the_paper(seconds, drawn)):
        scoring, decision = scorings[at], decisions[at]
        assert times_of(scoring.frames) == times_of(proposing[at].frames) == drawn[at], "the new frames alone"
        assert [span_of(each) for each in scoring.segments] == step["children"]
        assert [(span_of(each.segment), each.score) for each in scoring.history] == step["history"]
        spans = {each.number: span_of(each) for event in expanded[: at + 1] for each in event.children}
        assert scored[at].entropy == pytest.approx(step["entropy"], abs=1e-6)
        fused = {spans[each.number]: each.fused for each in scored[at].candidates}
        assert fused == pytest.approx(step["fused"], abs=2e-3), "stored vectors have 16 bits"
        assert held[at] == [frame_s for frame_s, _ in step["memory"]]
        assert times_of(decision.frames) == sorted(held[at])
        assert list(proposing[at].known) == step["known"]
        check_prompts(scoring, decision, step)
    assert max(each.entropy or 0 for each in scored) > 0.2 and min(each.entropy or 0 for each in scored) < 0.9
    assert (answer.status, answer.option, answer.rounds) == ("answered", 1, ROUNDS)
    assert {request.temperature for request in model.requests} == {TEMPERATURE}
    assert_says(render(model.requests[0]), ["1 to 5", "6 to 12", "do not answer", "options", "blue"], FORBIDDEN[:4])
    assert_says(
        render(proposing[2]), ["2 to 5", "less than ten words", "red kite desert", "black dog city"], FORBIDDEN[:4]
    )


def check_prompts(scoring: Any, decision: Any, step: Mapping[str, Any]) -> None:
    """Tables 7, 8 and 9: what the reward model and the policy are told, and what no prompt of EEA says."""
    shape = scoring.schema()["properties"]
    assert [*shape] == ["segments"] and len(step["children"]) == shape["segments"]["minItems"]
    names = [*shape["segments"]["items"]["properties"]]
    assert names == ["segment", "reasoning", "score"], "the explanation stands before the score"
    told = [reason(span).strip() for span, _ in step["history"]]
    later = ["rounds before", "has been divided"] if told else ["divide the video"]
    rating = ["reward model", "0 to 100", "explain how these two frames", "cues", "blue", *later, *told]
    assert_says(render(scoring), rating, FORBIDDEN)
    assert [*decision.schema()["properties"]] == ["action", "segment", "option", "evidence"]
    policy = [
        "complete confidence",
        "as thoroughly as you can",
        "ample time",
        "query score",
        "reward",
        "if you have enough",
    ]
    text = " ".join(render(decision).split())
    assert_says(text, policy, FORBIDDEN)
    open_ones = [each for each in decision.candidates if each.explorable]
    assert all(reason(span_of(each.segment)).strip() in text for each in open_ones), "each has its whole explanation"
