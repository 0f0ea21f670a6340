"""`form=paper` of each agent, step by step beside a plain transcription of its paper's algorithm, on a small film.

A transcription has the paper's loop and formulas and nothing else: no session, budgets, retries or prompts. Where the
paper leaves a choice open (which of several sets of frames that cover a segment equally well), it checks the agent's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.describe import DescribeSegment, Summarize
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from kinodex.agent.traces.events import Acted, Assessed, Event, Expanded, Remembered, Scored
from kinodex.agent.variants.longvideoagent.requests import ChooseAction, LocateClips, ReadFrames
from kinodex.agent.variants.videoagent2.requests import AdjustPlan, Assess, CaptionFrames, CreatePlan
from kinodex.agent.variants.videoseek.look_requests import FocusClip, OverviewVideo, SkimRange
from kinodex.agent.variants.videoseek.step_requests import Act, Think
from kinodex.agent.videos.environment import Environment
from kinodex.index.rows import SpeechRow
from tests.support.libraries.agent_library import ScriptedModel, environment_of, film, make_library
from tests.support.runs.kite_runs import asked
from tests.support.screen_text.lines import Line, add_screen_text

QUESTION = Question("What colour is the kite over the desert, at 1:10?", ("blue", "red"))
SPOKEN = ((10.0, 12.0, "Welcome."), (41.0, 43.0, "Look at my kite!"), (71.0, 73.0, "It is gone."))
Span = tuple[float, float]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Two minutes with a kite, lines that are said, and text on screen, which no paper's agent but ours reads."""
    folder: Path = tmp_path_factory.mktemp("forms")
    library = make_library(folder / "library", {"film": film(5, 120, {40: ("red kite desert", 6)})})
    video_id = library.video("film").video_id
    library.writer.add_speech({video_id: [SpeechRow(video_id, *line, source="subtitles") for line in SPOKEN]})
    add_screen_text(library, video_id, [Line(42.0, 44.0, "NO KITES HERE")])
    return environment_of(library)


def run(
    environment: Environment, agent: str, script: Callable[[Request[Any]], Any], **settings: Any
) -> tuple[Answer, list[Event], ScriptedModel]:
    found = asked(environment, script, agent, QUESTION, settings={**settings, "form": "paper"})
    return found.answer, found.events, found.model


def of(kind: type[Any], events: Sequence[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


# The trees: rewards that follow from a segment's times, and a policy that opens the best segment or goes back.

ROUNDS, CAPACITY = 5, 7


def reward(span: Span) -> float:
    return int(37 * span[0] + 11 * span[1]) % 101


def chosen(scores: Mapping[Span, float], number: int) -> Span:
    """The segment that promises most, in the third round the one that promises least of those that hide frames."""
    open_ones = {span: score for span, score in scores.items() if span[1] - span[0] > 1.0}
    return (min if number == 3 else max)(open_ones, key=lambda span: (open_ones[span], span))


class Searcher:
    """A model of a tree search that proposes these queries in the rounds, by number."""

    def __init__(self, proposals: Mapping[int, list[str]]) -> None:
        self.proposals, self.asked, self.decided = proposals, 0, 0

    def __call__(self, request: Request[Any]) -> Any:
        match request:
            case DiscoverQueries():
                return {"queries": ["red kite desert", "white boat sea"]}
            case ScoreSegments():
                scored = [(each.number, reward(span_of(each))) for each in request.segments]
                return {"segments": [{"segment": n, "reasoning": f"so {n}", "score": s} for n, s in scored]}
            case ProposeQueries():
                self.asked += 1
                return {"queries": self.proposals.get(self.asked, [])}
            case Decide(must_answer=False):
                self.decided += 1
                numbers = {span_of(each.segment): each.segment.number for each in request.candidates}
                scores = {span_of(each.segment): each.rank for each in request.candidates}
                return {"Segment": numbers[chosen(scores, self.decided)]}
        return {"option": "B", "evidence": []}


def without_lowest(memory: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Frames and their rewards, without the lowest ones beyond the capacity; of equal ones the latest leave."""
    ranked = sorted(range(len(memory)), key=lambda at: (-memory[at][1], at))
    return [memory[at] for at in sorted(ranked[:CAPACITY])]


def beside(frame_s: float, children: Sequence[Span]) -> float:
    """The larger of the rewards of the two segments that a frame borders."""
    return max(reward(child) for child in children if frame_s in child)


def parts_of(span: Span, frames_s: Sequence[float]) -> list[Span]:
    return [part for part in pairwise([span[0], *frames_s, span[1]]) if part[0] < part[1]]


def eea_as_in_the_paper(
    environment: Environment, proposals: Mapping[int, list[str]], drawn: Sequence[list[float]], size: int, anchored: int
) -> Iterator[dict[str, Any]]:
    """Algorithm 1 of EEA."""
    video = environment.videos[0]
    stored_s = environment.times(video.video_id).tolist()
    queries: list[str] = []
    clips: list[tuple[float, float]] = []
    candidates: dict[Span, tuple[float, float]] = {}
    memory: list[tuple[float, float]] = []
    history: list[tuple[Span, float]] = []

    def search(found: Sequence[str]) -> list[tuple[float, float]]:
        """Retrieve clips of 8 s for new queries; of a cluster of clips that overlap the best frame is the anchor."""
        new = [query for query in found if query.casefold() not in {each.casefold() for each in queries}]
        queries.extend(new)
        matches = environment.search(new, video.video_id, 16, 4.0, [video.video_id], "frames") if new else []
        clips.extend((match.time_s, match.similarity) for match in matches if match.similarity > 0)
        clusters: list[list[tuple[float, float]]] = []
        for clip in sorted(clips):
            if clusters and clip[0] - clusters[-1][-1][0] < 8.0:
                clusters[-1].append(clip)
            else:
                clusters.append([clip])
        return [max(cluster, key=lambda clip: (clip[1], -clip[0])) for cluster in clusters]

    anchors = search(["red kite desert", "white boat sea"])
    span, sampled = (video.start_s, video.end_s), set[float]()
    for number, frames_s in enumerate(drawn, 1):
        points = [time_s for time_s in stored_s if span[0] <= time_s < span[1] and time_s not in sampled]
        best = sorted((each for each in anchors if each[0] in points), key=lambda each: -each[1])[:anchored]
        fixed = [time_s for time_s, _ in best]
        others = itertools.combinations(
            [each for each in points if each not in fixed], min(size, len(points)) - len(best)
        )
        assert {*fixed} <= {*frames_s} <= {*points} and len(frames_s) == min(size, len(points))
        assert coverage(points, frames_s) == min(coverage(points, [*fixed, *more]) for more in others)
        sampled |= {*frames_s}
        children = parts_of(span, frames_s)
        candidates.pop(span, None)
        candidates |= {child: (reward(child), pooled(child, anchors)) for child in children}
        exponents = [math.exp(r / 10) for r, _ in candidates.values()]
        shares = [each / sum(exponents) for each in exponents]
        entropy = -sum(share * math.log(share) for share in shares) / math.log(len(shares))
        fused = {each: (1 - entropy) * r / 100 + entropy * u for each, (r, u) in candidates.items()}
        before = list(history)
        history += [(child, reward(child)) for child in children]
        memory = without_lowest([*memory, *((frame_s, beside(frame_s, children)) for frame_s in frames_s)])
        yield {"history": before, "children": children, "entropy": entropy, "fused": fused, "memory": memory}
        anchors = search(proposals.get(number, []) if number < len(drawn) else [])
        span = chosen(fused, number)


def coverage(points_s: Sequence[float], frames_s: Sequence[float]) -> float:
    """The largest distance of a point from the nearest frame."""
    return max(min(abs(point_s - frame_s) for frame_s in frames_s) for point_s in points_s)


def pooled(span: Span, anchors: Sequence[tuple[float, float]]) -> float:
    """Softmax pooling of the similarities within a segment, at a temperature of 0.1; 0 without any."""
    inside = [similarity for time_s, similarity in anchors if span[0] <= time_s <= span[1]]
    return 0.1 * math.log(sum(math.exp(each / 0.1) for each in inside) / len(inside)) if inside else 0.0


def held(events: Sequence[Event]) -> Iterator[list[float]]:
    """The memory after each round, in the order of arrival."""
    memory: list[Any] = []
    for event in of(Remembered, events):
        memory = [each for each in (*memory, *event.added) if each not in event.evicted]
        yield [each.time_s for each in memory]


def span_of(segment: Any) -> Span:
    return segment.start_s, segment.end_s


@pytest.mark.slow
def test_eea_is_algorithm_1_of_its_paper(environment: Environment) -> None:
    proposals = {1: ["green tree forest"], 2: ["RED kite desert", "black dog city"], 3: []}
    settings = {"frames": 4, "anchor_frames": 2, "memory": CAPACITY, "rounds": ROUNDS}
    answer, events, model = run(environment, "eea", Searcher(proposals), **settings)
    drawn = [[frame.time_s for frame in event.frames] for event in of(Expanded, events)]
    scorings, scored, memories = model.asked(ScoreSegments), of(Scored, events), list(held(events))
    deciding = [*model.asked(Decide)[:-1], None]
    steps = eea_as_in_the_paper(environment, proposals, drawn, 4, 2)
    for at, step in enumerate(steps):
        request = scorings[at]
        assert [frame.time_s for frame in request.frames] == drawn[at], "the new frames alone are judged"
        assert [span_of(each) for each in request.segments] == step["children"], "those that hide nothing too"
        assert [(span_of(each.segment), each.score) for each in request.history] == step["history"]
        assert (request.notes, request.log, {each.detail for each in request.frames}) == ((), None, {"auto"})
        spans = {each.number: span_of(each) for event in of(Expanded, events)[: at + 1] for each in event.children}
        assert scored[at].entropy == pytest.approx(step["entropy"])
        assert {spans[each.number]: each.fused for each in scored[at].candidates} == pytest.approx(step["fused"])
        assert memories[at] == [frame_s for frame_s, _ in step["memory"]]
        if (decision := deciding[at]) is not None:
            assert [frame.time_s for frame in decision.frames] == memories[at]
            open_ones = [number for number, span in spans.items() if span in step["fused"] and span[1] - span[0] > 1]
            listed = render(decision)
            assert all(f"Segment {number}:" in listed and f": so {number}\n" in listed for number in open_ones)
    assert len(drawn) == len(scorings) == ROUNDS
    proposing = model.asked(ProposeQueries)
    assert [[frame.time_s for frame in each.frames] for each in proposing] == drawn[:-1], "none after the last round"
    assert proposing[2].known == ("red kite desert", "white boat sea", "green tree forest", "black dog city")
    assert (answer.option, answer.ledger.frames) == (1, len({*itertools.chain(*drawn)}))


def test_vca_is_algorithm_1_of_its_paper(environment: Environment) -> None:
    _, events, model = run(environment, "vca", Searcher({}), frames=4, memory=CAPACITY, rounds=ROUNDS)
    video = environment.videos[0]
    stored_s = environment.times(video.video_id).tolist()
    expanded, memories = of(Expanded, events), list(held(events))
    candidates: dict[Span, float] = {}
    memory: list[tuple[float, float]] = []
    history: list[tuple[Span, float]] = []
    span, seen, sampled = (video.start_s, video.end_s), set[Span](), set[float]()
    for at, request in enumerate(model.asked(ScoreSegments)):
        frames_s = [frame.time_s for frame in expanded[at].frames]
        assert span_of(expanded[at].parent) == span
        if span not in seen:  # line 8; a segment that is opened again is left open
            equal = [span[0] + (span[1] - span[0]) * number / 5 for number in range(1, 5)]
            left = [time_s for time_s in stored_s if span[0] <= time_s < span[1] and time_s not in sampled]
            for time_s in equal[: len(left)]:
                _, nearest = min((abs(each - time_s), each) for each in left)
                left.remove(nearest)
                assert nearest in frames_s
        seen.add(span)
        sampled |= {*frames_s}
        children = parts_of(span, frames_s)
        assert [frame.time_s for frame in request.frames] == frames_s
        assert [span_of(each) for each in request.segments] == children
        assert [(span_of(each.segment), each.score) for each in request.history] == history
        candidates |= {child: reward(child) for child in children}  # line 12: the one that was opened stays
        history += [(child, reward(child)) for child in children]
        memory = without_lowest([*memory, *((frame_s, beside(frame_s, children)) for frame_s in frames_s)])
        assert memories[at] == [frame_s for frame_s, _ in memory]
        decision = model.asked(Decide)[at]
        if not decision.must_answer:
            assert {span_of(each.segment): each.score for each in decision.candidates} == candidates
            assert [frame.time_s for frame in decision.frames] == memories[at]
            span = chosen(candidates, at + 1)
    assert len(memories) == ROUNDS


def test_longvideoagent_is_algorithm_1_of_its_paper(environment: Environment) -> None:
    said = [
        "<think>Where?</think><request_grounding>the kite</request_grounding>",
        "<visual_query>its colour</visual_query>",
        "hm",
        "<request_grounding></request_grounding>",
    ]
    for last in ("<answer>B.</answer>", "<visual_query>once more</visual_query>"):
        turns = iter([*said, last])

        def script(request: Request[Any], turns: Iterator[str] = turns) -> Any:
            match request:
                case ChooseAction():
                    return next(turns)
                case LocateClips():
                    return {"clips": [3]}
                case ReadFrames():
                    return {"observation": f"About {request.query}: red."}
            raise TypeError(type(request).__name__)

        answer, events, model = run(environment, "longvideoagent", script, clip_s=20.0)
        rollout: list[tuple[str, str]] = []  # y
        clip: Span = (0.0, 0.0)
        for at, turn in enumerate([*said, last]):  # lines 3 to 28
            master = model.asked(ChooseAction)[at]
            assert [each.speaker for each in master.turns] == ["assistant", "user"] * at
            assert [each.text for each in master.turns[::2]] == said[:at]
            for each, (kind, result) in zip(master.turns[1::2], rollout, strict=True):
                assert result in each.text and "turn" not in each.text, kind
            if "</visual_query>" in turn:  # lines 13 to 16
                query = turn.split("<visual_query>")[1].split("</visual_query>")[0]
                rollout.append(("vision", f"About {query}: red."))
                looking = model.asked(ReadFrames)[sum(kind == "vision" for kind, _ in rollout) - 1]
                assert looking.query == query and all(clip[0] <= each.time_s < clip[1] for each in looking.frames)
            elif "</request_grounding>" in turn:  # lines 17 to 19: the question and the subtitles, and nothing else
                clip = (40.0, 60.0)
                rollout.append(("grounding", '<clip_3> (40.0 s to 60.0 s): said: "Look at my kite!"'))
            elif "</answer>" not in turn:  # line 25
                rollout.append(("rethink", "That was not a correct action"))
        assert {(each.wish, each.visited) for each in model.asked(LocateClips)} == {("", ())}
        words = [" ".join(text for at_s, _, text in SPOKEN if 20 * n <= at_s < 20 * n + 20) for n in range(6)]
        assert [each.text for each in model.asked(LocateClips)[0].clips] == words
        assert not any("NO KITES" in render(each) for each in model.requests)
        ended = ("answered", 1, 5) if "</answer>" in last else ("budget_exhausted", None, 5)  # lines 21 and 29
        assert (answer.status, answer.option, answer.rounds) == ended
        assert len(model.asked(ChooseAction)) == 5 and next(turns, None) is None
        assert [each.action for each in of(Acted, events)][:4] == [
            "request_grounding", "visual_query", "malformed", "request_grounding"
        ]  # fmt: skip


def test_videoseek_is_the_loop_of_its_paper(environment: Environment) -> None:
    calls: list[dict[str, Any]] = [
        {"tool": "overview"},
        {"tool": "skim", "start_s": 30.0, "end_s": 60.0, "query": "a kite"},
        {"tool": "focus", "start_s": 40.0, "end_s": 46.0, "query": "Which colour?"},
        {"tool": "answer", "sufficient": True, "option": "B", "evidence": [1]},
    ]
    left = list(calls)

    def script(request: Request[Any]) -> Any:
        match request:
            case Think():
                return {"text": f"thought {len(calls) - len(left)}"}
            case Act():
                return left.pop(0)
            case OverviewVideo() | SkimRange():
                return {
                    "frames": [{"frame": n, "description": f"scene {n}"} for n in range(1, len(request.frames) + 1)]
                }
            case FocusClip():
                return {"found": True, "answer": "It is red.", "frames": [1]}
        raise TypeError(type(request).__name__)

    answer, events, model = run(environment, "videoseek", script, alpha=2)
    tools = [each for each in model.requests if isinstance(each, OverviewVideo | SkimRange | FocusClip)]
    spans = [(0.0, 120.0, 32), (30.0, 60.0, 8), (40.0, 46.0, 6)]  # 16 alpha; 4 alpha; one a second
    for request, (start_s, end_s, count) in zip(tools, spans, strict=True):
        middles = [start_s + (end_s - start_s) * (part + 0.5) / count for part in range(count)]
        assert [frame.time_s for frame in request.frames] == [float(math.floor(each)) for each in middles]
        inside = [text for from_s, to_s, text in SPOKEN if from_s < end_s and to_s > start_s]
        assert [note.text for note in request.subtitles] == inside, "of its range, and no text on screen"
    trajectory: list[str] = []
    for step, (call, acting) in enumerate(zip(calls, model.asked(Act), strict=True)):  # thought, action, observation
        said = [turn.text for turn in acting.turns]
        assert [part for part in trajectory if not any(part in text for text in said)] == []
        assert said[-2] == f"thought {step}"
        trajectory += [f"thought {step}", call["tool"], *(("scene 1",), ("scene 8",), ("It is red.",), ())[step]]
    assert [each.action for each in of(Acted, events)] == [call["tool"] for call in calls]
    assert (answer.status, answer.option, answer.rounds) == ("answered", 1, 4)
    known = [note.text for note in model.asked(Think)[0].known]
    assert known == [text for _, _, text in SPOKEN], "the thinker reads all subtitles at the beginning"


def test_videoagent2_is_algorithm_1_of_its_paper(environment: Environment) -> None:
    for confidences in ([2, 3, 5], [2, 3, 1, 2, 0], [1, 2, 3, 3, 4]):
        left = list(confidences)

        def script(request: Request[Any], left: list[int] = left) -> Any:
            match request:
                case DescribeSegment():
                    return {"caption": f"part {request.segment.start_s:.0f}", "confidence": 80}
                case Summarize():
                    return {"summary": "A film of boats."}
                case Assess():
                    sure = left.pop(0)
                    return {"reasoning": "so", "option": "AB"[sure % 2] if sure else None, "confidence": sure}
                case CreatePlan() | AdjustPlan():
                    at_s = 10.0 * len(getattr(request, "plan", ()))
                    steps = [*getattr(request, "plan", ()), f"look at {at_s:.0f}"]
                    return {"steps": steps, "action": {"tool": "caption", "start_s": at_s}}
                case CaptionFrames():
                    text = f"frame at {request.frames[0].time_s:.0f}"
                    return [{"frame": 1, "clauses": [{"text": text, "confidence": 0.9}]}]
            raise TypeError(type(request).__name__)

        answer, events, model = run(environment, "videoagent2", script)
        bank = [f"part {start_s}" for start_s in range(0, 120, 4)]  # line 1: n is 4 s
        plan: list[str] = []
        planning = iter([each for each in model.requests if isinstance(each, CreatePlan | AdjustPlan)])
        for t, confidence in enumerate(confidences, 1):  # lines 3 to 16
            assessing = model.asked(Assess)[t - 1]
            assert [note.text for note in assessing.notes] == bank
            assert [note.text for note in assessing.summaries] == ["A film of boats."]  # line 2
            if confidence >= 5 or t == 5:  # the last assessment is not followed by a call
                break
            request = next(planning)
            assert type(request) is (CreatePlan if t == 1 else AdjustPlan)  # lines 9 and 11
            assert list(getattr(request, "plan", ())) == plan and [note.text for note in request.notes] == bank
            plan = [*plan, f"look at {10 * len(plan)}"]
            bank = [*bank, f"frame at {10 * (len(plan) - 1)} (confidence 0.90)"]  # lines 13 and 14
        assert next(planning, None) is None and len(of(Assessed, events)) == t
        last = confidences[t - 1]  # line 17: A* = A_T, whatever was answered before
        assert answer.option == ("AB".index("AB"[last % 2]) if last else None), confidences
        assert answer.status == ("answered" if last >= 5 else "budget_exhausted" if last else "insufficient_evidence")
