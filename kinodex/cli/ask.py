"""`kinodex ask` and `kinodex agents`: ask a question and watch the search; list the agents that can answer it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from kinodex.cli import options
from kinodex.cli.options import JsonOption, LibraryArgument, OtlpOption, VideoOption, WhereOption, open_library
from kinodex.index.text import visible, visible_lines
from kinodex.index.times import clock
from kinodex.jobs.errors import UsageError
from kinodex.output import console, error_console, print_every, print_json, say, tell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kinodex.agent.answer import Answer
    from kinodex.agent.environment import Environment
    from kinodex.agent.protocol import Question
    from kinodex.agent.trace import Event
    from kinodex.agent.variants.base import Variant
    from kinodex.answers import AskRequest
    from kinodex.index.library import Library
    from kinodex.jobs.export.media import JoinedClip
    from kinodex.jobs.models import ModelChoice


@options.with_groups
def ask(
    library: LibraryArgument,
    question: Annotated[str, typer.Argument(help="The question, in words.")],
    option: Annotated[list[str] | None, typer.Option(help="One of 2 to 26 choices; repeat it for each.")] = None,
    video: VideoOption = None,
    where: WhereOption = None,
    agent: Annotated[str, typer.Option(help="The agent: a name of `kinodex agents`, or FILE.py.")] = "kino",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the agent; may be repeated.")
    ] = None,
    follow_up: Annotated[
        Path | None, typer.Option(metavar="TRACE", help="Follow up this run: start with what it saw.")
    ] = None,
    asking: options.Asking = options.USUAL,
    ending: options.Ending = options.AS_USUAL,
    trace: Annotated[Path | None, typer.Option(help="Write all events of the run to this file, as JSON lines.")] = None,
    clip: Annotated[
        Path | None,
        typer.Option(metavar="FILE.mp4", help="Cut the evidence out of the video's file; of several: FILE-1.mp4, ..."),
    ] = None,
    otlp: OtlpOption = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Ask about all films: look at each that may matter, and count by SQL.")
    ] = False,
    plan: Annotated[
        Path | None,
        options.rare(metavar="FILE.json", help="With --all: this plan, as --json prints it, not the model's."),
    ] = None,
    dry_run: options.DryRunOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show each step of the search, too.")] = False,
    json: JsonOption = False,
) -> None:
    """Ask a question about a library's videos. Exits with 0 if the run ended in order, whatever the answer.

    Agents look at the 16 videos that fit the question best. With --all a model plans a table, each film is looked at by
    itself (--set candidates=100 of them), and its rows answer; ask again to go on where it ended. Exits with 6 if no
    reply of the models could be used.
    """
    from kinodex.agent.errors import NoUsableReply
    from kinodex.agent.protocol import Question
    from kinodex.answers import AskRequest, answer_now, check_world, videos_left_out
    from kinodex.jobs.open import open_environment

    asked = Question(question, tuple(option or ()))
    if plan is not None and not all_:
        raise UsageError("got --plan, which is for a question to all films; give --all too")
    rules = ending.rules()
    choice = asking.choice()
    _check_files(trace, follow_up, clip)
    if all_:
        if clip:
            raise UsageError("got --clip with --all; `kinodex export clips --trace FILE` cuts what was found")
        whole = AskRequest(choice, agent, _settings(set_ or []), asking.budget(), rules, trace, follow_up, otlp)
        _ask_all(open_library(library, where), asked, whole, plan, video or (), dry_run=dry_run, as_json=json)
        return
    environment = open_environment(open_library(library, where), video or (), asking.detector, asking.space)
    check_world(environment, agent, choice)
    request = AskRequest(choice, agent, _settings(set_ or []), asking.budget(), rules, trace, follow_up, otlp)
    if dry_run:
        _show_forecast(asked, environment, choice, agent, request, as_json=json)
        return
    if some := videos_left_out(agent, request.settings or {}, len(environment.videos)):
        tell(f"{some}; --all asks about each")
    options.announce(choice)
    with _watch(quiet=json, verbose=verbose) as on_event:
        answer = answer_now(environment, asked, replace(request, on_event=on_event))
    clips = [] if clip is None else _cut(answer, asked, environment, clip)
    _show(answer, environment, trace, clips, as_json=json)
    if answer.senseless:
        raise NoUsableReply(answer.reason)


@contextmanager
def _watch(*, quiet: bool, verbose: bool) -> Iterator[Callable[[Event], None] | None]:
    """Show how a run goes: every step if `verbose`, else which round it is in, on a terminal alone."""
    from kinodex.cli.tree_view import TreeView

    err = error_console()
    if quiet or not (verbose or err.is_terminal):
        yield None
    elif verbose:
        yield TreeView(console())
    else:
        with err.status("searching") as line:

            def show_round(event: Event) -> None:
                if number := getattr(event, "round", 0):
                    line.update(f"searching, round {number}")

            yield show_round


def _ask_all(
    library: Library,
    asked: Question,
    request: AskRequest,
    plan: Path | None,
    videos: Sequence[str],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    from kinodex.collection import answer_all, bill_all, read_plan
    from kinodex.jobs.collection import plan_facts, plan_words

    given = None if plan is None else read_plan(plan)
    if dry_run:
        from kinodex.jobs.costs import table

        known, plan_from, films, costs = bill_all(library, asked, request, given, videos)
        if as_json:
            rows = [asdict(each) for each in costs]
            print_json({"plan": plan_facts(known), "plan_from": plan_from, "films": len(films), "costs": rows})
            return
        say(visible(plan_words(known, plan_from)))
        if plan_from == "default":
            say("The model writes a plan of its own first, which may cost more or less.")
        say(table(costs, "requests"))
        return
    options.announce(cast("ModelChoice", request.models))
    answer = answer_all(library, asked, request if as_json else replace(request, on_event=_steps()), given, videos)
    if as_json:
        facts = asdict(replace(answer, plan=None)) | {"plan": answer.plan and plan_facts(answer.plan)}
        print_json(facts | {"trace": request.trace and str(request.trace)})
        return
    say(visible_lines(answer.text or f"no film was looked at; {answer.reason}"))
    for film in answer.films[:FILMS_SHOWN]:
        moments = ", ".join(f"{clock(each.start_s)} to {clock(each.end_s)}" for each in film.moments)
        say(f"  {visible(film.title)}: {film.times} ({moments})")
    ledger = answer.ledger
    replies = f"{ledger.calls:,} calls, {ledger.invalid_replies:,} of them without a usable reply"
    say(f"{replies}, {ledger.tokens:,} tokens, cost {ledger.cost:.4g}")
    say(f"rows      kinodex sql {shlex.quote(library.uri)} 'SELECT * FROM {answer.extract.partition('@')[0]}'")


FILMS_SHOWN = 50


def _steps() -> Callable[[Event], None]:
    """Show the steps of a question to all films; of the films one line in a while."""
    from kinodex.agent.trace import Acted

    offer = print_every(error_console())

    def show(event: Event) -> None:
        if isinstance(event, Acted) and event.action == "look":
            offer(lambda seconds: visible(event.words))
        elif isinstance(event, Acted):
            tell(visible(event.words))

    return show


def _cut(answer: Answer, query: Question, environment: Environment, out: Path) -> list[JoinedClip]:
    from kinodex.jobs.export.media import join_clips
    from kinodex.jobs.export.moments import PLAYED, Moment, arranged

    library = open_library(environment.source.uri)
    moments = [
        Moment(library.video(each.video_id), each.start_s, each.end_s, query.text, None, "evidence")
        for each in answer.evidence
    ]
    return join_clips(library, arranged(moments, PLAYED, library.segments), out)


def _check_writable(trace: Path | None) -> None:
    """Refuse a trace that could not be written, as the run would; what is there stays as it is."""
    from kinodex.answers import unwritable

    if trace is None:
        return
    is_new = not trace.exists()
    try:
        trace.open("a").close()
    except OSError as error:
        raise unwritable(trace, error.strerror) from error
    if is_new:
        trace.unlink()


def _settings(pairs: list[str]) -> dict[str, str]:
    settings = {}
    for each in pairs:
        name, separator, value = each.partition("=")
        if not separator:
            raise UsageError(f"got --set {each}; write it as NAME=VALUE (`kinodex agents` shows the names)")
        settings[name.strip().replace("-", "_")] = value.strip()
    return settings


def _check_files(trace: Path | None, after: Path | None, clip: Path | None) -> None:
    if clip is not None:
        from kinodex.jobs.export.media import check_clip_path

        check_clip_path(clip)
    if trace is not None and after is not None and trace.resolve() == after.resolve():
        raise UsageError(f"got {trace} for both --trace and --follow-up, which would overwrite it; give a new file")


def _show_forecast(
    question: Question, environment: Environment, choice: ModelChoice, agent: str, request: AskRequest, as_json: bool
) -> None:
    from kinodex.agent.trace import ReplayModel, read_prior_evidence
    from kinodex.jobs.costs import table
    from kinodex.jobs.forecast import forecast_question
    from kinodex.jobs.models import REPLAY

    if choice.is_replay:
        ReplayModel(Path(choice.model.removeprefix(REPLAY)))
    _check_writable(request.trace)
    prior = None if request.follow_up is None else read_prior_evidence(request.follow_up, environment)
    settings = request.settings or {}
    forecast = forecast_question(question, environment, choice, agent, settings, request.budget, request.rules, prior)
    if as_json:
        print_json(asdict(forecast))
    else:
        say(table([forecast]))


def _show(
    answer: Answer, environment: Environment, trace: Path | None, clips: Sequence[JoinedClip], as_json: bool
) -> None:
    from kinodex.cli.tree_view import show_answer

    if as_json:
        files = [{"path": str(each.path), "title": each.title, "error": each.error} for each in clips]
        print_json(asdict(answer) | {"letter": answer.letter, "trace": trace and str(trace), "clips": files})
        return
    show_answer(answer, environment.videos, console())
    if trace is not None:
        say(f"trace     {trace}")
    for each in clips:
        if each.error:
            tell(f"no clip: {visible_lines(each.error)}")
        else:
            say(f"clip      {visible(str(each.path))}")


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

    chosen = VARIANTS if name is None else (find_variant(name),)
    if json:
        print_json([_plain(each) for each in chosen])
    elif name is None:
        _show_all(chosen)
    else:
        _show_one(chosen[0])


def _plain(each: Variant) -> dict[str, Any]:
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
