"""A run as events: written to a trace, replayed from it, and continued by a follow-up question."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.budget import Budget
from kinodex.agent.environment import Environment
from kinodex.agent.errors import NotATrace, NotInTrace
from kinodex.agent.prompts import render
from kinodex.agent.protocol import (
    Anchor,
    Earlier,
    Exchange,
    Note,
    Question,
    R,
    Request,
    Segment,
    ShownFrame,
    Usage,
    Video,
    plain,
    request_fields,
    request_key,
)
from kinodex.index.named_files import open_named, read_bytes
from kinodex.index.nesting import parse_json

# Events of a run, one class each: to show a run live, and to write its trace.
#
# The names of the classes and fields are those of the trace.


@dataclass(frozen=True, slots=True)
class RunStarted:
    """All inputs of a run besides the replies of the models."""

    question: Question
    agent: str
    parameters: Mapping[str, Any]
    budget: Budget
    videos: tuple[Video, ...]
    space: str
    index_frames: int
    models: Mapping[str, str]
    rules: AnswerRules = USUAL


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A request, and the reply to it, valid or not."""

    round: int
    model: str
    request: Request[Any]
    exchange: Exchange[Any]


@dataclass(frozen=True, slots=True)
class QueriesAdded:
    """New queries, and the anchors of all queries so far."""

    round: int
    queries: tuple[str, ...]
    anchors: tuple[Anchor, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The videos as the root's children, best first, with the similarities 0..1 of their best anchors."""

    segments: tuple[Segment, ...]
    similarities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Expanded:
    """A segment was divided at `frames`, of which those numbered `anchor_frame_nos` were anchors."""

    round: int
    parent: Segment
    children: tuple[Segment, ...]
    frames: tuple[ShownFrame, ...]
    anchor_frame_nos: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """Scores of a candidate: intrinsic reward 0..100 (None: unknown), query score and fused score 0..1."""

    number: int
    reward: float | None
    query_score: float
    fused: float
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Scored:
    """All candidates after fusion; `entropy` is the weight of the query scores, None if nothing is fused."""

    round: int
    entropy: float | None
    candidates: tuple[CandidateScore, ...]


@dataclass(frozen=True, slots=True)
class Remembered:
    """Frames that entered the memory, and frames that left it."""

    round: int
    added: tuple[ShownFrame, ...]
    evicted: tuple[ShownFrame, ...]


@dataclass(frozen=True, slots=True)
class Acted:
    """A step of an agent with tools: its thought, the action with its arguments, and the notes that it gave.

    `problem` is the reason in one line why an action failed; "" if it did not.
    """

    round: int
    action: str
    arguments: Mapping[str, Any]
    thought: str = ""
    notes: tuple[Note, ...] = ()
    problem: str = ""
    words: str = ""
    """The step in plain words, of an agent from a file of a user's: who reads the trace does not run that code."""


@dataclass(frozen=True, slots=True)
class Assessed:
    """The confidence of an agent in its present answer, on its paper's own scale up to `most`."""

    round: int
    confidence: float
    most: float
    thought: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """The next action; `segment` is the one to explore. `forced` if exploring was over."""

    round: int
    action: str
    segment: int | None
    forced: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer; always the last event."""

    answer: Answer


Event = (
    RunStarted
    | Exchanged
    | QueriesAdded
    | Ranked
    | Expanded
    | Scored
    | Remembered
    | Acted
    | Assessed
    | Decided
    | Finished
)


# Evidence for a follow-up question, read from the trace of the question before it.

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


# A model that answers from a trace: for tests, and to look at a run again without a key.

SIMILARITY_NOISE = 1e-4
"""Scores made of vectors differ by less than this between machines and numbers of threads."""


class ReplayModel:
    """Replies by the content of requests. Raises `NotATrace` for a bad file, `NotInTrace` for an unknown request."""

    name = "replay"
    has_language = True

    def __init__(self, path: Path) -> None:
        self.path = path
        records = read_trace(path)
        self.header: dict[str, Any] = records[0]
        self._exchanges = {each["key"]: each for each in records if each["event"] == "Exchanged"}

    def recorded_name(self, role: str) -> str:
        """The model that answered for a role when the trace was written."""
        names = self.header["models"]
        return str(names.get(role) or names.get("default") or self.name)

    def holds(self, request: Request[R]) -> bool:
        """True if the reply to a request was recorded."""
        return self._recorded(request) is not None

    async def ask(self, request: Request[R]) -> Exchange[R]:
        found = self._recorded(request)
        if found is None:
            raise NotInTrace(
                f"{self.path} holds no {type(request).__name__} with key {request_key(request)}; replay with the "
                "question, library, agent and parameters of its header, or ask a model; if an earlier kinodex wrote "
                f"it, it asked otherwise: `kinodex serve {self.path}` still shows it"
            )
        reply = None if found["reply"] is None else request.Reply.model_validate(found["reply"])
        usage = Usage(**found["usage"])
        return Exchange(reply, found["invalid"], usage, found["cached"], found["raw"], found["seconds"])

    def _recorded(self, request: Request[R]) -> dict[str, Any] | None:
        """The exchange of the same request, or of one that differs in the last digits of a score alone."""
        same = self._exchanges.get(request_key(request))
        if same is not None:
            return same
        inputs = request_fields(request)
        return next((each for each in self._exchanges.values() if _is_close(each.get("inputs"), inputs)), None)


def _is_close(one: object, other: object) -> bool:
    """True if two JSON values are equal but for the noise of floats."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SIMILARITY_NOISE, abs_tol=SIMILARITY_NOISE)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_close(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_close, one, other))
    return one == other


# Traces: one run as JSON lines, one event each, enough to replay it without a model and to draw its tree.
#
# The first line is the run's header with the version of the format. Frames are named by video, number, time and a hash
# of their picture; an exchange carries the request's content key, inputs and prompt, and the raw and the checked reply.

VERSION = 2
Record = dict[str, Any]


@contextmanager
def trace_to(
    path: Path, on_record: Callable[[Record], None] = lambda record: None
) -> Iterator[Callable[[Event], None]]:
    """Write events to a file as they come; every line is complete, so that a crash leaves a readable trace.

    The file's earlier content is removed when a run has started: a run that is refused leaves it. `on_record` receives
    each event's record once it is written.
    """
    with path.open("a", encoding="utf-8") as file:

        def write(event: Event) -> None:
            if isinstance(event, RunStarted) and path.stat().st_size:  # a pipe has no size and no content
                file.truncate(0)
            line = record(event)
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            on_record(line)

        yield write


def record(event: Event) -> Record:
    """Write one event as JSON values, its kind under "event"."""
    if isinstance(event, Exchanged):
        return _exchange(event)
    fields = plain(event)
    assert isinstance(fields, dict)
    version = {"version": VERSION} if isinstance(event, RunStarted) else {}
    return {"event": type(event).__name__, **version, **fields}


MOST_UNPACKED_BYTES = 200_000_000
"""Of a packed trace: a few bytes may unpack to any number."""


def _unpacked(path: Path) -> bytes:
    with open_named(path) as packed, gzip.open(packed) as file:
        content = file.read(MOST_UNPACKED_BYTES + 1)
    if len(content) > MOST_UNPACKED_BYTES:
        raise NotATrace(f"{path} unpacks to more than {MOST_UNPACKED_BYTES / 1e6:.0f} MB; unpack it, and give the file")
    return content


def read_trace(path: Path) -> list[Record]:
    """Read all records of a trace, header first; the file may be compressed (.gz). Raises `NotATrace` if it is none."""
    try:
        content = _unpacked(path) if path.suffix == ".gz" else read_bytes(path)
        records = [parse_json(line) for line in content.splitlines()]  # of bytes: a text knows more line ends
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise NotATrace(f"{path} cannot be read as a trace: {error}; give a file written with --trace") from error
    header = records[0] if records else None
    if not isinstance(header, dict) or header.get("event") != RunStarted.__name__:
        raise NotATrace(f"{path} does not begin with the header of a run; give a file written with --trace")
    if header.get("version") != VERSION:
        versions = f"version {header.get('version')}, this kinodex reads version {VERSION}"
        raise NotATrace(f"{path} is a trace of {versions}; record it again")
    return records


def _exchange(event: Exchanged) -> Record:
    request, exchange = event.request, event.exchange
    return {
        "event": "Exchanged",
        "round": event.round,
        "model": event.model,
        "role": request.role,
        "request": type(request).__name__,
        "key": request_key(request),
        "inputs": request_fields(request),
        "prompt": render(request),
        "raw": exchange.raw,
        "reply": None if exchange.reply is None else exchange.reply.model_dump(mode="json"),
        "invalid": exchange.invalid,
        "usage": plain(exchange.usage),
        "cached": exchange.cached,
        "seconds": exchange.seconds,
        "waited_s": exchange.waited_s,
    }
