"""The options of `kinodex export`: those that choose moments, and those of single kinds, each with its kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from kinodex.cli.options import FromOption, ToOption, VideoOption, WhereOption, open_library, time_option
from kinodex.index.kinds import WORDED_KINDS
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from kinodex.index.library import Library
    from kinodex.jobs.export.moments import Moment

FOR = "For "
"""Beginning of the panel of `--help` with the options of some kinds; the rest are their names."""


@dataclass(frozen=True)
class MomentOptions:
    """The options that choose moments, for `with_groups`."""

    ranges: Annotated[
        Path | None,
        typer.Option(help="Ranges from a .csv or .jsonl file: columns video, start_s, end_s, label, score."),
    ] = None
    search: Annotated[str | None, typer.Option(help="The hits of a search for these words.")] = None
    hits: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of hits of --search.")] = 10
    trace: Annotated[
        list[Path] | None,
        typer.Option(
            help="The evidence of the answer in this trace of `kinodex ask --trace`; may be repeated. With page: a "
            "trace, or a run of `kinodex eval`, to show."
        ),
    ] = None
    from_sql: Annotated[
        str | None,
        typer.Option(help="The rows of this SELECT: columns video_id, start_s, end_s, label, score (`kinodex sql`)."),
    ] = None
    of: Annotated[
        str | None,
        typer.Option(help=f"What the library holds: videos, shots, scenes, {', '.join(WORDED_KINDS)}."),
    ] = None
    video: VideoOption = None
    where: WhereOption = None
    from_s: FromOption = None
    to_s: ToOption = None
    label: Annotated[str, typer.Option(help="Label of the range that --video, --from and --to name.")] = ""
    pad: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Seconds to add before and after each.",
            show_default="2 and 0 for hits and evidence in clips, subtitles and edits, else none",
        ),
    ] = None
    join: Annotated[
        float | None,
        typer.Option(
            help="Make one of those at most this many seconds apart; 0: that touch; -1: none.", show_default=False
        ),
    ] = None
    snap: Annotated[bool, typer.Option("--snap", help="End at cuts: padding shows no other shot.")] = False

    def choose(self, library: Library, usual_rows: str | None, is_watched: bool = False) -> list[Moment]:
        """Find the moments; without an option that names some, those of `usual_rows`. Raises as `choose_moments`."""
        from kinodex.jobs.export.moment_choice import MomentChoice, choose_moments

        given = {**vars(self), "trace": tuple(self.trace or ()), "video": tuple(self.video or ())}
        return choose_moments(library, MomentChoice(*given.values()), usual_rows, is_watched)


def only(*kinds: str) -> Any:
    """Begin the declaration of an option that only these kinds have."""
    return partial(typer.Option, rich_help_panel=f"{FOR}{', '.join(kinds)}")


CLIPS, FRAMES, EDITS, HF = only("clips"), only("frames"), only("edl", "otio"), only("hf")


@dataclass(frozen=True)
class KindOptions:
    """The options that only some kinds have, for `with_groups`."""

    exact: Annotated[
        bool, CLIPS("--exact", help="Cut to the frame, by encoding again; else at key frames, without loss.")
    ] = False
    reel: Annotated[bool, CLIPS("--reel", help="One file a video, its ranges one after another, cut to the frame.")] = (
        False
    )
    subtitles: Annotated[bool, CLIPS(help="Add what is said as a text track.")] = True
    most: Annotated[int | None, FRAMES(min=1, help="At most this many frames of a moment, evenly spread.")] = None
    at: Annotated[
        list[float] | None,
        time_option(
            "--at",
            help="The frame at this time, 90.5 or 1:30.5, of one video; may be repeated.",
            rich_help_panel=f"{FOR}frames",
        ),
    ] = None
    every: Annotated[
        float | None, FRAMES("--every", help="From --from to --to, one frame every this many seconds, of one video.")
    ] = None
    mode: Annotated[str, FRAMES(help="With --at: nearest, exact, or shown (the frame on screen at that time).")] = (
        "nearest"
    )
    fps: Annotated[
        float | None, EDITS(help="Frames a second of the edit.", show_default="that of the videos, else 25")
    ] = None
    title: Annotated[str, EDITS(help="Title of the edit.")] = "kinodex"
    drop_frame: Annotated[
        bool | None,
        only("edl")(
            "--drop-frame/--non-drop-frame", help="Counting of timecode.", show_default="drop at 29.97 and 59.94"
        ),
    ] = None
    url_prefix: Annotated[
        str | None,
        only("label-studio")(help="Address before the name of each video's file, such as /data/local-files/?d=films/."),
    ] = None
    boxes: Annotated[
        bool,
        only("label-studio")(help="Add the detections and the text on screen within the moments as boxes."),
    ] = True
    min_score: Annotated[float, only("coco")(min=0.0, max=1.0, help="Least score of a detection.")] = 0.0
    screen_text: Annotated[bool, only("coco")("--screen-text", help="Text on screen instead of detections.")] = False
    space: Annotated[
        str | None, HF(help="Vectors of this space of the library: a name or digest. Default: its own.")
    ] = None
    vectors: Annotated[str, HF(help="Numbers of the vectors: float16, float32, or none.")] = "float16"
    shard_frames: Annotated[int, HF(min=1, help="A file holds whole videos of at most this many frames.")] = 10_000
    split: Annotated[str, HF(help="Name of the split.")] = "train"
    overwrite: Annotated[
        bool,
        only("vtt", "srt", "edl", "otio", "csv", "jsonl", "page")("--overwrite", help="Replace a file that is there."),
    ] = False
    json: Annotated[
        bool,
        only("clips", "frames", "label-studio", "coco", "fiftyone", "hf")(
            "--json", help="Print JSON instead of a line."
        ),
    ] = False

    def check(self, kind: str) -> None:
        """Raise UsageError for an option that is given and is none of this kind."""
        for _, spelling, option in given(self):
            kinds = option.rich_help_panel.removeprefix(FOR)
            if kind not in kinds.split(", "):
                raise UsageError(f"got {spelling} with {kind}; it is for {kinds}")


def given(options: MomentOptions | KindOptions) -> Iterator[tuple[str, str, Any]]:
    """Yield the options that are not as usual: their names, how they are typed, and their declarations."""
    hints = get_type_hints(type(options), include_extras=True)
    for each in fields(options):
        if getattr(options, each.name) != each.default:
            (option,) = hints[each.name].__metadata__
            # In an annotation typer takes the first name for the default, until it reads the command.
            names = [name for name in (option.default, *(option.param_decls or ())) if isinstance(name, str)]
            yield each.name, next(iter(names), f"--{each.name.replace('_', '-')}").partition("/")[0], option


@dataclass(frozen=True)
class Order:
    """One export: the library, or for `page` any trace or run in its place; where to; and the options."""

    place: str
    to: str
    moments: MomentOptions
    kind: KindOptions
    usual_rows: str | None = None
    """The moments of a library where no option names any: a name of `--of`."""
    is_watched: bool = False

    @cached_property
    def library(self) -> Library:
        return open_library(self.place)

    @property
    def folder(self) -> Path:
        return Path(self.to)

    def chosen(self) -> list[Moment]:
        return self.moments.choose(self.library, self.usual_rows, self.is_watched)

    def write(self, text: str) -> None:
        """Write the text to the file; raises UsageError where one is there already, or cannot be written."""
        from kinodex.jobs.export.text_files import write_text

        write_text(self.to, text, self.kind.overwrite)
