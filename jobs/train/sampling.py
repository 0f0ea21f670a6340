"""Rollouts of a master in training: the agent itself runs, and its policy is the model in training.

Nothing of the agent is imitated here. `ask_many` runs longvideoagent, with the parameters and rules of its evaluation,
on the library with the frozen models in all roles but the master's; the master's turns are sampled from the model in
its present state, and their tokens are kept as sampled. The messages to the master (the prompt, clips, observations)
are in the sequence, too, but masked: no loss is computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kinodex.agent.local.generator import Generator
from kinodex.agent.local.model import generate_reply
from kinodex.agent.local.tokens import first_tokens, message_tokens, opens_thinking
from kinodex.agent.prompts.rendering import render
from kinodex.agent.prompts.shortening import fit_context
from kinodex.agent.protocol.exchange import Exchange
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.traces.trace import Record, record
from kinodex.agent.variants.longvideoagent.requests import MASTER_REQUESTS
from kinodex.agent.videos.environment import Environment
from kinodex.jobs.ask_many import Task, ask_many
from kinodex.jobs.known_answers import KnownQuestion
from kinodex.jobs.models import ModelsFor
from kinodex.jobs.train.rollout import Rollout, rollout
from kinodex.jobs.train.settings import MasterSettings

AGENT = "longvideoagent"


@dataclass(slots=True)
class MasterInTraining:
    """The master of one rollout. `tokens` holds the whole conversation, `own` has 1 for each token of the master."""

    generator: Generator
    temperature: float
    name: str = "in training"
    has_language: bool = True
    tokens: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    prompt_length: int = 0

    async def ask(self, request: Request[R]) -> Exchange[R]:
        if type(request).__name__ not in MASTER_REQUESTS or request.attempt:
            return Exchange(None, "a rollout is the master's turns, each requested once")
        if self.tokens:
            message = message_tokens(self.generator.tokenizer, request.turns[-1].text, self.tokens)
        else:
            message = self._first_message(request)
        if not self.generator.has_room(len(self.tokens) + len(message)):
            return Exchange(None, "the conversation is as long as the model can hold")
        self.prompt_length = self.prompt_length or len(message)
        self.tokens += message
        self.own += [0] * len(message)
        reply_tokens, exchange = await generate_reply(self.generator, self.tokens, self.temperature, request)
        self.tokens += reply_tokens
        self.own += [1] * len(reply_tokens)
        return exchange

    def _first_message(self, request: Request[Any]) -> list[int]:
        """Tokens of the prompt, with its quotations shortened as in `kinodex ask`."""

        def tokens(fitted: Request[Any]) -> list[int]:
            return first_tokens(self.generator.tokenizer, render(fitted))

        context_tokens = self.generator.context_tokens
        steps = getattr(request, "steps", 1)  # each is a reply that stays in the sequence
        reply_tokens = min(steps * self.generator.max_new_tokens, context_tokens // 2)
        return tokens(fit_context(request, context_tokens, reply_tokens, lambda fitted: len(tokens(fitted))))


@dataclass(frozen=True, slots=True)
class TokenizedRollout:
    """A rollout with its tokens, as a trainer takes them."""

    rollout: Rollout
    prompt: list[int]
    completion: list[int]
    own: list[int]
    """For each token of the completion: 1 if it is the master's, 0 if it belongs to a message to it."""


@dataclass(frozen=True, slots=True)
class RolloutContext:
    """Questions with their answers, the films that they are about, and the frozen models."""

    questions: Sequence[KnownQuestion]
    environments: Mapping[str, Environment]
    """By the film's file name."""
    frozen: ModelsFor


async def sample_rollouts(
    numbers: Sequence[int], context: RolloutContext, settings: MasterSettings, generator: Generator
) -> list[TokenizedRollout]:
    """Sample a rollout of each of these questions (a number may be given several times), all at once."""
    masters = [MasterInTraining(generator, settings.temperature) for _ in numbers]
    records: list[list[Record]] = [[] for _ in numbers]
    tasks = []
    for number, master, recorded in zip(numbers, masters, records, strict=True):
        known = context.questions[number]
        environment = context.environments[known.film]
        frozen = context.frozen(environment)
        models = {**(frozen if isinstance(frozen, Mapping) else {"default": frozen}), "policy": master}
        asked = known.question, environment, models, AGENT, settings.parameters
        tasks.append(Task(*asked, rules=settings.rules, on_event=_recorder(recorded)))
    await ask_many(tasks, together=len(tasks))
    rollouts, thinking_open = [], opens_thinking(generator.tokenizer)
    for number, master, recorded in zip(numbers, masters, records, strict=True):
        run = rollout(recorded, context.questions[number].answer, settings.alpha, thinking_open=thinking_open)
        start = master.prompt_length
        rollouts.append(TokenizedRollout(run, master.tokens[:start], master.tokens[start:], master.own[start:]))
    return rollouts


def _recorder(records: list[Record]) -> Any:
    return lambda event: records.append(record(event))
