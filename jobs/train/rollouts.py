"""Rollouts of a master in training: the agent itself runs, and its policy is the model in training.

Nothing of the agent is imitated here. `ask_many` runs longvideoagent on the library with the frozen models in all
roles but the master's; the master's turns are sampled from the model in its present state, and their tokens are kept
as sampled. The messages to the master (the prompt, clips, observations) are in the sequence, too, but masked: no loss
is computed from them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

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
from kinodex.index.named_files import read_toml
from kinodex.jobs.ask_many import Task, ask_many
from kinodex.jobs.errors import UsageError
from kinodex.jobs.known_answers import KnownQuestion
from kinodex.jobs.models import ModelsFor
from kinodex.jobs.train.rewards import Rollout, rollout

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
        tasks.append(Task(known.question, environment, models, AGENT, on_event=_recorder(recorded)))
    await ask_many(tasks, together=len(tasks))
    rollouts, thinking_open = [], opens_thinking(generator.tokenizer)
    for number, master, recorded in zip(numbers, masters, records, strict=True):
        run = rollout(recorded, context.questions[number].answer, settings.alpha, thinking_open=thinking_open)
        start = master.prompt_length
        rollouts.append(TokenizedRollout(run, master.tokens[:start], master.tokens[start:], master.own[start:]))
    return rollouts


def _recorder(records: list[Record]) -> Any:
    return lambda event: records.append(record(event))


# Settings of training: the paper's in grpo.toml beside this file, and the user's changes.

COLOCATE = "colocate"
PAPER = Path(__file__).with_name("grpo.toml")


class MasterSettings(BaseModel):
    """All settings; none has a default here, so that grpo.toml names them all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    learning_rate: PositiveFloat
    steps: PositiveInt
    kl: NonNegativeFloat
    questions: PositiveInt
    rollouts: int = Field(ge=2)
    """Rollouts of one question; their mean is the baseline, so a single one would teach nothing."""
    temperature: PositiveFloat
    alpha: PositiveFloat
    clip: PositiveFloat
    entropy: NonNegativeFloat
    turn_tokens: PositiveInt
    scale_rewards: Literal["none", "group", "batch"]
    """Advantages in standard deviations of the group or the batch, or as they are."""
    lora_rank: NonNegativeInt
    """The rank of the adapters that are trained; 0: all weights are."""
    lora_alpha: PositiveInt
    vllm: str
    """"colocate", or the URL of a vLLM server, to sample rollouts with; "": transformers samples."""
    vllm_memory: float = Field(gt=0, lt=1)
    """The share of the GPU's memory that a colocated vLLM takes."""
    save_every: PositiveInt
    seed: int = Field(ge=0)

    @classmethod
    def read(cls, path: Path | None = None, **changes: Any) -> Self:
        """Read the paper's settings, those of a TOML file over them, and `changes` that are not None over both."""
        overrides = {name: value for name, value in changes.items() if value is not None}
        try:
            return cls.model_validate(_values(PAPER) | (_values(path) if path else {}) | overrides)
        except ValidationError as error:
            raise UsageError(f"{path or 'the settings'}: {_misfit(error)}") from error


def _values(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}; give a TOML file like {PAPER.name}") from error


def _misfit(error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    if first["type"] != "extra_forbidden":
        return f"got {name} = {first['input']!r}; {first['msg']}"
    near = difflib.get_close_matches(name, MasterSettings.model_fields, n=1)
    offer = f"did you mean {near[0]}?" if near else f"the settings are {', '.join(MasterSettings.model_fields)}"
    return f"there is no setting {name}; {offer}"


# The memory that training needs on a GPU, by formula: what is always there, and what a text adds.
#
# Of P weights, T of them trained, with AdamW and mixed precision as TRL sets them up:
#
# - weights: 4 P bytes; with LoRA 2 (P - T) + 4 T, since what is not trained stays in 16 bits (on a GPU)
# - gradients: 4 T
# - optimiser: 8 T, two moments in 32 bits
# - reference, for the divergence: 4 P; none with LoRA, where the model without its adapters is the reference
#
# A text of n tokens adds, for each rollout in the batch of an update, with gradient checkpointing, 2 n h L bytes (the
# input of each of L layers of width h, in 16 bits) and the largest layer's inner values once; while rollouts are
# sampled without vLLM, 4 n L d bytes (keys and values of width d, in 16 bits) for each of those sampled together.

WIDE, NARROW = 4, 2
"""Bytes of a number in 32 and in 16 bits."""


@dataclass(frozen=True, slots=True)
class StaticMemory:
    """Bytes that are there during the whole of training."""

    weights: int
    gradients: int
    optimiser: int
    reference: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimiser + self.reference


def static_memory(whole: int, trained: int, *, reference: bool, bf16: bool) -> StaticMemory:
    """The bytes for `whole` weights of which some are `trained`, by adapters if they are fewer than all.

    `reference`: the divergence is measured. `bf16`: 16-bit arithmetic is used, as on a GPU.
    """
    adapters = trained < whole
    frozen = (NARROW if bf16 else WIDE) * (whole - trained)
    return StaticMemory(
        weights=frozen + WIDE * trained,
        gradients=WIDE * trained,
        optimiser=2 * WIDE * trained,
        reference=WIDE * whole if reference and not adapters else 0,
    )
