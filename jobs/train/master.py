"""GRPO training of a LongVideoAgent master (arXiv 2512.20618, section 3.2), through TRL's GRPOTrainer.

The trainer chooses the questions and updates the model; the rollouts are runs of the agent itself
(`jobs.train.sampling`). The reward of a rollout is the paper's (`jobs.train.rewards.rewards`), in
two columns so that both are logged.

Decisions where the paper leaves something open (grpo.toml has the numbers):

- It speaks of GRPO and of "a learned value baseline" at once. GRPO has none: the baseline is the mean of the group.
  GRPO divides by the standard deviation of the group, too; that is a setting, and off (see `jobs.train.trainer`).
- Batch 4 and N = 4 are read as 4 questions a step with 4 rollouts each, one update for each batch of rollouts.
- The loss is GRPO's own: means over the master's tokens of a rollout, then over the rollouts.
- LoRA is not mentioned, so all weights are trained unless `lora_rank` is set (the published quick start uses LoRA,
  batch 16 and 8 rollouts).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.index.text import composed
from kinodex.jobs.errors import UsageError
from kinodex.jobs.known_answers import KnownQuestion
from kinodex.jobs.models import ModelChoice, chosen_models
from kinodex.jobs.open import find_filled_space
from kinodex.jobs.train.rollout import as_line
from kinodex.jobs.train.sampling import RolloutContext, sample_rollouts
from kinodex.jobs.train.settings import MasterSettings
from kinodex.jobs.train.trainer import Report, expected_warnings, make_trainer, sampler, save_master

FINISHED = "master"
"""The folder of the trained model, beside the checkpoints."""
ROLLOUTS = "rollouts.jsonl"


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
    checkpoint, training continues from it.
    """
    from transformers import trainer_utils

    library: Any = trainer_utils
    out.mkdir(parents=True, exist_ok=True)
    with asyncio.Runner() as runner, expected_warnings():
        opened = AsyncExitStack()
        try:
            models = runner.run(opened.enter_async_context(chosen_models(frozen)))
            rollouts = _RolloutFunction(
                runner, RolloutContext(questions, environments, models), settings, out / ROLLOUTS
            )
            numbers = range(len(questions))
            trainer = make_trainer(model, out, settings, numbers, rollouts, report)
            trainer.train(resume_from_checkpoint=library.get_last_checkpoint(str(out)))
        finally:
            runner.run(opened.aclose())
    save_master(trainer, out / FINISHED)
    return out / FINISHED


def film_environments(place: str, films: Collection[str], space: str | None = None) -> dict[str, Environment]:
    """Open an environment for each of these films of a library, in its own space or another that it holds."""
    library = Library.open(place)
    held: dict[str, list[VideoRow]] = defaultdict(list)
    for row in library.videos():
        held[composed(Path(row.uri).name)].append(row)
    chosen = {film: _only_row(place, film, held[composed(film)]) for film in sorted(set(films))}
    find_filled_space(library, space, list(chosen.values()))
    embed_text = library.text_embedder(space)
    return {film: Environment.of(library, [row], embed_text, space=space) for film, row in chosen.items()}


def _only_row(place: str, film: str, rows: Sequence[VideoRow]) -> VideoRow:
    if not rows:
        raise UsageError(f"{place} holds no film {film}, which a question is about; ingest it, or leave it out")
    if len(rows) > 1:
        uris = ", ".join(row.uri for row in rows[:3])
        raise UsageError(
            f"{place} holds {len(rows)} films {film}, and questions are about one: {uris}; remove the rest"
        )
    return rows[0]


@dataclass(frozen=True, slots=True)
class _RolloutFunction:
    """TRL's rollout function: each prompt is the number of a question, given N times."""

    runner: asyncio.Runner
    context: RolloutContext
    settings: MasterSettings
    log: Path

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        numbers, policy = [int(each) for each in prompts], sampler(trainer, self.settings)
        sampled = self.runner.run(sample_rollouts(numbers, self.context, self.settings, policy))
        if trainer.accelerator.is_main_process:
            with self.log.open("a", encoding="utf-8") as file:
                file.writelines(as_line(each.rollout) + "\n" for each in sampled)
        return {
            "prompt_ids": [each.prompt for each in sampled],
            "completion_ids": [each.completion for each in sampled],
            "env_mask": [each.own for each in sampled],
            "logprobs": None,  # needed only if another engine samples
            "structure": [each.rollout.rewards.total - each.rollout.rewards.answer for each in sampled],
            "answer": [each.rollout.rewards.answer for each in sampled],
        }
