"""`kinodex lab`: measure speed and search on this machine, and train a master for LongVideoAgent."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from kinodex.cli.options import BaseUrlOption, JsonOption, LibraryArgument, SpaceOption, announce
from kinodex.output import print_json, say, tell, tell_count

bench_app = typer.Typer(no_args_is_help=True, help="Measure speed and search on this machine.")
train_app = typer.Typer(no_args_is_help=True, help="Train models of the agents.")

FpsOption = Annotated[float, typer.Option(help="Frames sampled a second.")]
RoundsOption = Annotated[int, typer.Option(min=1, help="Rounds; medians are printed.")]


@bench_app.command()
def ingest(
    video: Annotated[list[Path], typer.Argument(exists=True, help="The videos, each measured by itself.")],
    model: Annotated[
        Path | None, typer.Option(exists=True, help="Folder of an open_clip model. Default: ViT-B-32, random weights.")
    ] = None,
    fps: FpsOption = 1.0,
    rounds: RoundsOption = 5,
    peers: Annotated[bool, typer.Option("--peers", help="Also Pixeltable and Daft, which it installs apart.")] = False,
    json: JsonOption = False,
) -> None:
    """Measure whole ingests on a CPU, the first on a machine and the next, against a competent script in turn."""
    from tempfile import TemporaryDirectory

    from kinodex.bench.ingest import PEERS, bench_ingest, table
    from kinodex.bench.random_space import make_random_space

    with TemporaryDirectory() as scratch:
        if model is None:
            model = Path(make_random_space(Path(scratch) / "model", "ViT-B-32").removeprefix("local-dir:"))
        paths = [each.absolute() for each in video]
        figures = bench_ingest(paths, model.absolute(), rounds, list(PEERS) if peers else [], fps, tell)
    _show(figures, table(figures), json)


@bench_app.command()
def decoders(
    files: Annotated[list[Path], typer.Argument(exists=True, help="Videos, or folders of them.")],
    fps: Annotated[list[float] | None, typer.Option(help="Frames sampled a second; may be repeated.")] = None,
    decoder: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    rounds: RoundsOption = 3,
    make: Annotated[Path | None, typer.Option(help="Folder for the first file re-encoded with each codec.")] = None,
    json: JsonOption = False,
) -> None:
    """Measure the cost of each decoder by file, relative to decoding all with PyAV, and check that its times agree."""
    from kinodex.bench.decoders import bench_decoders, table

    rows = bench_decoders(files, fps or [1.0, 0.2], decoder, rounds, make)
    _show(rows, table(rows), json)


@bench_app.command()
def gpu(
    video: Annotated[
        list[Path] | None, typer.Argument(exists=True, help="Videos to measure on. Default: a film drawn here.")
    ] = None,
    space: Annotated[
        str | None, typer.Option(help="Embedding space. Default: the default space's architecture, random weights.")
    ] = None,
    fps: FpsOption = 1.0,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of each measurement in seconds, about.")] = 25.0,
    limit: Annotated[float, typer.Option(min=1.0, help="Seconds after which nothing more is begun.")] = 560.0,
    with_gpu: Annotated[bool, typer.Option("--gpu/--no-gpu", help="Use the GPU, if there is one.")] = True,
    out: Annotated[Path | None, typer.Option(help="Folder for gpu.md and gpu.json as well.")] = None,
    json: JsonOption = False,
) -> None:
    """Measure a machine with a GPU in ten minutes: decoding, embedding, whole ingests, and rows equal to the CPU's.

    Other settings come from the environment, such as KINODEX_INGEST_WORKERS=16. What is not there is left out and said.
    """
    from kinodex.bench.gpu import bench_gpu, table, write_files
    from kinodex.jobs.ingest.config import resolve

    resolved = resolve({"space": space, "fps": fps, "anyway": True}, {}, os.environ, None, {})
    random_weights = "space" not in resolved.origins
    figures = bench_gpu(video or [], resolved.config, seconds, limit, with_gpu, random_weights, tell)
    if out is not None:
        write_files(figures, out)
    _show(figures, table(figures), json)


@bench_app.command()
def make_space(
    directory: Annotated[Path, typer.Argument(help="Folder for the model.")],
    model: Annotated[str, typer.Option(help="An architecture of open_clip.")] = "ViT-B-32",
) -> None:
    """Write a model with random weights, to measure speed with where no hub can be reached."""
    from kinodex.bench.random_space import make_random_space

    say(make_random_space(directory, model))


@bench_app.command()
def search(
    directory: Annotated[Path, typer.Argument(help="Folder for the made-up library; an existing one is used.")],
    videos: Annotated[int, typer.Option(min=1, help="Videos in it.")] = 1000,
    frames: Annotated[int, typer.Option(min=20, help="Frames a video.")] = 1000,
    lines: Annotated[int, typer.Option(min=1, help="Transcript lines a video, and as many captions.")] = 100,
    dim: Annotated[int, typer.Option(min=8, help="Numbers in a vector.")] = 512,
    jpeg_bytes: Annotated[int, typer.Option(min=1, help="Bytes of a stored picture.")] = 1000,
    queries: Annotated[int, typer.Option(min=1, help="Questions of each kind.")] = 100,
    cone: Annotated[
        bool, typer.Option("--cone", help="Vectors in a narrow cone: cosines of the best matches of 0.06 to 0.3.")
    ] = False,
    conditions: Annotated[
        bool, typer.Option("--conditions", help="Only searches of the videos for which a condition holds.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Measure searches of a library of a million made-up frames: warm, freshly opened and cold, with recall."""
    from kinodex.bench.search import Size, bench_conditions, bench_search, condition_table, machine, make_library, table
    from kinodex.bench.search import queries as made_queries

    def on_progress(done: int) -> None:
        tell_count(f"{done} of {videos} videos written")

    size = Size(videos, frames, lines, dim, jpeg_bytes, cone)
    if conditions:
        from kinodex.index.store.indexes import refresh

        library, _ = make_library(str(directory), size, on_progress)
        refresh(library.tables)
        found = bench_conditions(library, size, made_queries(queries, size), lambda line: tell(f"\r{line}"))
        _show(found, f"{condition_table(found, size)}\n\n{machine()}", json)
        return
    figures = bench_search(directory, size, queries, on_progress, lambda line: tell(f"\r{line}"))
    _show(figures, table(figures), json)


def _show(figures: Any, text: str, as_json: bool) -> None:
    if as_json:
        print_json([asdict(each) for each in figures] if isinstance(figures, list | tuple) else asdict(figures))
    else:
        say(text)


# Train a master, and score its runs.

QuestionsOption = Annotated[
    Path, typer.Option(exists=True, dir_okay=False, help="Questions with answers, as `kinodex sample` writes them.")
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
        str, typer.Option(help="Model that grounds and looks: builtin, or one of an OpenAI-compatible endpoint.")
    ] = "builtin",
    base_url: BaseUrlOption = None,
    models: Annotated[Path | None, typer.Option(help="TOML file with a model for each role but the policy.")] = None,
    space: SpaceOption = None,
) -> None:
    """Train a LongVideoAgent master with GRPO on questions about a library; run it again to continue."""
    from kinodex.jobs.known_answers import read_known
    from kinodex.jobs.models import ModelChoice
    from kinodex.jobs.train.helper_calls import describe_helper_calls
    from kinodex.jobs.train.rollouts import MasterSettings
    from kinodex.jobs.train.trainer import film_environments, train_master

    settings = MasterSettings.read(config, steps=steps, lora_rank=lora, vllm=vllm, scale_rewards=scale_rewards)
    known = read_known(questions)
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
    from kinodex.agent.trace import read_trace
    from kinodex.jobs.known_answers import read_known, true_option
    from kinodex.jobs.train.rewards import ALPHA, as_line, read_question, rollout

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
