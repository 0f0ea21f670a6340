"""`kinodex watch`: a video of the web and a question about it; or a source that grows, and what is to be told of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.agent.limits.budget import UNLIMITED
from kinodex.cli import model_options
from kinodex.cli.ask import answer_and_show
from kinodex.cli.from_models import with_groups
from kinodex.cli.options import JsonOption
from kinodex.index.terminal_text import visible, visible_lines
from kinodex.index.times import clock
from kinodex.jobs.errors import UsageError
from kinodex.output import print_json, say, tell
from kinodex.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kinodex.jobs.live.source import NewRows
    from kinodex.jobs.standing_queries import StandingQueries

PANEL = "A source that grows"


@dataclass(frozen=True)
class Growing:
    """Options of a source that grows, for `with_groups`."""

    live: Annotated[
        bool,
        typer.Option(
            "--live", help="It grows: index what comes until Ctrl-C. rtsp:// always does.", rich_help_panel=PANEL
        ),
    ] = False
    query: Annotated[
        list[str] | None,
        typer.Option(
            help="Tell of each moment that shows this, once; repeat it for more. Without --notify, on stdout.",
            rich_help_panel=PANEL,
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Least probability of a moment (default 0.5); in spaces without one, least cosine.",
            rich_help_panel=PANEL,
        ),
    ] = None
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Have --model look first, and tell only of what it confirms.", rich_help_panel=PANEL
        ),
    ] = False
    notify: Annotated[
        str | None,
        typer.Option(metavar="URL", help="POST each moment to this address, as JSON.", rich_help_panel=PANEL),
    ] = None
    pictures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep the frame of each moment here.", rich_help_panel=PANEL),
    ] = None
    name: Annotated[
        str, typer.Option(help="A name for the source.", show_default="its address", rich_help_panel=PANEL)
    ] = ""
    part: Annotated[
        float,
        typer.Option(min=0.5, help="Minutes after which a stream goes on as another video.", rich_help_panel=PANEL),
    ] = 60.0
    stall: Annotated[
        float,
        typer.Option(
            min=1.0,
            help="Seconds without anything new, after which a file has ended and a stream is opened again.",
            rich_help_panel=PANEL,
        ),
    ] = 15.0
    fps: Annotated[
        float | None,
        typer.Option(help="Frames sampled a second.", show_default="the library's own, else 1", rich_help_panel=PANEL),
    ] = None

    def queries(self, asking: model_options.Asking) -> StandingQueries | None:
        """Return the standing queries, if there are any; raises UsageError for options that would then do nothing."""
        from kinodex.jobs.standing_queries import StandingQueries
        from kinodex.jobs.verification.kept_verdicts import looking_role

        if not self.query:
            if self.notify or self.verify or self.pictures or self.threshold is not None:
                raise UsageError(
                    "got --notify, --verify, --pictures or --threshold without --query; say what to tell of"
                )
            return None
        choice = asking.choice(UNLIMITED) if self.verify else None
        if choice is not None:
            looking_role(choice)
        if self.pictures is not None:
            self.pictures.mkdir(parents=True, exist_ok=True)
        return StandingQueries(
            tuple(self.query), self.threshold, verify=choice, notify=self.notify, pictures=self.pictures
        )


USUAL = Growing()


@with_groups
def watch(
    address: Annotated[
        str,
        typer.Argument(help="A video's page or file on the web; or a growing file, HLS playlist or rtsp:// address."),
    ],
    question: Annotated[str | None, typer.Argument(help="A question about it; without one it is indexed.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="One of 2 to 26 choices; repeat it for each.")] = None,
    library: Annotated[
        str | None, typer.Option(help="The library to keep it in.", show_default="watched/library in your data")
    ] = None,
    agent: Annotated[str, typer.Option(help="The agent: a name of `kinodex agents`, or FILE.py.")] = "kino",
    growing: Growing = USUAL,
    asking: model_options.Asking = model_options.USUAL,
    json: JsonOption = False,
) -> None:
    """Index a video of the web and ask about it; or, with --live, a source that grows, and be told what it shows.

    A video, once: kinodex watch https://example.com/film.mp4 "What colour is the boat?" It is indexed with its
    subtitles and chapters; again, nothing is fetched twice. Pages are read by yt-dlp (the extra `watch`).

    A camera, an HLS playlist or a file that is being written, until Ctrl-C: kinodex watch rtsp://camera/door --query
    "a parcel at the door" --notify http://127.0.0.1:8080/told. Its frames are found within seconds, each moment is told
    once.
    """
    from kinodex.pipeline.live.beats import is_live_address
    from kinodex.watch import watch as index_page
    from kinodex.watch import watched_place

    place = library or str(watched_place() / "library")
    if growing.live or is_live_address(address):
        if question is not None or option:
            raise UsageError("got a question about a source that grows; give --query, or ask the library meanwhile")
        settings = {"space": asking.space, "fps": growing.fps}
        _watch_live(address, place, growing, growing.queries(asking), json, settings)
        return
    if growing != USUAL:
        raise UsageError("got an option of a source that grows without --live; give it too, or leave the option out")
    video = index_page(address, place, **({"space": asking.space} if asking.space else {}))
    tell(f"{visible(video.title)}: {video.frames} frames in {place}")
    if question is not None:
        from kinodex.requests import Ask
        from kinodex.runs import Run

        asked = Ask(question=question, options=tuple(option or ()), videos=(video.video_id,), agent=agent)
        answer_and_show(place, asked, asking, Run(), as_json=json)


def _watch_live(
    address: str,
    place: str,
    growing: Growing,
    queries: StandingQueries | None,
    as_json: bool,
    settings: Mapping[str, Any],
) -> None:
    from kinodex.cli.ingest import stop_on_interrupt
    from kinodex.live import watch_live

    def show(rows: NewRows) -> None:
        for notice in rows.notices:
            if queries is not None and not queries.notify:
                _print(notice if as_json else _told(notice), as_json)
        if as_json:
            _print({"video_id": rows.video.video_id, "title": rows.video.title, "frames": rows.frames,
                    "start_s": rows.video.start_s, "end_s": rows.video.end_s, **rows.columns}, True)  # fmt: skip
        elif rows.is_first:
            gap = f", {rows.columns['gap_s']:.1f} s missing before it" if rows.columns["gap_s"] else ""
            tell(f"{visible(rows.video.title)}: begins{gap}")

    def wait(reason: str) -> None:
        tell(f"waiting: {visible_lines(redact(reason))}")

    with stop_on_interrupt() as pause:
        watch_live(
            address,
            place,
            name=growing.name,
            queries=queries,
            stop=lambda: pause.pressed > 0,
            on_rows=show,
            on_wait=wait,
            part_s=growing.part * 60,
            stall_s=growing.stall,
            **{name: value for name, value in settings.items() if value is not None},
        )


def _print(line: Any, as_json: bool) -> None:
    if as_json:
        print_json(line, indent=None)
    else:
        say(line)


def _told(notice: dict[str, Any]) -> str:
    sure = "" if notice["probability"] is None else f" (probability {notice['probability']:.2f})"
    why = f": {notice['reason']}" if notice["reason"] else ""
    return visible(
        f"{notice['recorded_at']} {notice['query']!r} at {clock(notice['start_s'])} of {notice['title']}{sure}{why}"
    )
