"""`kinodex ask`: ask a question, watch the search, get the answer with its evidence and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.cli import options
from kinodex.cli import options as ending
from kinodex.cli.options import JsonOption, LibraryArgument, OtlpOption, VideoOption

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kinodex.agent.answer import Answer
    from kinodex.agent.environment import Environment
    from kinodex.agent.limits import Budget
    from kinodex.agent.protocol import AnswerRules, Question
    from kinodex.agent.trace import Event
    from kinodex.agent.variants.base import Variant
    from kinodex.jobs.export.media import JoinedClip
    from kinodex.jobs.models import ModelChoice


def ask(
    library: LibraryArgument,
    question: Annotated[str, typer.Argument(help="The question, in words.")],
    option: Annotated[list[str] | None, typer.Option(help="One of 2 to 26 choices; repeat it for each.")] = None,
    video: VideoOption = None,
    agent: Annotated[str, typer.Option(help="The agent: a name of `kinodex agents`, or FILE.py.")] = "eea",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the agent; may be repeated.")
    ] = None,
    continue_: Annotated[
        Path | None,
        typer.Option("--continue", metavar="TRACE", help="Follow-up: start with what this run saw."),
    ] = None,
    model: options.ModelOption = "builtin",
    base_url: options.BaseUrlOption = None,
    models: options.ModelsOption = None,
    detector: options.DetectorOption = None,
    space: options.SpaceOption = None,
    max_frames: options.MaxFramesOption = None,
    max_rounds: options.MaxRoundsOption = None,
    max_tokens: options.MaxTokensOption = None,
    max_seconds: options.MaxSecondsOption = None,
    max_cost: options.MaxCostOption = None,
    force_choice: ending.ForceChoiceOption = False,
    early_insufficient: ending.EarlyInsufficientOption = False,
    verify: ending.VerifyOption = False,
    anyway: ending.AnywayOption = False,
    input_price: options.InputPriceOption = 0.0,
    output_price: options.OutputPriceOption = 0.0,
    cache: options.CacheOption = True,
    trace: Annotated[Path | None, typer.Option(help="Write all events of the run to this file, as JSON lines.")] = None,
    clip: Annotated[
        Path | None,
        typer.Option(metavar="FILE.mp4", help="Cut the evidence out of the video's file; of several: FILE-1.mp4, ..."),
    ] = None,
    otlp: OtlpOption = None,
    dry_run: options.DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Ask a question about a library's videos. Exits with 0 if the run ended in order, whatever the answer.

    Exits with 6 if no reply of the models could be used.
    """
    from kinodex.agent.limits import Budget
    from kinodex.agent.protocol import Question
    from kinodex.jobs.models import ModelChoice
    from kinodex.jobs.open import open_environment

    query = Question(question, tuple(option or ()))
    budget = Budget(max_rounds, max_frames, max_tokens, max_seconds, max_cost)
    rules = ending.answer_rules(force_choice, early_insufficient, verify)
    choice = ModelChoice(model, base_url, models, input_price, output_price, cache, anyway=anyway)
    options.check_cost(choice, max_cost)
    _check_files(trace, continue_, clip)
    environment = open_environment(library, video or (), detector, space)
    run = _RunOptions(agent, _settings(set_ or []), budget, rules, continue_, trace, clip, otlp)
    show = _show_forecast if dry_run else _ask_and_show
    show(query, environment, choice, run, as_json=json)


@dataclass(frozen=True, slots=True)
class _RunOptions:
    """Agent, parameters and limits of a run, the earlier run that it follows, and where its trace and clip go."""

    agent: str
    settings: dict[str, str]
    budget: Budget
    rules: AnswerRules
    follows: Path | None
    trace: Path | None
    clip: Path | None
    otlp: str | None


def _ask_and_show(
    query: Question, environment: Environment, choice: ModelChoice, run: _RunOptions, as_json: bool
) -> None:
    import asyncio

    from kinodex.agent.errors import NoUsableReply

    _check_world(environment, choice, run)
    options.announce(choice)
    answer = asyncio.run(_answer(query, environment, choice, run, quiet=as_json))
    clips = [] if run.clip is None else _cut(answer, query, environment, run.clip)
    _show(answer, environment, run.trace, clips, as_json=as_json)
    if answer.senseless:
        raise NoUsableReply(answer.reason)


def _cut(answer: Answer, query: Question, environment: Environment, out: Path) -> list[JoinedClip]:
    """Cut the evidence of an answer out of its videos; none for an answer without evidence."""
    from kinodex.index.library import Library
    from kinodex.jobs.export.media import join_clips
    from kinodex.jobs.export.moments import Moment

    library = Library.open(environment.source.uri)
    moments = [
        Moment(library.video(each.video_id), each.start_s, each.end_s, query.text, None, "evidence")
        for each in answer.evidence
    ]
    return join_clips(library, moments, out)


def _check_world(environment: Environment, choice: ModelChoice, run: _RunOptions) -> None:
    from kinodex.agent.ask import find_variant
    from kinodex.jobs.models import check_known_world

    if find_variant(run.agent).roles:
        check_known_world(choice, environment.source.space, has_pictures=environment.has_pictures)


def _check_writable(trace: Path | None) -> None:
    """Refuse a trace that could not be written, without writing it."""
    import errno
    import os

    if trace is None:
        return
    place = trace if trace.exists() else trace.parent
    if trace.is_dir():
        problem = errno.EISDIR
    elif not place.exists():
        problem = errno.ENOENT
    elif not os.access(place, os.W_OK) or (place != trace and not place.is_dir()):
        problem = errno.EACCES if place.is_dir() or place == trace else errno.ENOTDIR
    else:
        return
    raise _unwritable(trace, os.strerror(problem))


def _unwritable(trace: Path, problem: str | None) -> Exception:
    from kinodex.jobs.errors import UsageError

    return UsageError(f"cannot write the trace {trace}: {problem}; give another file")


def _settings(pairs: list[str]) -> dict[str, str]:
    from kinodex.jobs.errors import UsageError

    settings = {}
    for each in pairs:
        name, separator, value = each.partition("=")
        if not separator:
            raise UsageError(f"got --set {each}; write it as NAME=VALUE (`kinodex agents` shows the names)")
        settings[name.strip().replace("-", "_")] = value.strip()
    return settings


def _check_files(trace: Path | None, after: Path | None, clip: Path | None) -> None:
    """Refuse files that would be overwritten, before anything is paid for."""
    from kinodex.jobs.errors import UsageError

    if clip is not None:
        from kinodex.jobs.export.media import check_clip_path

        check_clip_path(clip)
    if trace is not None and after is not None and trace.resolve() == after.resolve():
        raise UsageError(f"got {trace} for both --trace and --continue, which would overwrite it; give a new file")


def _show_forecast(
    question: Question, environment: Environment, choice: ModelChoice, run: _RunOptions, as_json: bool
) -> None:
    from dataclasses import asdict
    from pathlib import Path

    from kinodex.agent.trace import ReplayModel, read_prior_evidence
    from kinodex.jobs.forecast import forecast_question, table
    from kinodex.jobs.models import REPLAY
    from kinodex.jobs.output import print_json

    _check_world(environment, choice, run)
    if choice.is_replay:
        ReplayModel(Path(choice.model.removeprefix(REPLAY)))
    _check_writable(run.trace)
    prior = None if run.follows is None else read_prior_evidence(run.follows, environment)
    forecast = forecast_question(question, environment, choice, run.agent, run.settings, run.budget, run.rules, prior)
    if as_json:
        print_json(asdict(forecast))
    else:
        print(table([forecast]))


async def _answer(
    question: Question, environment: Environment, choice: ModelChoice, run: _RunOptions, quiet: bool
) -> Answer:
    from contextlib import ExitStack

    from kinodex.agent.ask import ask as ask_agent
    from kinodex.agent.ask import default_parameters
    from kinodex.agent.trace import read_prior_evidence, trace_to
    from kinodex.agent.variants.base import with_settings
    from kinodex.cli.tree_view import TreeView
    from kinodex.jobs.models import chosen_models
    from kinodex.jobs.output import console
    from kinodex.jobs.telemetry import spans_to

    parameters = with_settings(default_parameters(run.agent, environment), run.settings)
    seen = None if run.follows is None else read_prior_evidence(run.follows, environment)
    watchers: list[Callable[[Event], None]] = [] if quiet else [TreeView(console())]
    with ExitStack() as stack:
        if run.trace is not None:
            try:
                watchers.append(stack.enter_context(trace_to(run.trace)))
            except OSError as error:
                raise _unwritable(run.trace, error.strerror) from error

        watch = stack.enter_context(spans_to(run.otlp))
        watchers.append(stack.enter_context(watch(environment.source.uri)))

        def on_event(event: Event) -> None:
            for watcher in watchers:
                watcher(event)

        async with chosen_models(choice) as models:
            return await ask_agent(
                question,
                environment,
                models(environment),
                agent=run.agent,
                parameters=parameters,
                budget=run.budget,
                rules=run.rules,
                seen=seen,
                on_event=on_event,
            )


def _show(
    answer: Answer, environment: Environment, trace: Path | None, clips: Sequence[JoinedClip], as_json: bool
) -> None:
    import sys
    from dataclasses import asdict

    from kinodex.cli.tree_view import show_answer
    from kinodex.jobs.output import console, print_json, visible, visible_lines

    if as_json:
        files = [{"path": str(each.path), "title": each.title, "error": each.error} for each in clips]
        print_json(asdict(answer) | {"letter": answer.letter, "trace": trace and str(trace), "clips": files})
        return
    show_answer(answer, environment.videos, console())
    if trace is not None:
        print(f"trace     {trace}")
    for each in clips:
        if each.error:
            print(f"no clip: {visible_lines(each.error)}", file=sys.stderr)
        else:
            print(f"clip      {visible(str(each.path))}")


# `kinodex agents`: list the agents with their needs and parameters.

HOUR_S = 3600.0


def agents(
    name: Annotated[
        str | None, typer.Argument(help="Only this agent, with all its parameters; FILE.py shows one of your own.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the agents with the model roles that they ask, the tables that they read, and their parameters."""
    from kinodex.agent.ask import VARIANTS, find_variant
    from kinodex.jobs.output import print_json

    chosen = VARIANTS if name is None else (find_variant(name),)
    if json:
        print_json([_plain(each) for each in chosen])
    elif name is None:
        _show_all(chosen)
    else:
        _show_one(chosen[0])


def _plain(each: Variant) -> dict[str, Any]:
    from dataclasses import asdict

    from kinodex.agent.variants.base import describe_parameters, list_choices

    return {
        "name": each.name,
        "line": each.line,
        "roles": each.roles,
        "uses": each.uses,
        "needs_language": each.needs_language,
        "needs_pictures": each.needs_pictures,
        "parameters": asdict(each.parameters(HOUR_S)),
        "meanings": describe_parameters(type(each.parameters(HOUR_S))),
        "choices": list_choices(type(each.parameters(HOUR_S))),
        "ablations": dict(each.ablations),
    }


def _show_all(chosen: tuple[Variant, ...]) -> None:
    from rich.padding import Padding

    from kinodex.jobs.output import console

    out = console()
    for each in chosen:
        shown = _plain(each)
        models = ", ".join(each.roles) or "none"
        defaults = " ".join(f"{name}={value}" for name, value in shown["parameters"].items())
        out.print(f"[bold]{each.name}[/]", highlight=False)
        for line in (
            each.line,
            f"models: {models}{' (language)' if each.needs_language else ''}{' (pictures)' * each.needs_pictures}; "
            f"also reads: {', '.join(each.uses) or 'nothing'}",
            f"defaults: {defaults}",
        ):
            out.print(Padding(line, (0, 0, 0, 4)), highlight=False)
    out.print(
        "\nDefaults are for an hour-long video; --set NAME=VALUE changes one. Agents marked (language) need a\n"
        "language model: --model NAME --base-url URL. Those marked (pictures) need frames, not just captions.\n"
        "`kinodex agents NAME` shows one, with its ablations.",
        highlight=False,
    )


def _show_one(each: Variant) -> None:
    from rich.markup import escape
    from rich.padding import Padding

    from kinodex.jobs.output import console

    out, shown = console(), _plain(each)
    out.print(f"[bold]{each.name}[/]: {escape(each.line)}", highlight=False)
    for title in ("roles", "uses"):
        out.print(f"{title:<10} {', '.join(shown[title]) or 'none'}", highlight=False)
    out.print("\nparameters, for an hour-long video:", highlight=False)
    for name, value in shown["parameters"].items():
        choices = shown["choices"].get(name)
        others = f" ({', '.join(choices)})" if choices else ""
        out.print(f"  --set {name}={escape(str(value))}{escape(others)}", highlight=False)
        out.print(Padding(escape(shown["meanings"].get(name, "")), (0, 0, 0, 6), expand=False), highlight=False)
    if shown["ablations"]:
        out.print("\nablations:", highlight=False)
    for title, settings in shown["ablations"].items():
        out.print(f"  {escape(title)}", highlight=False)
        for name, value in settings.items():
            out.print(f"      --set {name}={escape(str(value))}", highlight=False)
