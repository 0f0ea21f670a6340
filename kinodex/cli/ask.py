"""`kinodex ask`: ask a question and watch the search."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from kinodex.cli import model_options, options
from kinodex.cli.from_models import with_groups
from kinodex.cli.model_options import OtlpOption
from kinodex.cli.options import JsonOption, LibraryArgument
from kinodex.index.terminal_text import visible, visible_lines
from kinodex.index.times import clock
from kinodex.jobs.errors import UsageError
from kinodex.output import console, error_console, print_every, print_json, say, tell
from kinodex.requests import Ask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kinodex.agent.answer import Answer
    from kinodex.agent.traces.events import Event
    from kinodex.desk import Desk
    from kinodex.index.library import LibraryReader
    from kinodex.jobs.export.joined_clips import JoinedClip
    from kinodex.jobs.models import ModelChoice
    from kinodex.runs import Run


@with_groups
def ask(
    library: LibraryArgument,
    request: Ask,
    asking: model_options.Asking = model_options.USUAL,
    trace: Annotated[Path | None, typer.Option(help="Write all events of the run to this file, as JSON lines.")] = None,
    clip: Annotated[
        Path | None,
        typer.Option(metavar="FILE.mp4", help="Cut the evidence out of the video's file; of several: FILE-1.mp4, ..."),
    ] = None,
    otlp: OtlpOption = None,
    dry_run: model_options.DryRunOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show each step of the search, too.")] = False,
    json: JsonOption = False,
) -> None:
    """Ask a question about a library's videos. Exits with 0 if the run ended in order, whatever the answer.

    Agents look at the 16 videos that fit the question best. With --agent all a model plans a table, each film is looked
    at by itself (--set candidates=100 of them), and its rows answer; ask again to go on where it ended. Exits with 6 if
    no reply of the models could be used.
    """
    from kinodex.desk import ALL_FILMS
    from kinodex.runs import Run

    if request.plan is not None and request.agent != ALL_FILMS:
        raise UsageError("got --plan, which is for a question to all films; give --agent all too")
    _check_files(trace, request.follow_up, clip)
    answer_and_show(library, request, asking, Run(trace, otlp), clip, dry_run=dry_run, verbose=verbose, as_json=json)


def answer_and_show(
    library: str,
    request: Ask,
    asking: model_options.Asking,
    run: Run,
    clip: Path | None = None,
    *,
    dry_run: bool = False,
    verbose: bool = False,
    as_json: bool = False,
) -> None:
    """Answer a question about the library at a place, and show the answer, or what it would cost."""
    from kinodex.agent.errors import NoUsableReply
    from kinodex.desk import ALL_FILMS, Desk
    from kinodex.jobs.models import run_now
    from kinodex.questions import question_of

    question_of(request)
    choice = asking.choice(request.budget)
    desk = Desk(options.open_library(library), choice, space=asking.space, detector=asking.detector)
    if request.agent == ALL_FILMS:
        _ask_all(desk, request, run, dry_run=dry_run, as_json=as_json)
        return
    desk.check(request)
    if dry_run:
        _show_forecast(desk, request, run.trace, as_json=as_json)
        return
    if some := desk.left_out(request):
        tell(f"{some}; --agent all asks about each")
    model_options.announce(choice)
    with _watch(quiet=as_json, verbose=verbose) as on_event:
        answer = run_now(desk.ask(request, replace(run, on_event=on_event)))
    clips = [] if clip is None else _cut(answer, request, desk.library, clip)
    _show(answer, desk, request, run.trace, clips, as_json=as_json)
    if answer.senseless:
        raise NoUsableReply(answer.reason)


@contextmanager
def _watch(*, quiet: bool, verbose: bool) -> Iterator[Callable[[Event], None] | None]:
    """Show how a run goes: every step if `verbose`, else which round it is in, only on a terminal."""
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


def _ask_all(desk: Desk, request: Ask, run: Run, *, dry_run: bool, as_json: bool) -> None:
    from kinodex.jobs.collection.plan import plan_facts, plan_words

    if dry_run:
        from kinodex.jobs.costs import table

        known, plan_from, films, costs = desk.bill(request)
        if as_json:
            rows = [asdict(each) for each in costs]
            print_json({"plan": plan_facts(known), "plan_from": plan_from, "films": len(films), "costs": rows})
            return
        say(visible(plan_words(known, plan_from)))
        if plan_from == "default":
            say("The model writes a plan of its own first, which may cost more or less.")
        say(table(costs, "requests"))
        return
    model_options.announce(cast("ModelChoice", desk.models))
    answer = desk.ask_all(request, run if as_json else replace(run, on_event=_steps()))
    if as_json:
        facts = asdict(replace(answer, plan=None)) | {"plan": answer.plan and plan_facts(answer.plan)}
        print_json(facts | {"trace": run.trace and str(run.trace)})
        return
    say(visible_lines(answer.text or f"no film was looked at; {answer.reason}"))
    for film in answer.films[:FILMS_SHOWN]:
        moments = ", ".join(f"{clock(each.start_s)} to {clock(each.end_s)}" for each in film.moments)
        say(f"  {visible(film.title)}: {film.times} ({moments})")
    ledger = answer.ledger
    replies = f"{ledger.calls:,} calls, {ledger.invalid_replies:,} of them without a usable reply"
    say(f"{replies}, {ledger.tokens:,} tokens, cost {ledger.cost:.4g}")
    table_name = answer.extract.partition("@")[0]
    say(f"rows      kinodex sql {shlex.quote(desk.library.uri)} 'SELECT * FROM {table_name}'")


FILMS_SHOWN = 50


def _steps() -> Callable[[Event], None]:
    """Show the steps of a question to all films; of the films one line in a while."""
    from kinodex.agent.traces.events import Acted

    offer = print_every(error_console())

    def show(event: Event) -> None:
        if isinstance(event, Acted) and event.action == "look":
            offer(lambda seconds: visible(event.words))
        elif isinstance(event, Acted):
            tell(visible(event.words))

    return show


def _cut(answer: Answer, request: Ask, library: LibraryReader, out: Path) -> list[JoinedClip]:
    from kinodex.jobs.export.joined_clips import join_clips
    from kinodex.jobs.export.moment_rule import PLAYED, arranged
    from kinodex.jobs.export.moments import Moment

    moments = [
        Moment(library.video(each.video_id), each.start_s, each.end_s, request.question, None, "evidence")
        for each in answer.evidence
    ]
    return join_clips(library, arranged(moments, PLAYED, library.segments), out)


def _check_writable(trace: Path | None) -> None:
    """Refuse a trace that could not be written, as the run would; what is there stays as it is."""
    from kinodex.runs import unwritable

    if trace is None:
        return
    is_new = not trace.exists()
    try:
        trace.open("a").close()
    except OSError as error:
        raise unwritable(trace, error.strerror) from error
    if is_new:
        trace.unlink()


def _check_files(trace: Path | None, earlier: str | None, clip: Path | None) -> None:
    if clip is not None:
        from kinodex.jobs.export.joined_clips import check_clip_path

        check_clip_path(clip)
    if trace is not None and earlier is not None and trace.resolve() == Path(earlier).resolve():
        raise UsageError(f"got {trace} for both --trace and --follow-up, which would overwrite it; give a new file")


def _show_forecast(desk: Desk, request: Ask, trace: Path | None, as_json: bool) -> None:
    from kinodex.agent.traces.replay import ReplayModel
    from kinodex.jobs.costs import table
    from kinodex.jobs.models import REPLAY, ModelChoice

    if isinstance(desk.models, ModelChoice) and desk.models.is_replay:
        ReplayModel(Path(desk.models.model.removeprefix(REPLAY)))
    _check_writable(trace)
    (forecast,) = desk.forecast(request)
    if as_json:
        print_json(asdict(forecast))
    else:
        say(table([forecast]))


def _show(
    answer: Answer, desk: Desk, request: Ask, trace: Path | None, clips: Sequence[JoinedClip], as_json: bool
) -> None:
    from kinodex.cli.tree_view import show_answer

    if as_json:
        files = [{"path": str(each.path), "title": each.title, "error": each.error} for each in clips]
        print_json(asdict(answer) | {"letter": answer.letter, "trace": trace and str(trace), "clips": files})
        return
    show_answer(answer, desk.environment(request).videos, console())
    if trace is not None:
        say(f"trace     {trace}")
    for each in clips:
        if each.error:
            tell(f"no clip: {visible_lines(each.error)}")
        else:
            say(f"clip      {visible(str(each.path))}")
