"""TRL's GRPOTrainer for a master: its settings, LoRA, vLLM, and the model that is left at the end.

- `scale_rewards = "none"`: an advantage is the reward less the mean of its group. TRL's default divides by the
  standard deviation of the group: where all answers of a group are right, or all wrong, it differs by well-formed
  turns alone, and dividing by it takes the weight alpha out: a turn then earns as much as an answer does elsewhere.
- `lora_rank`: adapters on all linear layers are trained, the model itself stays as it is (in 16 bits on a GPU). The
  divergence is measured from the model without adapters, so there is no second copy. At the end they are merged.
- `vllm`: rollouts are sampled by vLLM, on the same GPU ("colocate") or a server of one's own (its URL), to which TRL
  sends the weights after each step.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kinodex.agent.local.generator import Generator, Sample
from kinodex.agent.local.model import known_model
from kinodex.agent.variants.longvideoagent.turns import ENDS
from kinodex.index.spaces.import_torch import import_torchvision
from kinodex.jobs.errors import UsageError
from kinodex.jobs.train.memory import static_memory
from kinodex.jobs.train.settings import COLOCATE, MasterSettings

Report = Callable[[str], object]
"""A function that shows one line of progress."""
RolloutFunction = Callable[[list[str], Any], Mapping[str, Any]]
GB = 1e9


def structure(*, structure: list[float], **_: Any) -> list[float]:
    """Return the first column of rewards, named so in the logs: alpha times the well-formed turns."""
    return structure


def answer(*, answer: list[float], **_: Any) -> list[float]:
    """Return the second column of rewards: 1 for a right answer."""
    return answer


def make_trainer(
    model: str, out: Path, settings: MasterSettings, numbers: Sequence[int], rollouts: RolloutFunction, report: Report
) -> Any:
    """Make a trainer of `model` (a folder or a hub id), whose prompts are the numbers of questions."""
    import_torchvision()
    import transformers
    import trl
    from datasets import Dataset

    library: Any = trl
    with known_model(model) as place:
        config_of: Any = transformers.AutoConfig
        config_of.from_pretrained(place, trust_remote_code=False)
    columns: list[Callable[..., list[float]]] = [structure, answer]
    trainer = library.GRPOTrainer(
        place,
        columns,
        trainer_config(out, settings),
        Dataset.from_dict({"prompt": [str(number) for number in numbers]}),
        rollout_func=rollouts,
        peft_config=_adapters(settings),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(_progress_callback(settings.steps, report))
    report(_memory_line(trainer, settings))
    return trainer


def trainer_config(out: Path, settings: MasterSettings) -> Any:
    """Settings of TRL's trainer."""
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
        scale_rewards=settings.scale_rewards,
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
        model_init_kwargs={"dtype": "bfloat16"} if settings.lora_rank and cuda else None,
        **_vllm_config(settings),
    )


def _vllm_config(settings: MasterSettings) -> dict[str, Any]:
    if not settings.vllm:
        return {}
    if importlib.util.find_spec("vllm") is None:
        raise UsageError("vllm samples the rollouts, and is not installed; pip install vllm, or leave the setting out")
    place = (
        {"vllm_mode": "colocate", "vllm_gpu_memory_utilization": settings.vllm_memory, "vllm_enable_sleep_mode": True}
        if settings.vllm == COLOCATE
        else {"vllm_mode": "server", "vllm_server_base_url": settings.vllm}
    )
    return {
        "use_vllm": True,
        **place,
        "max_completion_length": settings.turn_tokens,
        "generation_kwargs": {"stop": list(ENDS), "include_stop_str_in_output": True},
        # it needs the log-probabilities of the tokens that were sampled, and rollouts carry none
        "vllm_importance_sampling_correction": False,
    }


def _adapters(settings: MasterSettings) -> Any:
    """Return the adapters to train, or None to train all weights."""
    if not settings.lora_rank:
        return None
    try:
        import peft
    except ImportError as error:
        raise UsageError("lora_rank needs peft, which is not installed; pip install 'kinodex[train]'") from error
    return peft.LoraConfig(
        r=settings.lora_rank, lora_alpha=settings.lora_alpha, target_modules="all-linear", task_type="CAUSAL_LM"
    )


def sampler(trainer: Any, settings: MasterSettings) -> Generator:
    """Return a generator of the model in its present state."""
    from trl.models import unwrap_model_for_generation

    def prepare_model() -> Any:
        checkpointing = trainer.args.gradient_checkpointing_kwargs
        return unwrap_model_for_generation(
            trainer.model_wrapped, trainer.accelerator, gradient_checkpointing_kwargs=checkpointing
        )

    sample = vllm_sample(trainer) if settings.vllm else None
    return Generator(trainer.model, trainer.processing_class, settings.turn_tokens, prepare_model, sample)


def vllm_sample(trainer: Any) -> Sample:
    """Sample by the trainer's vLLM, which holds the present weights; temperature and stop texts are in its settings."""
    # Several processes would wait for each other, since agents do not ask equally often.
    if trainer.vllm_generation.mode == "server" and trainer.accelerator.num_processes > 1:
        raise UsageError(f"a vLLM server serves one training process; use vllm = {COLOCATE!r}, or one process")

    def sample(prompts: list[list[int]], temperature: float, stop: tuple[str, ...]) -> list[list[int]]:
        _, completions, *_ = trainer.vllm_generation.generate(prompts, None, 1)
        return [list(tokens) for tokens in completions]

    return sample


def save_master(trainer: Any, folder: Path) -> None:
    """Save the trained model as `save_pretrained` does, adapters merged into it, with its tokenizer."""
    if not trainer.accelerator.is_main_process:
        return
    model = trainer.accelerator.unwrap_model(trainer.model)
    merge = getattr(model, "merge_and_unload", None)
    if merge is None:
        trainer.save_model(str(folder))
        return
    merge().save_pretrained(folder)
    trainer.processing_class.save_pretrained(folder)


def _memory_line(trainer: Any, settings: MasterSettings) -> str:
    trained = sum(each.numel() for each in trainer.model.parameters() if each.requires_grad)
    whole = sum(each.numel() for each in trainer.model.parameters())
    memory = static_memory(whole, trained, reference=settings.kl > 0, bf16=trainer.args.bf16)
    return (
        f"training {trained:,} of {whole:,} weights: {memory.total / GB:.3g} GB for weights, gradients and optimiser, "
        "and more for texts (docs/training.md)"
    )


def _progress_callback(steps: int, report: Report) -> Any:
    """Return a callback of the trainer that reports each step in one line."""
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


@contextmanager
def expected_warnings() -> Iterator[None]:
    """Ignore, within this block, two warnings that TRL 1.16 and transformers 5.23 cause with each other."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "You are using 'rollout_func'", UserWarning)
        warnings.filterwarnings("ignore", ".*gradient_checkpointing.* is deprecated", FutureWarning)
        yield
