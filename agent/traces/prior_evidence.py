"""Evidence for a follow-up question, read from the trace of the question before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.agent.errors import NotATrace
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Earlier
from kinodex.agent.traces.trace import Record, read_trace
from kinodex.agent.videos.environment import Environment

MAX_FRAMES = 16
MAX_NOTES = 64
NO_ANSWER = "(no answer was found)"


@dataclass(frozen=True, slots=True)
class PriorEvidence:
    """The questions answered so far, and the frames and notes that bear on them, by video and in time order."""

    earlier: tuple[Earlier, ...]
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...]


def read_prior_evidence(path: Path, environment: Environment) -> PriorEvidence:
    """Read the evidence of the run behind a trace; without evidence, the last frames and notes that it was shown.

    Raises `NotATrace` if the file is no trace, if the run did not end, or if it is about other videos.
    """
    records = read_trace(path)
    last = records[-1]
    if last["event"] != "Finished":
        raise NotATrace(f"{path} ends before its answer; continue from the trace of a run that has ended")
    known = {video.video_id for video in environment.videos}
    foreign = [video["title"] for video in records[0]["videos"] if video["video_id"] not in known]
    if foreign and len(foreign) == len(records[0]["videos"]):
        raise NotATrace(f"{path} is about {foreign[0]!r}, which is not asked about now; name the same videos")
    evidence = last["answer"]["evidence"]
    shown_frames = [each for each in _inputs(records, "frames") if each["video_id"] in known]
    written = [each for each in _inputs(records, "notes") if not each.get("failed")]
    shown_notes = [each for each in written if each["video_id"] in known]
    frames = _within(shown_frames, evidence, "time_s", "time_s")[-MAX_FRAMES:]
    notes = _within(shown_notes, evidence, "start_s", "end_s")[-MAX_NOTES:]
    times_s: dict[str, list[float]] = {}
    for each in frames:
        times_s.setdefault(each["video_id"], []).append(each["time_s"])
    question = records[0]["question"]
    earlier = [Earlier(**each) for each in question["earlier"]]
    earlier += [Earlier(question["text"], last["answer"]["text"] or NO_ANSWER)]
    seen = [frame for video_id in sorted(times_s) for frame in environment.frames(video_id, times_s[video_id])]
    in_order = sorted((Note(**each) for each in notes), key=lambda note: (note.video_id, note.start_s, note.end_s))
    return PriorEvidence(tuple(earlier), tuple(seen), tuple(in_order))


def _inputs(records: Iterable[Record], name: str) -> list[dict[str, Any]]:
    """Collect the different frames or notes of all requests, in the order in which they were first shown."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        for each in record.get("inputs", {}).get(name, ()):
            same = {key: value for key, value in each.items() if key not in ("label", "detail")}
            found.setdefault(str(sorted(same.items())), each)
    return list(found.values())


def _within(
    shown: list[dict[str, Any]], evidence: Iterable[Mapping[str, Any]], start: str, end: str
) -> list[dict[str, Any]]:
    """Keep the shown parts that lie in the evidence; all of them if none does."""

    def lies_in(each: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
        shares = each[start] < part["end_s"] and each[end] >= part["start_s"]
        return bool(shares and each["video_id"] == part["video_id"])

    return [each for each in shown if any(lies_in(each, part) for part in evidence)] or shown
