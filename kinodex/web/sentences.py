"""Rounds of a trace in plain words, for a reader who has never read a paper about agents.

Each round is one sentence: what was opened and why, how much was looked at, what came of it. They are written from the
records alone, so they can be made while a run is still going.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kinodex.agent.trace import Record

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

    titles: dict[str, str]
    whole: dict[str, tuple[float, float]]
    frames: set[tuple[str, int]] = field(default_factory=set)
    scores: dict[int, float] = field(default_factory=dict)
    decided: Record | None = None


def round_sentences(records: Sequence[Record]) -> dict[int, str]:
    """One sentence for each round of a trace, by its number; 0 is what happens before the first."""
    header = records[0]
    videos = header["videos"]
    known = _Known(
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
        case "insufficient_evidence":
            why = f", and {reason}" if reason else ""
            return f"It ended {after} without an answer: what it saw did not suffice{why}."
    return f"It ended {after} without an answer: no reply of its model could be used."


def _sentence(number: int, events: Sequence[Record], known: _Known) -> str:
    """Put the events of a round into words, in their order, and add what they found out to `known`."""
    new = _new_frames(events, known)
    acted = [event for event in events if event["event"] == "Acted" and event["action"] in IN_WORDS]
    is_counted = any("frames" in event["arguments"] for event in acted)  # the step's words hold the number
    looks = [f"looked at {_count(new, 'frame')}"] if new and not is_counted else []
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
                clauses += filter(None, [action_words(event, known.titles)])
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


def _opening(segment: Record, known: _Known) -> str:
    """Say which part was opened, and why, if the decision before named it."""
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
    """Say how many of the new parts are likely; that none is likely would not go with an answer."""
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
    """Say what there is to say about a round of calls alone."""
    exchanges = [event for event in events if event["event"] == "Exchanged"]
    if exchanges and all(each["invalid"] is not None for each in exchanges):
        return ["got no reply from its model that could be used"]
    return ["asked its model, without looking at a frame"]


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


# Steps of agents that work with tools, in plain words: "skimmed 0:10 to 2:00 for “a dog”".

IN_WORDS = ("caption", "broaden", "deepen")
"""Actions that say themselves how many frames were looked at."""
QUOTED = 3
LONGEST = 80
UNSAID = ("answer",)
"""Actions that the decision after them puts into words."""


def action_words(acted: Record, titles: Mapping[str, str]) -> str:
    """Put one step into words, as a clause without a subject; "" for a step that another event tells about.

    `titles` are those of the videos where there are several. An unknown action, of an agent from elsewhere, has its
    own name.
    """
    name, arguments = acted["action"], acted["arguments"]
    if name in UNSAID:
        return ""
    if name == "verify":
        led = "did not lead" if acted["problem"] else "led"
        return f"looked again at the evidence alone, which {led} to the answer"
    if name == "chapters":
        return "read the list of scenes and chapters" if arguments["listed"] else "found no scenes or chapters to read"
    words = _WORDS[name](acted) if name in _WORDS else f"took the step “{name.replace('_', ' ')}”"
    video = arguments.get("video")  # as a model named it: by the first digits of its id, or by its title
    title = next((title for id_, title in titles.items() if video and (id_.startswith(video) or title == video)), "")
    return words + (f" of “{title}”" if title else "") + (", which did not work" if acted["problem"] else "")


def quoted(texts: Sequence[str]) -> str:
    """The first few of some texts in quotation marks, with the count of the others."""
    shown = [f"“{_short(each)}”" for each in texts[:QUOTED]]
    rest = len(texts) - QUOTED
    return joined([*shown, f"{rest} more"] if rest > 0 else shown)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _caption(acted: Record) -> str:
    if "frames" in acted["arguments"]:
        return f"put {_frames(acted)} into words"
    return f"had {span(acted['arguments'])} put into words"


def _frames(acted: Record, more: str = "") -> str:
    count = acted["arguments"]["frames"]
    return f"{count} {more}frame{'' if count == 1 else 's'}"


def _retrieve(acted: Record) -> str:
    texts = [each.partition(": ")[2] or each for each in acted["arguments"]["frames"]]
    return f"went to look for {quoted(texts)}" if texts else "found nothing more to look for"


def _query(acted: Record) -> str:
    query = acted["arguments"].get("query")
    return f" for {quoted([query])}" if query else ""


def _ground(acted: Record) -> str:
    found = joined([span(note) for note in acted["notes"][:QUOTED]])
    return f"searched what is said and described{_query(acted)}" + (f", which led to {found}" if found else "")


def _look(acted: Record) -> str:
    times_s = acted["arguments"].get("times_s") or ()
    if not times_s:
        return "chose frames to look at"
    first, last = clock(min(times_s)), clock(max(times_s))
    return f"chose frames {f'at {first}' if first == last else f'from {first} to {last}'}"


def _label(acted: Record, otherwise: str) -> str:
    label = acted["arguments"].get("label")
    return f"“{_short(label)}”" if label else otherwise


_WORDS: dict[str, Callable[[Record], str]] = {
    "caption": _caption,
    "broaden": lambda acted: f"put {_frames(acted)} from all over the video into words",
    "deepen": lambda acted: f"put {_frames(acted, 'more ')} like the relevant ones into words",
    "retrieve": _retrieve,
    "overview": lambda acted: "looked over the whole video",
    "skim": lambda acted: f"skimmed {span(acted['arguments'])}{_query(acted)}",
    "focus": lambda acted: f"watched {span(acted['arguments'])} closely{_query(acted)}",
    "request_grounding": _ground,
    "visual_query": lambda acted: f"had the frames there searched{_query(acted)}",
    "detect": lambda acted: f"looked for {_label(acted, 'things')} in {span(acted['arguments'])}",
    "zoom_caption": lambda acted: f"zoomed in at {span(acted['arguments'])} and had it put into words",
    "zoom_detect": lambda acted: f"zoomed in at {span(acted['arguments'])} and looked for {_label(acted, 'things')}",
    "track": lambda acted: f"followed {_label(acted, 'a thing')} from {span(acted['arguments'])}",
    "look": _look,
    "captions": lambda acted: "put the video into words, with gaps",
    "none": lambda acted: "got no step from its model that could be taken",
    "malformed": lambda acted: "got no step from its model that could be taken",
}


# Ranges of time and lists in words, as a sentence holds them.


def clock(time_s: float) -> str:
    """A time as a player shows it, with tenths only where it has some: 75.5 -> "1:15.5", 3675 -> "1:01:15"."""
    tenths = round(time_s * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest // 10:02d}" + (f".{rest % 10}" if rest % 10 else "")
    return f"{hours}:{minutes:02d}:{seconds}" if hours else f"{minutes}:{seconds}"


def span(part: Mapping[str, Any]) -> str:
    """Range of a segment, a note, or a tool's arguments, in words; "" without a start."""
    start_s, end_s = part.get("start_s"), part.get("end_s")
    if start_s is None:
        return ""
    return clock(start_s) if end_s is None else f"{clock(start_s)} to {clock(end_s)}"


def joined(parts: Sequence[str]) -> str:
    """Clauses as one list: "a", "a and b", "a, b, and c"."""
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"
