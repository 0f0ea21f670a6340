"""`kinodex lab`: train a master for LongVideoAgent, and score its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinodex.cli.model_options import BaseUrlOption, SpaceOption, announce
from kinodex.cli.options import LibraryArgument
from kinodex.output import say, tell

train_app = typer.Typer(no_args_is_help=True, help="Train models of the agents.")

QuestionsOption = Annotated[
    Path, typer.Option(exists=True, dir_okay=False, help="Questions with answers, a JSON line each (docs/training.md).")
]


@train_app.callback()
def train() -> None:
    """Train models of the agents."""


@train_app.command()
def master(
    library: LibraryArgument,
    questions: QuestionsOption,
    model: Annotated[str, typer.Option(help="The causal language model to train: a folder or a hub id.")],
    out: Annotated[Path, typer.Option(help="Folder for checkpoints, rollouts and the trained master.")],
    config: Annotated[
        Path | None, typer.Option(help="TOML file with settings to change; jobs/train/grpo.toml has the paper's.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Optimisation steps at most.")] = None,
    lora: Annotated[
        int | None, typer.Option(min=0, help="Rank of the adapters to train (LoRA); 0: all weights are trained.")
    ] = None,
    vllm: Annotated[
        str | None, typer.Option(help="Sample rollouts with vLLM: colocate (on the same GPU), or a server's URL.")
    ] = None,
    scale_rewards: Annotated[
        str | None, typer.Option(help="Divide advantages by the standard deviation of: none, group or batch.")
    ] = None,
    frozen: Annotated[
        str, typer.Option(help="Model that grounds and looks: similarity, or one of an OpenAI-compatible endpoint.")
    ] = "similarity",
    base_url: BaseUrlOption = None,
    models: Annotated[Path | None, typer.Option(help="TOML file with a model for each role but the policy.")] = None,
    space: SpaceOption = None,
    benchmark: Annotated[
        str | None, typer.Option(help="Benchmark whose annotations --questions are: longtvqa or longtvqa-plus, say.")
    ] = None,
) -> None:
    """Train a LongVideoAgent master with GRPO on questions about a library; run it again to continue."""
    from kinodex.jobs.known_answers import read_known
    from kinodex.jobs.models import ModelChoice
    from kinodex.jobs.train.helper_calls import describe_helper_calls
    from kinodex.jobs.train.master import benchmark_questions, film_environments, train_master
    from kinodex.jobs.train.settings import MasterSettings

    settings = MasterSettings.read(config, steps=steps, lora_rank=lora, vllm=vllm, scale_rewards=scale_rewards)
    known = benchmark_questions(library, benchmark, questions) if benchmark else read_known(questions)
    environments = film_environments(library, {each.film for each in known}, space)
    choice = ModelChoice(frozen, base_url, models)
    tell(describe_helper_calls(settings, known, environments, choice))
    announce(choice)
    say(train_master(known, environments, model, out, settings, choice, tell))


def rollouts(
    trace: Annotated[list[Path], typer.Argument(exists=True, help="Traces of `kinodex ask --agent longvideoagent`.")],
    questions: QuestionsOption,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
    alpha: Annotated[float | None, typer.Option(min=0.0, help="Weight of well-formed turns.")] = None,
    thinking_open: Annotated[
        bool, typer.Option("--thinking-open", help="The master's chat template begins its turns inside <think>.")
    ] = False,
) -> None:
    """Write runs as conversations to train on: one JSON line for each run, with the reward of each turn."""
    from kinodex.agent.traces.trace import read_trace
    from kinodex.jobs.known_answers import read_known, true_option
    from kinodex.jobs.train.rewards import ALPHA
    from kinodex.jobs.train.rollout import as_line, read_question, rollout

    known = read_known(questions)
    lines = []
    for path in trace:
        records = read_trace(path)
        true = true_option(known, *read_question(records))
        run = rollout(records, true, ALPHA if alpha is None else alpha, thinking_open=thinking_open)
        lines.append(as_line(run))
    text = "".join(f"{line}\n" for line in lines)
    if out is None:
        say(text.removesuffix("\n"))
    else:
        out.write_text(text, encoding="utf-8")
        say(f"{len(lines)} rollouts in {out}")
