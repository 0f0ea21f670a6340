"""Rounds of a trace in plain words, for a reader who has never read a paper about agents.

Each round is one sentence: what was opened and why, how much was looked at, what came of it. They are written from the
records alone, so they can be made while a run is still going.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from kinodex.agent.traces.trace import Record
from kinodex.agent.variants.words import joined, quoted, span
from kinodex.web.step_words import Words, action_words, step_words

LIKELY = 60.0
"""Reward, of 100, from which a part of a video is called likely."""
SPENT = {
    "rounds": "no further round was allowed",
    "frames": "no further frame was allowed",
    "tokens": "no more tokens were allowed",
    "seconds": "the time was up",
    "cost": "the money was spent",
    "stopped": "you stopped it",
}
"""Ends of a run in words, by the reason that the answer names."""


@dataclass(slots=True)
class _Known:
    """State of a run before a round: titles where there are several videos, frames, and what is to be opened."""

    words: Words
    titles: dict[str, str]
    whole: dict[str, tuple[float, float]]
    frames: set[tuple[str, int]] = field(default_factory=set)
    scores: dict[int, float] = field(default_factory=dict)
    decided: Record | None = None


def round_sentences(records: Sequence[Record]) -> dict[int, str]:
    """Return one sentence for each round of a trace, by its number; 0 is what happens before the first."""
    header = records[0]
    videos = header["videos"]
    known = _Known(
        step_words(header.get("agent", "")),
        {each["video_id"]: each["title"] for each in videos} if len(videos) > 1 else {},
        {each["video_id"]: (each["start_s"], each["start_s"] + each["duration_s"]) for each in videos},
    )
    rounds: defaultdict[int, list[Record]] = defaultdict(list)
    for event in records[1:]:
        if event["event"] != "Finished":
            rounds[event.get("round", 0)].append(event)
    return {number: _sentence(number, rounds[number], known) for number in sorted(rounds)}


def latest_sentence(records: Sequence[Record]) -> str:
    """Sentence about the end of an answered run, else about the latest round so far."""
    if not records:
        return "It has not begun yet."
    if ending := end_sentence(records):
        return ending
    sentences = round_sentences(records)
    return sentences[max(sentences)] if sentences else "It begins."


def end_sentence(records: Sequence[Record]) -> str:
    """Sentence about the end of a run; "" for one that has not ended or was cut short."""
    last = records[-1]
    if last["event"] != "Finished":
        return ""
    answer = last["answer"]
    after = f"after {_count(answer['rounds'], 'round')}"
    reason = SPENT.get(answer["reason"], "")
    match answer["status"]:
        case "answered":
            sure = "" if answer["reason"] == "" else ", its best so far, since it could not decide how to go on"
            return f"It answered {after}{sure}."
        case "budget_exhausted" if answer["text"] is None:
            return f"It ended {after} without an answer, because {reason or answer['reason']}."
        case "budget_exhausted":
            return f"It ended {after}, because {reason or answer['reason']}: this is its best answer so far."
        case "evidence_only":
            return f"It ended {after} with the moments that fit the question best; words need a language model."
        case "insufficient_evidence":
            why = f", and {reason}" if reason else ""
            return f"It ended {after} without an answer: what it saw did not suffice{why}."
    return f"It ended {after} without an answer: no reply of its model could be used."


def _sentence(number: int, events: Sequence[Record], known: _Known) -> str:
    """Put the events of a round into words, in their order, and add what they found out to `known`."""
    new = _new_frames(events, known)
    looks = (
        [f"looked at {_count(new, 'frame')}"] if new and not any(_counts_frames(each, known) for each in events) else []
    )
    children = {child["number"] for event in events for child in event.get("children", ())}
    answers = any(event["event"] == "Decided" and event["action"] == "answer" for event in events)
    recalled = any(event.get("request") == "Recall" for event in events)
    clauses = ["looked again at the evidence of the questions before"] if recalled else []
    for event in events:
        match event["event"]:
            case "QueriesAdded" if event["queries"]:
                clauses.append(f"searched for {quoted(event['queries'])}")
            case "Ranked":
                clauses.append(f"put {_count(len(event['segments']), 'video')} into order")
            case "Expanded":
                clauses.append(_opening(event["parent"], known))
                clauses, looks = [*clauses, *looks], []
            case "Acted":
                clauses += filter(None, [action_words(event, known.words, known.titles)])
                clauses, looks = [*clauses, *looks], []
            case "Scored":
                clauses += _scores(event, children, answers)
                known.scores = {one["number"]: one["fused"] for one in event["candidates"]}
            case "Assessed":
                clauses.append(_assurance(event))
            case "Decided":
                clauses += filter(None, [*looks, _decision(event)])
                looks = []
    known.decided = next((each for each in events if each.get("action") == "explore" and "forced" in each), None)
    beginning = "At first it" if number == 0 else f"Round {number}: it"
    return f"{beginning} {joined([*clauses, *looks] or _calls(events))}."


def _new_frames(events: Sequence[Record], known: _Known) -> int:
    """Count the frames of a round that no round before has shown."""
    lists = [event["inputs"].get("frames", ()) for event in events if event["event"] == "Exchanged"]
    lists += [event["frames"] for event in events if event["event"] == "Expanded"]
    here = {(frame["video_id"], frame["frame_no"]) for frames in lists for frame in frames}
    new = len(here - known.frames)
    known.frames |= here
    return new


def _counts_frames(event: Record, known: _Known) -> bool:
    return (
        event["event"] == "Acted"
        and event["action"] in known.words
        and isinstance(event["arguments"].get("frames"), int)
    )


def _opening(segment: Record, known: _Known) -> str:
    title = known.titles.get(segment["video_id"])
    is_whole = known.whole.get(segment["video_id"]) == (segment["start_s"], segment["end_s"])
    name = "all" if title and is_whole else "the whole video" if is_whole else span(segment)
    name += f" of “{title}”" if title else ""
    number = segment["number"]
    if known.decided is None or known.decided["segment"] != number:
        return f"opened {name}"
    best = known.scores.get(number, 0.0) >= max(known.scores.values(), default=1.0)
    return f"opened {name} because {'it looked most promising' if best else 'its model chose it'}"


def _scores(scored: Record, children: set[int], answers: bool) -> list[str]:
    new = [one for one in scored["candidates"] if one["number"] in children and one["reward"] is not None]
    likely = sum(one["reward"] >= LIKELY for one in new)
    if not new or (answers and not likely):
        return []
    return [f"judged {likely or 'none'} of {_count(len(new), 'part')} likely to hold the answer"]


def _assurance(assessed: Record) -> str:
    confidence, most = assessed["confidence"], assessed["most"]
    state = "was sure of its answer" if confidence >= most else "was not sure yet" if confidence else "did not know yet"
    return f"{state} (confidence {confidence:g} of {most:g})"


def _decision(decided: Record) -> str:
    match decided["action"]:
        case "answer":
            return "had to answer with what it had" if decided["forced"] else "found enough to answer"
        case "insufficient_evidence":
            return "found too little to answer"
    return ""


def _calls(events: Sequence[Record]) -> list[str]:
    exchanges = [event for event in events if event["event"] == "Exchanged"]
    if exchanges and all(each["invalid"] is not None for each in exchanges):
        return ["got no reply from its model that could be used"]
    return ["asked its model, without looking at a frame"]


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
