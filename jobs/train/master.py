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
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.video_names import match_names, match_videos
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
NOWHERE = 0.0, 0.0
"""The range of a question whose range is not known."""


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


def benchmark_questions(place: str, benchmark: str, annotations: Path) -> list[KnownQuestion]:
    """Read the questions of a benchmark whose options are known and whose videos a library holds.

    An episode of LongTVQA is the video that `kinodex import speech` made of it, or all of its clips.
    """
    read = read_benchmark(benchmark, annotations)
    there = match_videos(read.items, Library.open(place).videos(), None, read.episodes).videos
    known = [
        KnownQuestion(item.video, benchmark, item.question, option, *next(iter(item.truth.evidence), NOWHERE))
        for item in read.items
        if (option := item.truth.option) is not None and item.video in there
    ]
    if not known:
        raise UsageError(f"{place} holds no video that a question of {annotations} with a known option is about")
    return known


def film_environments(place: str, films: Collection[str], space: str | None = None) -> dict[str, Environment]:
    """Open an environment for each of these films, or episodes, of a library, in its own space or another it holds."""
    library = Library.open(place)
    rows = {row.video_id: row for row in library.videos()}
    matches = match_names(Counter(films), list(rows.values()), None, episodes=True)
    for each in matches.missing:
        raise UsageError(f"{place} holds no film {each.video} that a question is about: {each.why}; leave it out")
    chosen = {film: [rows[each] for each in matches.videos[film]] for film in sorted(set(films))}
    find_filled_space(library, space, [row for some in chosen.values() for row in some])
    embed_text = library.text_embedder(space)
    return {film: Environment.of(library, some, embed_text, space=space) for film, some in chosen.items()}


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
