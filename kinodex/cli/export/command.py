"""`kinodex export KIND`: videos of a library, and moments in them, as files for other programs.

A kind is a row of `KINDS`; its options are those of `MomentOptions` that it takes, and those of `KindOptions` that
name it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated

import typer

from kinodex.cli.export.annotations import write_coco, write_fiftyone, write_label_studio
from kinodex.cli.export.clips import write_clips
from kinodex.cli.export.data_set import write_hf
from kinodex.cli.export.frames import write_frames
from kinodex.cli.export.options import KindOptions, MomentOptions, Order, given
from kinodex.cli.export.page import write_page
from kinodex.cli.export.texts import write_csv, write_edl, write_jsonl, write_otio, write_srt, write_vtt
from kinodex.cli.from_models import with_groups
from kinodex.cli.meant import as_meant, meant
from kinodex.cli.options import LibraryArgument
from kinodex.jobs.errors import UsageError

EVERY_MOMENT = frozenset(each.name for each in fields(MomentOptions))
TO_STDOUT = "-"


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    line: str
    write: Callable[[Order], None]
    usual_rows: str | None = None
    """The moments where no option names any: a name of `--of`."""
    is_watched: bool = False
    """For people who watch the moments, which are padded (see `kinodex.jobs.export.moment_choice.MomentChoice`)."""
    to_folder: bool = True
    moments: frozenset[str] = EVERY_MOMENT
    """The options that choose moments which it takes."""


DEFAULT = {"shots": " Default: the shots.", "speech": " Default: what is said."}
KINDS = {
    "clips": Kind(
        "moments cut out of the videos' own files, with their sound: a file each, and clips.csv. Exits with 3 if some "
        "could not be cut; clips.csv says why",
        write_clips,
        is_watched=True,
    ),
    "frames": Kind(
        "stored frames as JPEGs: of moments, with frames.csv, or of one video at times (--at, --every)",
        write_frames,
    ),
    "vtt": Kind(
        "WebVTT subtitles, or chapters (--of chapters). Several videos: a folder",
        write_vtt,
        "speech",
        is_watched=True,
        to_folder=False,
    ),
    "srt": Kind(
        "SubRip subtitles. Several videos: a folder",
        write_srt,
        "speech",
        is_watched=True,
        to_folder=False,
    ),
    "edl": Kind(
        "an edit decision list (CMX 3600), a cut a moment", write_edl, "shots", is_watched=True, to_folder=False
    ),
    "otio": Kind(
        "a time line of OpenTimelineIO, a clip a moment", write_otio, "shots", is_watched=True, to_folder=False
    ),
    "csv": Kind("a table of moments, which --ranges reads again", write_csv, "shots", to_folder=False),
    "jsonl": Kind("moments as JSON lines, which --ranges reads again", write_jsonl, "shots", to_folder=False),
    "label-studio": Kind(
        "tasks of Label Studio: tasks.json, and config.xml for its labelling interface",
        write_label_studio,
        "shots",
    ),
    "coco": Kind(
        "detections as COCO: annotations.json, and the frames in images/. --label: only those of one label",
        write_coco,
        "videos",
    ),
    "fiftyone": Kind(
        "moments as a data set that FiftyOne imports (FiftyOneTemporalDetectionDataset)", write_fiftyone, "shots"
    ),
    "hf": Kind(
        "frames as a dataset of Hugging Face, Parquet files and a card: `datasets.load_dataset(FOLDER)` opens it",
        write_hf,
        moments=frozenset({"video", "where"}),
    ),
    "page": Kind(
        "the pages of `kinodex serve` as one HTML file to send: of a library (or a trace or a run in its place), and "
        "of each --trace",
        write_page,
        to_folder=False,
        moments=frozenset({"trace"}),
    ),
}


@with_groups
def export(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"What is written: {', '.join(KINDS)}.")],
    library: LibraryArgument,
    moments: MomentOptions,
    options: KindOptions,
    to: Annotated[
        str | None,
        typer.Argument(metavar="FOLDER|FILE", help="A folder that is new or empty; a file, or - for standard output."),
    ] = None,
) -> None:
    chosen = _kind(kind)
    _check(kind, chosen, moments)
    options.check(kind)
    if to is None and chosen.to_folder:
        raise UsageError(f"got no folder for {kind}; give one that is new or empty")
    chosen.write(Order(library, to or TO_STDOUT, moments, options, chosen.usual_rows, chosen.is_watched))


export.__doc__ = "\n\n".join(
    (
        "Write videos of a library, or moments in them, as files for other programs.",
        *(f"{name}: {each.line}.{DEFAULT.get(each.usual_rows or '', '')}" for name, each in KINDS.items()),
        "Run again after it was interrupted, an export to a folder goes on.",
    )
)


def _kind(name: str) -> Kind:
    """Return the kind of a name; raises UsageError with what is meant where it is known."""
    if name in KINDS:
        return KINDS[name]
    if command := meant("export", name):
        raise as_meant(f"export {name}", command)
    raise UsageError(f"got the kind {name!r}; it is one of {', '.join(KINDS)}")


def _check(name: str, kind: Kind, moments: MomentOptions) -> None:
    """Raise UsageError for an option that chooses moments where the kind takes no such one."""
    for option, spelling, _ in given(moments):
        if option not in kind.moments:
            taken = " and ".join(f"--{each}" for each in sorted(kind.moments))
            raise UsageError(f"got {spelling} with {name}, which takes only {taken}")
