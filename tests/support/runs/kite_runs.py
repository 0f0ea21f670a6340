"""A question asked of an agent with a scripted model, and what came of it; a film with a kite, to ask about."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.question import Question
from kinodex.agent.traces.events import Acted
from kinodex.agent.traces.trace import trace_to
from kinodex.agent.variants.longvideoagent.requests import AnswerNow, ChooseAction
from kinodex.agent.variants.videoagent2.requests import Assess
from kinodex.agent.variants.videoseek.step_requests import Act
from kinodex.index.rows import SpeechRow
from tests.support.every_request import stored_frame
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))


def kite_environment(place):
    """Open 15 minutes of film for an agent: a red kite is seen for 12 seconds, and one line is spoken."""
    library = make_library(place, {"film": film(1, 900, {700: ("red kite desert", 12)})}, stored_frame(1, 1.0).jpeg)
    video_id = library.video("film").video_id
    library.writer.add_speech({video_id: [SpeechRow(video_id, 10.0, 12.0, "Welcome.", source="subtitles")]})
    return environment_of(library)


@dataclass(frozen=True)
class Run:
    """An answer, the events on the way to it, and the model with the requests that it was sent."""

    answer: Answer
    events: list[Any]
    model: Any

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def acted(self, action: str = "") -> list[Acted]:
        """The steps of an agent with tools; those of one action, or all."""
        return [event for event in self.of(Acted) if not action or event.action == action]

    def asked(self, kind: type[Any]) -> list[Any]:
        found: list[Any] = self.model.asked(kind)
        return found

    @property
    def spans(self) -> list[tuple[float, float]]:
        """The evidence, in seconds."""
        return [(each.start_s, each.end_s) for each in self.answer.evidence]


def asked(
    environment, script, agent="eea", question=QUESTION, rounds=None, budget=None, usage=None, settings=None, **more
) -> Run:
    """Ask an agent; `script` is that of a `ScriptedModel`, or a model, or models by role. The others are of `ask`.

    `trace` is a file for the trace; an `on_event` of one's own is told besides.
    """
    model, events = ScriptedModel(script, usage) if callable(script) else script, list[Any]()
    trace, told = more.pop("trace", None), more.pop("on_event", lambda event: None)
    own = {"agent": agent, "budget": budget or Budget(rounds=rounds), "parameters": settings}
    with trace_to(trace) if trace else nullcontext(lambda event: None) as write:

        def note(event):
            for each in (events.append, told, write):
                each(event)

        return Run(asyncio.run(ask(question, environment, model, **own, **more, on_event=note)), events, model)


def but(kind, said):
    """The explorer, but requests of one kind get this reply."""
    return lambda request: said if isinstance(request, kind) else explorer(request)


def by_example(request):
    """The example of each request as its reply; an answer as soon as there can be one."""
    match request:
        case ChooseAction() | AnswerNow():
            return "<answer>A</answer>"
        case Act():
            return {"tool": "answer", "option": "A", "evidence": []}
        case Assess():
            return {"option": "A", "evidence": [], "confidence": 5}
    return dict(request.example())
