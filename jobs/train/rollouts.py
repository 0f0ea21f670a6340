"""Rollouts of a master that is being trained: the agent itself runs, and its policy is the model in training.

Nothing of the agent is imitated here. `agent.ask_questions` runs longvideoagent on the library with the frozen models in all
roles but the master's; the master's turns are sampled from the model as it is, and their tokens are kept as they
were chosen. What the master is told (the prompt, clips, observations) is in the sequence, too, but masked: no loss
is computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.ask_questions import Task, ask_many
from agent.core.protocol import Exchange, Models, R, Request
from agent.environment import Environment
from agent.models.chat_template import first_tokens, message_tokens
from agent.models.generation import Generator
from agent.models.local import generate_reply
from agent.prompts.render import render
from agent.trace.trace import Record, record
from agent.variants.longvideoagent.rollouts import MASTER_REQUESTS, Rollout, rollout
from jobs.model_choice import ModelsFor
from jobs.synthetic.known_answers import Known
from jobs.train.settings import MasterSettings

AGENT = "longvideoagent"


@dataclass(slots=True)
class SampledMaster:
    """The master of one rollout. `tokens` is all it was told and said, `own` has 1 for each that it said itself."""

    generator: Generator
    temperature: float
    name: str = "in training"
    has_language: bool = True
    tokens: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    prompt_length: int = 0

    async def ask(self, request: Request[R]) -> Exchange[R]:
        if type(request).__name__ not in MASTER_REQUESTS or request.attempt:
            return Exchange(None, "a rollout is the master's turns, each asked for once")
        tokenizer = self.generator.tokenizer
        self._told(self._news(request) if self.tokens else first_tokens(tokenizer, render(request)))
        said, exchange = await generate_reply(self.generator, self.tokens, self.temperature, request)
        self.tokens += said
        self.own += [1] * len(said)
        return exchange

    def _news(self, request: Request[Any]) -> list[int]:
        """What was told since the master last spoke."""
        return message_tokens(self.generator.tokenizer, request.turns[-1].text, self.tokens)

    def _told(self, tokens: Sequence[int]) -> None:
        self.prompt_length = self.prompt_length or len(tokens)
        self.tokens += tokens
        self.own += [0] * len(tokens)


@dataclass(frozen=True, slots=True)
class Sampled:
    """A rollout with its tokens, as a trainer takes them."""

    rollout: Rollout
    prompt: list[int]
    completion: list[int]
    own: list[int]
    """For each token of the completion: 1 if the master said it, 0 if it was told."""


@dataclass(frozen=True, slots=True)
class World:
    """What rollouts run on: questions with their answers, the films that they are about, and the frozen models."""

    questions: Sequence[Known]
    environments: Mapping[str, Environment]
    """By the film's file name."""
    frozen: ModelsFor


async def sample(numbers: Sequence[int], world: World, settings: MasterSettings, generator: Generator) -> list[Sampled]:
    """A rollout of each of these questions (a number may be there several times), all at once."""
    masters = [SampledMaster(generator, settings.temperature) for _ in numbers]
    records: list[list[Record]] = [[] for _ in numbers]
    tasks = []
    for number, master, told in zip(numbers, masters, records, strict=True):
        known = world.questions[number]
        environment = world.environments[known.film]
        models = _with_policy(world.frozen(environment), master)
        tasks.append(Task(known.question, environment, models, AGENT, on_event=_recorder(told)))
    await ask_many(tasks, together=len(tasks))
    return [
        _sampled(world.questions[number], master, told, settings.alpha)
        for number, master, told in zip(numbers, masters, records, strict=True)
    ]


def _with_policy(frozen: Models, master: SampledMaster) -> Models:
    return {**(frozen if isinstance(frozen, Mapping) else {"default": frozen}), "policy": master}


def _recorder(records: list[Record]) -> Any:
    return lambda event: records.append(record(event))


def _sampled(known: Known, master: SampledMaster, records: list[Record], alpha: float) -> Sampled:
    start = master.prompt_length
    run = rollout(records, known.answer, alpha)
    return Sampled(run, master.tokens[:start], master.tokens[start:], master.own[start:])
