"""`kinodex bench`: measure speed and search on this machine."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kinodex.cli import options as model_options
from kinodex.cli.options import JsonOption

app = typer.Typer(no_args_is_help=True, help="Measure speed and search on this machine.")


VideosArgument = Annotated[list[Path], typer.Argument(exists=True, help="The videos to measure on.")]


@app.command()
def ingest(
    video: VideosArgument,
    space: Annotated[str, typer.Option(help="Embedding space.")] = "builtin",
    fps: Annotated[float, typer.Option(help="Frames sampled a second.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; medians are printed.")] = 3,
    decoder: Annotated[str, typer.Option(help="auto, pyav, decord, torchcodec or nvdec.")] = "auto",
    device: Annotated[str, typer.Option(help="Where the model runs: auto, cpu, cuda.")] = "auto",
    ray: Annotated[bool, typer.Option("--ray/--local", help="On a Ray started here, or in threads.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that decode. Default: one a core.")] = None,
    script: Annotated[bool, typer.Option(help="Also run the plain decord + open_clip script.")] = True,
    json: JsonOption = False,
) -> None:
    """Measure frames a second end to end, against each stage alone and against a plain script of decord and open_clip.

    Other settings come from the environment, such as KINODEX_INGEST_CUT_S=300.
    """
    from kinodex.bench.ingest import bench_ingest, table
    from kinodex.jobs.ingest.config import resolve
    from kinodex.jobs.output import print_json

    flags = {"space": space, "fps": fps, "decoder": decoder, "device": device, "ray": ray, "workers": workers}
    figures = bench_ingest(video, resolve(flags, {}, os.environ, None, {}).config, rounds, script, _tell)
    if json:
        print_json(asdict(figures))
    else:
        print(table(figures))


@app.command()
def decoders(
    files: Annotated[list[Path], typer.Argument(exists=True, help="Videos, or folders of them.")],
    fps: Annotated[list[float] | None, typer.Option(help="Frames sampled a second; may be repeated.")] = None,
    decoder: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; medians are printed.")] = 3,
    make: Annotated[
        Path | None,
        typer.Option(help="Folder for the first file re-encoded with each codec."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure the cost of each decoder by file, relative to decoding all with PyAV, and check that its times agree."""
    from kinodex.bench.decoders import bench_decoders, table
    from kinodex.jobs.output import print_json

    rows = bench_decoders(files, fps or [1.0, 0.2], decoder, rounds, make)
    if json:
        print_json([asdict(row) for row in rows])
    else:
        print(table(rows))


@app.command()
def gpu(
    video: Annotated[
        list[Path] | None, typer.Argument(exists=True, help="Videos to measure on. Default: a film drawn here.")
    ] = None,
    space: Annotated[
        str | None, typer.Option(help="Embedding space. Default: the default space's architecture, random weights.")
    ] = None,
    fps: Annotated[float, typer.Option(help="Frames sampled a second.")] = 1.0,
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
    from kinodex.jobs.output import print_json

    resolved = resolve({"space": space, "fps": fps}, {}, os.environ, None, {})
    random_weights = "space" not in resolved.origins
    figures = bench_gpu(video or [], resolved.config, seconds, limit, with_gpu, random_weights, _tell)
    if out is not None:
        write_files(figures, out)
    if json:
        print_json(asdict(figures))
    else:
        print(table(figures))


@app.command()
def coordinator(
    sources: Annotated[list[int] | None, typer.Option(min=1, help="Sources of a run; may be repeated.")] = None,
    length: Annotated[float, typer.Option(min=1.0, help="Seconds of a film, on average.")] = 600.0,
    frames: Annotated[float, typer.Option(min=1.0, help="Stored frames of a film, on average.")] = 600.0,
    workers: Annotated[int, typer.Option(min=1, help="Workers that read.")] = 1000,
    known: Annotated[
        list[int] | None, typer.Option(min=1, help="Sources of a run that has nothing to do; may be repeated.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Simulate ingests in virtual time: the real coordinator and tables with simulated workers and films.

    Some tasks are slow, some lose their worker, some films are copies, broken or deadly to every worker.
    """
    from kinodex.bench.coordinator import Crew, RunLoad, bench_coordinator, table
    from kinodex.jobs.output import print_json

    crew = Crew(workers, slow=0.01, lost=0.002)
    troubles = {"duplicates": 0.05, "poison": 0.02, "deadly": 0.0005}
    loads = [RunLoad(each, crew, length, frames_a_second=frames / length, **troubles) for each in sources or [10_000]]
    figures = bench_coordinator(loads, known or [100_000], _tell)
    if json:
        print_json(asdict(figures))
    else:
        print(table(figures))


@app.command()
def towers(
    space: Annotated[list[str] | None, typer.Option(help="Embedding space; may be repeated. Default: builtin.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the cheapest counts.")] = 3,
    batch: Annotated[int, typer.Option(min=1, help="Pictures at once, at most 64.")] = 16,
    json: JsonOption = False,
) -> None:
    """Measure the arithmetic of image towers on one core: pictures a second, and the cosine to torch's float32."""
    from kinodex.bench.towers import bench_towers, table
    from kinodex.jobs.output import print_json

    figures = bench_towers(space or ["builtin"], rounds, batch, _tell)
    if json:
        print_json([asdict(each) for each in figures])
    else:
        print(table(figures))


@app.command()
def make_space(
    directory: Annotated[Path, typer.Argument(help="Folder for the model.")],
    model: Annotated[str, typer.Option(help="An architecture of open_clip.")] = "ViT-B-32",
) -> None:
    """Write a model with random weights, to measure speed with where no hub can be reached."""
    from kinodex.bench.ingest import make_random_space

    print(make_random_space(directory, model))


@app.command("eval")
def evaluation(
    directory: Annotated[Path, typer.Argument(help="Folder for films and library; existing ones are used.")],
    agent: Annotated[list[str] | None, typer.Option(help="eea, vca, uniform or blind; may be repeated.")] = None,
    questions: Annotated[int, typer.Option(min=1, help="Number of questions.")] = 1000,
    at_once: Annotated[int, typer.Option(min=1, help="Calls at the same time.")] = 32,
    latency_ms: Annotated[float, typer.Option(min=1.0, help="What a call of the model takes.")] = 200.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes of `kinodex eval`.")] = 1,
    json: JsonOption = False,
) -> None:
    """Measure what `kinodex eval` adds to the time of its models, with a server that answers after a fixed time."""
    from kinodex.bench.evaluation import Load, bench_eval, table
    from kinodex.jobs.output import print_json

    load = Load(questions, at_once, latency_ms / 1000, workers)
    figures = bench_eval(directory, agent or ["eea"], load, _tell)
    if json:
        print_json([asdict(each) for each in figures])
    else:
        print(table(figures, load))


@app.command()
def prefix(
    directory: Annotated[
        Path | None, typer.Argument(help="Folder for the film and its library; existing ones are used.")
    ] = None,
    agent: Annotated[list[str] | None, typer.Option(help="An agent of `kinodex agents`; may be repeated.")] = None,
    trace: Annotated[
        list[Path] | None, typer.Option(exists=True, help="Count this trace instead of a run; may be repeated.")
    ] = None,
    rules: Annotated[str, typer.Option(help="The cache: vllm or openai.")] = "vllm",
    pictures: Annotated[
        str, typer.Option(help="Tokens of a picture: openai (tiles) or qwen (28-px patches).")
    ] = "openai",
    tokenizer: Annotated[
        Path | None, typer.Option(exists=True, help="Folder of a tokenizer. Default: 4 characters a token.")
    ] = None,
    questions: Annotated[int, typer.Option(min=1, help="Questions that an agent answers, with one cache.")] = 1,
    hours: Annotated[float, typer.Option(min=0.01, help="Length of the film, if it is made now.")] = 1.0,
    explore: Annotated[bool, typer.Option(help="Make eea and vca use all their rounds.")] = True,
    size: Annotated[str, typer.Option(help="Width and height of the pictures of a trace.")] = "512x288",
    model: model_options.ModelOption = "builtin",
    base_url: model_options.BaseUrlOption = None,
    json: JsonOption = False,
) -> None:
    """Count the input tokens that a warm prefix cache serves over a run, by the published rules of servers."""
    from kinodex.bench.prefix import LiveRun, as_json, bench_prefix, count_traces, parse_size, parse_tokens, table
    from kinodex.jobs.errors import UsageError
    from kinodex.jobs.models import ModelChoice
    from kinodex.jobs.output import print_json

    counting = parse_tokens(rules, pictures, tokenizer)
    if trace:
        figures = count_traces(trace, parse_size(size), counting)
    elif directory is None:
        raise UsageError("got no folder and no --trace; name a folder for the film, or a trace to count")
    else:
        choice = ModelChoice(model, base_url, cache=False)
        live = LiveRun(directory, agent or ["eea"], questions, hours, choice, explore)
        figures = bench_prefix(live, counting, _tell)
    if json:
        print_json([as_json(each) for each in figures])
    else:
        print(table(figures, counting))


@app.command()
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
    json: JsonOption = False,
) -> None:
    """Measure searches of a library of a million made-up frames: warm, freshly opened and cold, with recall."""
    from kinodex.bench.search import Size, bench_search, table
    from kinodex.jobs.output import print_json

    def on_progress(done: int) -> None:
        print(f"\r{done} of {videos} videos written", end="", file=sys.stderr, flush=True)

    def say(line: str) -> None:
        print(f"\r{line}", file=sys.stderr, flush=True)

    figures = bench_search(directory, Size(videos, frames, lines, dim, jpeg_bytes, cone), queries, on_progress, say)
    if json:
        print_json(asdict(figures))
    else:
        print(table(figures))


@app.command()
def page(
    directory: Annotated[Path, typer.Argument(help="Folder for the made-up library; an existing one is used.")],
    videos: Annotated[int, typer.Option(min=1, help="Videos in it.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; medians are printed.")] = 5,
    json: JsonOption = False,
) -> None:
    """Measure how soon the page of a library of many videos is there: replies, posters, first paint in Chromium."""
    from kinodex.bench.page import bench_page, table
    from kinodex.jobs.output import print_json

    figures = bench_page(directory, videos, rounds, _tell)
    if json:
        print_json(asdict(figures))
    else:
        print(table(figures))


@app.command()
def settle(
    directory: Annotated[Path, typer.Argument(help="New folder for the made-up library.")],
    videos: Annotated[int, typer.Option(min=10, help="Videos to complete, in ten steps.")] = 50_000,
    frames: Annotated[int, typer.Option(min=1, help="Frames a video.")] = 600,
    at_once: Annotated[int, typer.Option(min=1, help="Videos a commit; a driver in a hurry takes 500.")] = 500,
    known: Annotated[int, typer.Option(min=0, help="Videos, without frames, that the library has before.")] = 0,
    limit: Annotated[float | None, typer.Option(min=1.0, help="Stop after so many seconds.")] = None,
    json: JsonOption = False,
) -> None:
    """Measure the last step of an ingest, which makes videos complete, by the library's size; frames are made up."""
    from kinodex.bench.settle import SettleLoad, as_json, bench_settle, table
    from kinodex.jobs.output import print_json

    figures = bench_settle(directory, SettleLoad(videos, frames, at_once, known=known, limit_s=limit), _tell)
    if json:
        print_json(as_json(figures))
    else:
        print(table(figures))


@app.command()
def start(
    directory: Annotated[Path, typer.Argument(help="Folder for films and libraries; existing ones are used.")],
    space: Annotated[
        list[str] | None,
        typer.Option(help="Embedding space of a library to search; may be repeated. Default: builtin."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the cheapest counts.")] = 5,
    beside: Annotated[
        Path | None, typer.Option(help="Another checkout of kinodex, with a .venv of its own or this one's.")
    ] = None,
    python: Annotated[
        Path | None, typer.Option(help="Interpreter for this checkout, such as one with the base install alone.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure what starting a command costs: CPU seconds and peak memory on one core, warm, the best of some rounds."""
    from kinodex.bench.start import bench_start, table
    from kinodex.jobs.output import print_json

    figures = bench_start(directory, space or ["builtin"], rounds, _tell, beside, python)
    if json:
        print_json([asdict(each) for each in figures])
    else:
        print(table(figures))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
