"""Runs of VCA with a scripted model over films in which a red kite is seen."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from kinodex.agent.ask import ask, default_parameters
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question
from kinodex.agent.trace import Event
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
FILM = {"film": film(1, 700, {420: ("red kite desert", 20)})}
TWO_FILMS = {"first": film(2, 400), "second": film(3, 400, {300: ("red kite desert", 10)})}


def run(library, script=explorer, budget=None, **parameters):
    environment, model = environment_of(library), ScriptedModel(script)
    events: list[Event] = []
    settings = replace(default_parameters("vca", environment), **parameters)
    budget = budget or Budget(rounds=3)
    answer = asyncio.run(
        ask(QUESTION, environment, model, agent="vca", parameters=settings, budget=budget, on_event=events.append)
    )
    return answer, events, model


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]
