"""A trace as the page draws it: the tree, and each round with its queries, frames, scores, memory and costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.traces.trace import Record
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.scale import calibrate
from kinodex.index.kinds import QUOTED_KINDS
from kinodex.index.library import Library
from kinodex.web.sentences import end_sentence, round_sentences

# Costs of the calls of a trace, so that a reader can add up the answer's ledger.


@dataclass(frozen=True, slots=True)
class CallCost:
    """Costs under the names of `agent.limits.ledger.Ledger`; `frames` counts those that were not shown before."""

    calls: int = 0
    cached_calls: int = 0
    invalid_replies: int = 0
    frames: int = 0
    frame_shows: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    model_seconds: float = 0.0

    def __add__(self, other: CallCost) -> CallCost:
        return CallCost(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(CallCost)))


def add_up(calls: Sequence[Record], known: Collection[Any]) -> CallCost:
    shown = [frame for call in calls for frame in call["frames"]]
    names = ("input_tokens", "output_tokens", "cached_tokens", "cost")
    return CallCost(
        calls=len(calls),
        cached_calls=sum(bool(call["cached"]) for call in calls),
        invalid_replies=sum(call["invalid"] is not None for call in calls),
        frames=len(set(shown) - set(known)),
        frame_shows=len(shown),
        **{name: sum(call["usage"][name] for call in calls) for name in names},
        model_seconds=sum(call["seconds"] for call in calls),
    )


HEADER_FIELDS = ("agent", "question", "models", "parameters", "budget", "space", "index_frames", "videos")
CALL_FIELDS = ("model", "role", "request", "prompt", "raw", "reply", "invalid", "usage", "cached", "seconds")


@dataclass(frozen=True, slots=True)
class Frame:
    video_id: str
    frame_no: int
    time_s: float
    jpeg: str


@dataclass(slots=True)
class Node:
    """A segment `[start_s, end_s)` of the tree, with its parent and the rounds in which it was made and opened."""

    number: int
    video_id: str
    start_s: float
    end_s: float
    parent: int | None
    depth: int
    made_in: int
    opened_in: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A model's words about `[start_s, end_s)` of a video it looked at, and the score, 0 to 100, if it gave one."""

    video_id: str
    start_s: float
    end_s: float
    text: str
    score: float | None = None


@dataclass(slots=True)
class Step:
    """A round: its events, and the state after it.

    `queries` are new, `anchors` are all so far. `opened` are expansions, `scored` the last scores of all
    candidates. `shown` are the round's different frames, `memory` those kept after it. `acted` are steps of agents that
    work with tools. `bill` is of this round's calls, `so_far` of all until its end. `sentence` is the round in plain
    words, `said` what models said of its frames.
    """

    round: int
    sentence: str = ""
    queries: list[str] = field(default_factory=list)
    anchors: list[Record] = field(default_factory=list)
    ranked: list[Record] = field(default_factory=list)
    opened: list[Record] = field(default_factory=list)
    scored: Record | None = None
    shown: list[Frame] = field(default_factory=list)
    added: list[Frame] = field(default_factory=list)
    evicted: list[Frame] = field(default_factory=list)
    memory: list[Frame] = field(default_factory=list)
    acted: list[Record] = field(default_factory=list)
    assessed: list[Record] = field(default_factory=list)
    decided: Record | None = None
    calls: list[Record] = field(default_factory=list)
    bill: CallCost = field(default_factory=CallCost)
    so_far: CallCost = field(default_factory=CallCost)
    said: list[Said] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TraceView:
    """A whole trace. `answer` is None where the run was cut short or still goes on; then `ending` is "".

    `elsewhere` is what the answer's ledger holds beyond the calls, such as frames that a detector saw.
    """

    agent: str
    question: Record
    models: Record
    parameters: Record
    budget: Record
    space: str
    index_frames: int
    videos: list[Record]
    nodes: list[Node]
    steps: list[Step]
    answer: Record | None
    elsewhere: CallCost
    ending: str


def trace_view(records: Sequence[Record]) -> TraceView:
    header, last = records[0], records[-1]
    answer = last["answer"] if last["event"] == "Finished" else None
    steps, nodes = _steps(records), _nodes(records)
    for step in steps:
        step.said = _said(step, {node.number: node for node in nodes})
    spent, ledger = steps[-1].so_far if steps else CallCost(), answer["ledger"] if answer else {}
    left = {each.name: ledger.get(each.name, 0) - getattr(spent, each.name) for each in fields(CallCost) if ledger}
    return TraceView(
        **{name: header[name] for name in HEADER_FIELDS},
        nodes=nodes,
        steps=steps,
        answer=answer,
        elsewhere=CallCost(**{name: value for name, value in left.items() if abs(value) > 1e-9}),  # less is rounding
        ending=end_sentence(records),
    )


def shown_frames(view: TraceView) -> list[Frame]:
    return list(dict.fromkeys(frame for step in view.steps for frame in (*step.shown, *step.added)))


def _nodes(records: Sequence[Record]) -> list[Node]:
    nodes: dict[int, Node] = {}
    for event in records:
        if event["event"] == "Ranked":
            nodes |= {each["number"]: Node(**each, parent=None, depth=0, made_in=0) for each in event["segments"]}
        elif event["event"] == "Expanded":
            opened, made_in = event["parent"], event["round"]
            parent = nodes.setdefault(opened["number"], Node(**opened, parent=None, depth=0, made_in=0))
            parent.opened_in = made_in
            for child in event["children"]:
                nodes[child["number"]] = Node(**child, parent=parent.number, depth=parent.depth + 1, made_in=made_in)
    return [nodes[number] for number in sorted(nodes)]


def _steps(records: Sequence[Record]) -> list[Step]:
    """Rounds in order; round 0 holds the events before the first."""
    by_round: defaultdict[int, list[Record]] = defaultdict(list)
    for event in records[1:]:
        if event["event"] != "Finished":
            by_round[event.get("round", 0)].append(event)
    steps: list[Step] = []
    known: set[Frame] = set()
    sentences = round_sentences(records)
    for number in sorted(by_round):
        before = steps[-1] if steps else Step(-1)
        step = Step(number, sentences[number], anchors=before.anchors, memory=list(before.memory))
        for event in by_round[number]:
            _take(step, event)
        step.shown = list(dict.fromkeys(frame for call in step.calls for frame in call["frames"]))
        step.bill = add_up(step.calls, known)
        step.so_far = before.so_far + step.bill
        known |= set(step.shown)
        steps.append(step)
    return steps


def _take(step: Step, event: Record) -> None:
    match event["event"]:
        case "Exchanged":
            step.calls.append(_call(event))
        case "QueriesAdded":
            step.queries += event["queries"]
            step.anchors = event["anchors"]
        case "Ranked":
            scores = event["similarities"]
            step.ranked = [
                {"number": each["number"], "similarity": score}
                for each, score in zip(event["segments"], scores, strict=True)
            ]
        case "Expanded":
            opened = {"parent": event["parent"]["number"], "children": [each["number"] for each in event["children"]]}
            shown = {"frames": _frames(event["frames"]), "anchor_frame_nos": event["anchor_frame_nos"]}
            step.opened.append(opened | shown)
        case "Scored":
            step.scored = {"entropy": event["entropy"], "candidates": event["candidates"]}
        case "Remembered":
            added, evicted = _frames(event["added"]), _frames(event["evicted"])
            step.added += added
            step.evicted += evicted
            kept = [frame for frame in dict.fromkeys((*step.memory, *added)) if frame not in evicted]
            step.memory = sorted(kept, key=lambda frame: (frame.video_id, frame.time_s))
        case "Acted":
            step.acted.append(_fields(event))
        case "Assessed":
            step.assessed.append(_fields(event))
        case "Decided":
            step.decided = _fields(event)


def _call(event: Record) -> Record:
    inputs = event["inputs"]
    turns = [{"speaker": turn["speaker"], "text": turn["text"]} for turn in inputs.get("turns", ())]
    call = {name: event[name] for name in CALL_FIELDS}
    return call | {"attempt": inputs.get("attempt", 0), "frames": _frames(inputs.get("frames", ())), "turns": turns}


SAYING = ("observation", "caption", "summary", "reasoning", "thought", "answer")
"""Fields of replies that say in words what a model saw, the first that is filled counts."""


def _said(step: Step, nodes: Mapping[int, Node]) -> list[Said]:
    """Words of models about a round's frames: its new segments, else notes of its tools, else plain replies."""
    opened = {number for each in step.opened for number in each["children"]}
    scored = [each for each in (step.scored or {}).get("candidates", ()) if each["number"] in opened]
    places = [(nodes[each["number"]], each) for each in scored if each["reward"] is not None or each["explanation"]]
    said = [Said(at.video_id, at.start_s, at.end_s, each["explanation"], each["reward"]) for at, each in places]
    notes = [note for acted in step.acted for note in acted.get("notes", ()) if note["source"] not in QUOTED_KINDS]
    said = said or [Said(each["video_id"], each["start_s"], each["end_s"], each["text"]) for each in notes]
    return sorted(said or _replied(step), key=lambda each: (each.video_id, each.start_s))


def _replied(step: Step) -> list[Said]:
    said = []
    for call in step.calls:
        reply = call["reply"] or {}
        text = next((reply[name] for name in SAYING if isinstance(reply.get(name), str) and reply[name]), None)
        frames = call["frames"] if text else ()
        for video_id in dict.fromkeys(frame.video_id for frame in frames):
            times_s = [frame.time_s for frame in frames if frame.video_id == video_id]
            said.append(Said(video_id, min(times_s), max(times_s), str(text)))
    return said


def _frames(records: Iterable[Record]) -> list[Frame]:
    return [Frame(each["video_id"], each["frame_no"], each["time_s"], each["jpeg"]) for each in records]


def _fields(event: Record) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in ("event", "round")}


# Curves and shots of the videos behind a trace: how well each query matches every frame, and where shots begin.

MOST_POINTS = 1500
"""More frames than this are grouped, each group shown by its best match: a screen has no more columns."""
MOST_SPANS = 3000


@dataclass(frozen=True, slots=True)
class Curve:
    query: str
    video_id: str
    times_s: list[float]
    percent: list[int]


def shots(library: Library, video_ids: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    """Segments of each video as `[start_s, end_s)`; a video with too many to draw is left out."""
    spans_s = {each: [(row.start_s, row.end_s) for row in library.segments(each)] for each in video_ids}
    return {video_id: shots_s for video_id, shots_s in spans_s.items() if len(shots_s) <= MOST_SPANS}


def curves(view: TraceView, environment: Environment) -> list[Curve]:
    """Draw a curve for each query and video of a trace, on the scale that the agent saw (`Environment.search`)."""
    among = [video.video_id for video in environment.videos]
    drawn: list[Curve] = []
    for step in view.steps:
        for video_id in among if step.queries else ():
            times_s = environment.times(video_id)
            matched = calibrate(environment.deviations(step.queries, video_id, among))
            for query, similarity in zip(step.queries, matched.T, strict=True):
                drawn.append(_curve(query, video_id, times_s, similarity))
    return drawn


def _curve(query: str, video_id: str, times_s: NDArray[np.float64], similarity: NDArray[np.float64]) -> Curve:
    width = -(-len(times_s) // MOST_POINTS)
    firsts = np.arange(0, len(times_s), max(width, 1))
    best = np.maximum.reduceat(similarity, firsts)
    return Curve(query, video_id, times_s[firsts].round(2).tolist(), (100 * best).round().astype(int).tolist())


# The frame that stands for each range of an answer's evidence: one that a model saw, else the middle one.

END_S = 1e-6


def evidence_frames(library: Library | None, view: TraceView) -> list[Frame | None]:
    """For each range of the evidence the shown frame nearest to its middle, else the stored one, else None."""
    ranges = view.answer["evidence"] if view.answer else []
    shown = shown_frames(view) if ranges else []
    frames = []
    for each in ranges:
        middle_s = (each["start_s"] + each["end_s"]) / 2
        inside = [
            frame
            for frame in shown
            if frame.video_id == each["video_id"] and each["start_s"] <= frame.time_s < each["end_s"]
        ]
        nearest = min(inside, key=lambda frame: abs(frame.time_s - middle_s), default=None)
        frames.append(nearest or _stored(library, each["video_id"], middle_s))
    return frames


def _stored(library: Library | None, video_id: str, time_s: float) -> Frame | None:
    if library is None:
        return None
    video = library.video(video_id)
    if not video.frames:
        return None
    (frame,) = library.frames_at(video_id, [min(max(time_s, video.start_s), video.end_s - END_S)])
    return Frame(video_id, frame.frame_no, frame.time_s, "")
