"""Runs of agents with a scripted model over a film of 15 minutes in which a red kite is seen for 12 seconds."""

from __future__ import annotations

import asyncio

from kinodex.agent.ask import ask
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))


def kite_environment(place):
    """Make the film's library at a place, and open it for an agent."""
    events = {700: ("red kite desert", 12)}
    return environment_of(make_library(place, {"film": film(1, 900, events)}))


def run(environment, script, budget=None, usage=None, agent="eea", question=QUESTION, parameters=None):
    model = ScriptedModel(script, usage)
    answer = asyncio.run(
        ask(question, environment, model, agent=agent, budget=budget or Budget(rounds=4), parameters=parameters)
    )
    return answer, model


def but(kind, said):
    """The explorer, but requests of one kind get this reply."""
    return lambda request: said if isinstance(request, kind) else explorer(request)
