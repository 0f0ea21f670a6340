"""GRPO training of a LongVideoAgent master (arXiv 2512.20618, section 3.2), through TRL's GRPOTrainer.

The trainer chooses the questions and updates the model; the rollouts are runs of the agent itself (`rollouts`). The
reward of a rollout is the paper's (`agent.variants.longvideoagent.rewards`), in two columns so that both are logged.

Decisions where the paper leaves something open (grpo.toml has the numbers):

- It speaks of GRPO and of "a learned value baseline" at once. GRPO has none: the baseline is the mean of the group,
  and the advantage is in standard deviations of the group.
- Batch 4 and N = 4 are read as 4 questions a step with 4 rollouts each, one update for each batch of rollouts.
- The loss is GRPO's own: means over the master's tokens of a rollout, then over the rollouts.
- LoRA is not mentioned, so all weights are trained (the published quick start uses LoRA, batch 16 and 8 rollouts).
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.environment import Environment
from agent.models.generation import Generator
from agent.models.local import known_model
from agent.variants.longvideoagent.rollouts import as_line
from index.embedding.space import import_torchvision
from index.library import Library
from jobs.errors import UsageError
from jobs.model_choice import ModelChoice, chosen_models
from jobs.open_library import find_filled_space, load_tower
from jobs.synthetic.known_answers import KnownQuestion
from jobs.train.rollouts import RolloutContext, TokenizedRollout, sample_rollouts
from jobs.train.settings import MasterSettings

FINISHED = "master"
"""The folder of the trained model, beside the checkpoints."""
ROLLOUTS = "rollouts.jsonl"

Report = Callable[[str], object]
"""A function that shows one line of progress."""


def train_master(
    questions: Sequence[KnownQuestion],
    environments: Mapping[str, Environment],
    model: str,
    out: Path,
    settings: MasterSettings,
    frozen: ModelChoice,
    report: Report,
) -> Path:
    """Train `model` (a folder or a hub id) on questions about films; return the folder of the trained model.

    Each film has its environment. Checkpoints go to `out`, every rollout to rollouts.jsonl there. If `out` holds a
    checkpoint, training continues from it. Raises `ModelUnknown` if there is no such model.
    """
    out.mkdir(parents=True, exist_ok=True)
    with asyncio.Runner() as runner, _expected_warnings():
        opened = AsyncExitStack()
        try:
            models = runner.run(opened.enter_async_context(chosen_models(frozen)))
            rollouts = _RolloutFunction(
                runner, RolloutContext(questions, environments, models), settings, out / ROLLOUTS
            )
            trainer = _trainer(model, out, settings, rollouts, report)
            trainer.train(resume_from_checkpoint=_last_checkpoint(out))
        finally:
            runner.run(opened.aclose())
    trainer.save_model(str(out / FINISHED))
    return out / FINISHED


def film_environments(place: str, films: Collection[str], space: str | None = None) -> dict[str, Environment]:
    """Open an environment for each of these films of a library, in its own space or another that it holds.

    Raises `UsageError` if a film or the space is missing, `SpaceMismatch` if a film is not in that space yet.
    """
    library = Library.open(place)
    rows = {Path(row.uri).name: row for row in library.videos()}
    missing = sorted(set(films) - set(rows))
    if missing:
        raise UsageError(f"{place} holds no film {missing[0]}, which a question is about; ingest it, or leave it out")
    chosen = {film: rows[film] for film in sorted(set(films))}
    find_filled_space(library, space, list(chosen.values()))
    embed_text = load_tower(library, space, "text").embed_text
    return {film: Environment.of(library, [row], embed_text, space=space) for film, row in chosen.items()}


@dataclass(frozen=True, slots=True)
class _RolloutFunction:
    """TRL's rollout function: each prompt is the number of a question, given N times."""

    runner: asyncio.Runner
    context: RolloutContext
    settings: MasterSettings
    log: Path

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        numbers, policy = [int(each) for each in prompts], _policy(trainer, self.settings)
        sampled = self.runner.run(sample_rollouts(numbers, self.context, self.settings, policy))
        if trainer.accelerator.is_main_process:
            self._log(sampled)
        return {
            "prompt_ids": [each.prompt for each in sampled],
            "completion_ids": [each.completion for each in sampled],
            "env_mask": [each.own for each in sampled],
            "logprobs": None,  # needed only if another engine samples
            "structure": [each.rollout.rewards.total - each.rollout.rewards.answer for each in sampled],
            "answer": [each.rollout.rewards.answer for each in sampled],
        }

    def _log(self, sampled: Sequence[TokenizedRollout]) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.writelines(as_line(each.rollout) + "\n" for each in sampled)


def structure(*, structure: list[float], **_: Any) -> list[float]:
    """The first column of rewards, named so in the logs: alpha times the well-formed turns."""
    return structure


def answer(*, answer: list[float], **_: Any) -> list[float]:
    """The second column of rewards: 1 for a right answer."""
    return answer


def _policy(trainer: Any, settings: MasterSettings) -> Generator:
    """A generator of the model in its present state."""
    from trl.models import unwrap_model_for_generation

    def prepare_model() -> Any:
        checkpointing = trainer.args.gradient_checkpointing_kwargs
        return unwrap_model_for_generation(
            trainer.model_wrapped, trainer.accelerator, gradient_checkpointing_kwargs=checkpointing
        )

    return Generator(trainer.model, trainer.processing_class, settings.turn_tokens, prepare_model)


def _trainer(model: str, out: Path, settings: MasterSettings, rollouts: _RolloutFunction, report: Report) -> Any:
    import_torchvision()
    import transformers
    import trl
    from datasets import Dataset

    library: Any = trl
    with known_model(model) as place:
        config_of: Any = transformers.AutoConfig
        config_of.from_pretrained(place)
    columns: list[Callable[..., list[float]]] = [structure, answer]
    trainer = library.GRPOTrainer(
        place,
        columns,
        _config(out, settings),
        Dataset.from_dict({"prompt": [str(number) for number in range(len(rollouts.context.questions))]}),
        rollout_func=rollouts,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(_progress_callback(settings.steps, report))
    return trainer


def _config(out: Path, settings: MasterSettings) -> Any:
    import torch
    import trl

    library: Any = trl
    cuda = torch.cuda.is_available()
    return library.GRPOConfig(
        output_dir=str(out),
        max_steps=settings.steps,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="constant",
        beta=settings.kl,
        epsilon=settings.clip,
        entropy_coef=settings.entropy,
        loss_type="grpo",
        num_generations=settings.rollouts,
        per_device_train_batch_size=settings.rollouts,
        gradient_accumulation_steps=settings.questions,
        temperature=settings.temperature,
        disable_dropout=True,
        save_steps=settings.save_every,
        seed=settings.seed,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        use_cpu=not cuda,
        bf16=cuda,
    )


def _progress_callback(steps: int, report: Report) -> Any:
    """A callback of the trainer that reports each step in one line."""
    import transformers

    class ProgressCallback(transformers.TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            logs = more["logs"]
            if "reward" in logs:
                report(
                    f"step {state.global_step} of {steps}: reward {logs['reward']:.3f} (structure "
                    f"{logs['rewards/structure/mean']:.3f}, answer {logs['rewards/answer/mean']:.3f}), "
                    f"divergence {logs.get('kl', 0.0):.4f}"
                )

    return ProgressCallback()


def _last_checkpoint(out: Path) -> str | None:
    from transformers import trainer_utils

    library: Any = trainer_utils
    found: str | None = library.get_last_checkpoint(str(out))
    return found


@contextmanager
def _expected_warnings() -> Iterator[None]:
    """Ignore, within this block, two warnings that TRL 1.16 and transformers 5.23 cause with each other."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "You are using 'rollout_func'", UserWarning)
        warnings.filterwarnings("ignore", ".*gradient_checkpointing.* is deprecated", FutureWarning)
        yield
