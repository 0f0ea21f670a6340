"""Settings of training: the paper's in grpo.toml beside this file, and the user's changes."""

from __future__ import annotations

import difflib
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

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.variants.longvideoagent.parameters import LongVideoAgentParameters
from kinodex.agent.variants.settings import with_settings
from kinodex.index.named_files import read_toml
from kinodex.jobs.errors import UsageError

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
    force_choice: bool
    """An option has to be named, and turn K can only be one, as in the evaluation with --force-choice."""
    agent: dict[str, str | bool | int | float]
    """Parameters of longvideoagent, as the evaluation sets them."""

    @classmethod
    def read(cls, path: Path | None = None, **changes: Any) -> Self:
        """Read the paper's settings, those of a TOML file over them, and `changes` that are not None over both."""
        overrides = {name: value for name, value in changes.items() if value is not None}
        try:
            return cls.model_validate(_values(PAPER) | (_values(path) if path else {}) | overrides)
        except ValidationError as error:
            raise UsageError(f"{path or 'the settings'}: {_misfit(error)}") from error

    @property
    def parameters(self) -> LongVideoAgentParameters:
        """The parameters of the agent that is trained; raises `BadSettings` for one that it has not."""
        return with_settings(LongVideoAgentParameters(), self.agent)

    @property
    def rules(self) -> AnswerRules:
        return AnswerRules(force_choice=self.force_choice)


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
