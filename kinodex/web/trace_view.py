"""A trace as the page draws it: the tree, and each round with its queries, frames, scores, memory and costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from kinodex.agent.traces.trace import Record
from kinodex.index.kinds import QUOTED_KINDS
from kinodex.web.call_costs import CallCost, add_up
from kinodex.web.sentences import end_sentence, round_sentences

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
    """Return what models said of a round: of its new segments, else in notes of its tools, else in plain replies."""
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
