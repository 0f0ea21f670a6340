"""Rollouts of a master in training: the agent itself runs, and its policy is the model in training.

Nothing of the agent is imitated here. `ask_many` runs longvideoagent on the library with the frozen models in all
roles but the master's; the master's turns are sampled from the model in its present state, and their tokens are kept
as sampled. The messages to the master (the prompt, clips, observations) are in the sequence, too, but masked: no loss
is computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.ask_questions import Task, ask_many
from agent.core.protocol import Exchange, Models, R, Request
from agent.environment import Environment
from agent.models.chat_template import first_tokens, message_tokens, opens_thinking
from agent.models.context_fit import fit_context
from agent.models.generation import Generator
from agent.models.local import generate_reply
from agent.prompts.render import render
from agent.trace.trace import Record, record
from agent.variants.longvideoagent.rollouts import MASTER_REQUESTS, Rollout, rollout
from jobs.model_choice import ModelsFor
from jobs.synthetic.known_answers import KnownQuestion
from jobs.train.settings import MasterSettings

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
        message = self._next_message(request) if self.tokens else self._first_message(request)
        if not self.generator.has_room(len(self.tokens) + len(message)):
            return Exchange(None, "the conversation is as long as the model can hold")
        self._append_message(message)
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

    def _next_message(self, request: Request[Any]) -> list[int]:
        """Tokens of the message after the master's last turn."""
        return message_tokens(self.generator.tokenizer, request.turns[-1].text, self.tokens)

    def _append_message(self, tokens: Sequence[int]) -> None:
        self.prompt_length = self.prompt_length or len(tokens)
        self.tokens += tokens
        self.own += [0] * len(tokens)


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
        models = _with_policy(context.frozen(environment), master)
        tasks.append(Task(known.question, environment, models, AGENT, on_event=_recorder(recorded)))
    await ask_many(tasks, together=len(tasks))
    return [
        _tokenized(context.questions[number], master, recorded, settings.alpha)
        for number, master, recorded in zip(numbers, masters, records, strict=True)
    ]


def _with_policy(frozen: Models, master: MasterInTraining) -> Models:
    return {**(frozen if isinstance(frozen, Mapping) else {"default": frozen}), "policy": master}


def _recorder(records: list[Record]) -> Any:
    return lambda event: records.append(record(event))


def _tokenized(known: KnownQuestion, master: MasterInTraining, records: list[Record], alpha: float) -> TokenizedRollout:
    start = master.prompt_length
    thinking_open = opens_thinking(master.generator.tokenizer)
    run = rollout(records, known.answer, alpha, thinking_open=thinking_open)
    return TokenizedRollout(run, master.tokens[:start], master.tokens[start:], master.own[start:])
