"""A film with a kite, its library with captions and detections, and a model that plays VideoAgent2 by a script."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.ask import ask, default_parameters
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.answer import AnswerNotes, Recall
from kinodex.agent.requests.describe import DescribeSegment, Summarize
from kinodex.agent.traces.events import Acted, Event
from kinodex.agent.traces.prior_evidence import PriorEvidence
from kinodex.agent.variants.videoagent2.requests import AdjustPlan, Assess, CallTool, CaptionFrames, CreatePlan
from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from tests.support.libraries.agent_library import ScriptedModel, embed_words, film, make_library
from tests.support.libraries.random_library import add_stage

QUESTION = Question("What colour is the kite?", ("red", "blue"))
UNSURE = {"thought": "no kite yet", "option": "B", "confidence": 2, "evidence": []}
SURE = {"thought": "seen", "option": "A", "confidence": 5, "evidence": [16]}
UNKNOWN = {"thought": "nothing about it", "confidence": 0}
CAPTION = {"tool": "caption", "start_s": 40.0}
Said = dict[str, Any] | str


def picture() -> bytes:
    """Left half red, right half blue, 40 by 20 px."""
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :20, 0] = pixels[:, 20:, 2] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=95)
    return file.getvalue()


def sighting(second: int, label: str, score: float, left: float, track_id: int) -> SimpleNamespace:
    """A detection as a detector hands it over: a fifth of the picture wide."""
    box = (left, 0.1, left + 0.2, 0.5)
    return SimpleNamespace(frame_no=second, time_s=float(second), label=label, score=score, box=box, track_id=track_id)


def kite_library(folder: Path) -> Library:
    """A minute with a kite from 40 to 45 s and, in the library's detections, a boat that is missed at 22 s."""
    films = {"film": film(3, 60, {40: ("red kite desert", 5)})}
    library = make_library(folder, films, picture())
    video_id = library.video("film").video_id
    rows = [sighting(20, "boat", 0.7, 0.2, 7), sighting(21, "boat", 0.71, 0.21, 7), sighting(24, "boat", 0.6, 0.24, 7)]
    rows += [sighting(24, "house", 0.9, 0.6, 8)]
    add_stage(library, "detections", "m", {video_id: rows})
    return library


class Script:
    """Says these assessments and tool calls one after the other, the last ones for ever; captions what it is shown."""

    def __init__(self, assessments: list[Said], calls: list[Said] | None = None, steps: int = 3) -> None:
        self.assessments, self.calls, self.steps = list(assessments), list(calls or [CAPTION]), steps

    def __call__(self, request: Request[Any]) -> Any:
        match request:
            case DescribeSegment(segment=part):
                return {"caption": f"a part from {part.start_s:.0f} s", "confidence": 80}
            case Summarize():
                return {"summary": "A film of boats."}
            case Assess():
                return self._next(self.assessments)
            case CreatePlan() | AdjustPlan():
                call = self._next(self.calls)
                steps = [f"step {number}" for number in range(1, self.steps + 1)]
                return {"thought": "look there", "steps": steps, "action": call} if isinstance(call, dict) else call
            case CallTool():
                call = self._next(self.calls)
                return {"action": call} if isinstance(call, dict) else call
            case CaptionFrames(frames=frames):
                clauses = [{"text": "a red kite", "confidence": 0.9}, {"text": "a desert", "confidence": 0.6}]
                if not request.confidence:
                    clauses = [{**each, "confidence": None} for each in clauses]
                return [{"frame": number, "clauses": clauses} for number in range(1, len(frames) + 1)]
            case Recall():
                return {"action": "insufficient_evidence"}
            case AnswerNotes():
                return {"option": "A", "evidence": [1]}
        raise TypeError(type(request).__name__)

    @staticmethod
    def _next(left: list[Said]) -> Said:
        return left.pop(0) if len(left) > 1 else left[0]


def environment_of(library: Library, detector: Any = None) -> Environment:
    return Environment.of(library, library.videos(), lambda texts: embed_words(texts), detector)


def run(
    library: Library,
    script: Callable[[Request[Any]], Any],
    budget: Budget | None = None,
    usage: Usage | None = None,
    detector: Any = None,
    on_event: Callable[[Event], None] | None = None,
    seen: PriorEvidence | None = None,
    question: Question = QUESTION,
    rules: AnswerRules = USUAL,
    **settings: Any,
) -> tuple[Answer, list[Event], ScriptedModel]:
    environment, model, events = environment_of(library, detector), ScriptedModel(script, usage), list[Event]()

    def note(event: Event) -> None:
        events.append(event)
        if on_event:
            on_event(event)

    parameters = replace(default_parameters("videoagent2", environment), **settings)
    asked = ask(
        question,
        environment,
        model,
        agent="videoagent2",
        parameters=parameters,
        budget=budget or Budget(),
        seen=seen,
        on_event=note,
        rules=rules,
    )
    return asyncio.run(asked), events, model


def acted(events: list[Event]) -> list[Acted]:
    return [event for event in events if isinstance(event, Acted)]


def texts(events: list[Event]) -> list[list[str]]:
    return [[note.text for note in event.notes] for event in acted(events)]


def call_once(library: Library, call: Said, **more: Any) -> tuple[list[str], ScriptedModel, Acted]:
    """Script one tool call, after which the answer is sure."""
    _, events, model = run(library, Script([UNSURE, SURE], [call]), **more)
    (event,) = acted(events)
    return [note.text for note in event.notes], model, event
