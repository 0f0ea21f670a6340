"""Ask one question: the front door of the agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict

from agent.answer import Answer
from agent.environment import Environment
from agent.errors import BadSettings, OutOfBudget, UnknownAgent
from agent.events import Event, Finished, RunStarted
from agent.ledger import Budget
from agent.model import Models
from agent.question import Question
from agent.session import Session
from agent.variants.eea import EEAParameters, eea
from agent.variants.uniform import UniformParameters, uniform

Parameters = EEAParameters | UniformParameters

AGENTS = ("eea", "uniform")
DEFAULT_BUDGET = Budget()


def default_parameters(agent: str, environment: Environment) -> Parameters:
    """The parameters that an agent has if none are given; EEA's depend on the longest video."""
    if agent == "eea":
        longest_s = max((video.duration_s for video in environment.videos), default=0.0)
        return EEAParameters.for_duration(longest_s)
    if agent == "uniform":
        return UniformParameters()
    raise UnknownAgent(f"there is no agent {agent!r}; choose one of {', '.join(AGENTS)}")


async def ask(
    question: Question,
    environment: Environment,
    models: Models,
    *,
    agent: str = "eea",
    parameters: Parameters | None = None,
    budget: Budget = DEFAULT_BUDGET,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Answer:
    """Answer a question about the environment's videos; `on_event` sees everything as it happens.

    Raises `ModelError` if a model cannot be reached. Bad replies and spent budgets do not raise: they are the
    answer's status.
    """
    parameters = parameters or default_parameters(agent, environment)
    if not environment.videos:
        raise BadSettings("there is no video to ask about; ingest one, or name one that the library holds")
    session = Session(question, environment, models, budget, on_event)
    on_event(
        RunStarted(
            question,
            agent,
            asdict(parameters),
            budget,
            environment.videos,
            environment.space,
            environment.index_frames,
            _names(models),
        )
    )
    try:
        answer = await _run(session, agent, parameters)
    except OutOfBudget as over:
        answer = await session.best_so_far(str(over))
    on_event(Finished(answer))
    return answer


async def _run(session: Session, agent: str, parameters: Parameters) -> Answer:
    if agent == "eea" and isinstance(parameters, EEAParameters):
        return await eea(session, parameters)
    if agent == "uniform" and isinstance(parameters, UniformParameters):
        return await uniform(session, parameters)
    raise BadSettings(
        f"{type(parameters).__name__} are not parameters of the agent {agent!r}; leave them out for the defaults"
    )


def _names(models: Models) -> Mapping[str, str]:
    if isinstance(models, Mapping):
        return {role: model.name for role, model in models.items()}
    return {"default": models.name}
