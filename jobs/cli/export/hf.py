"""`kinodex export hf`: frames of a library as a dataset of Hugging Face."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption

if TYPE_CHECKING:
    from jobs.export.huggingface.dataset import HfReport

FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that is new or empty.")]


def hf(
    library: LibraryArgument,
    folder: FolderArgument,
    video: VideoOption = None,
    space: Annotated[
        str | None, typer.Option(help="Vectors of this space of the library: a name or digest. Default: its own.")
    ] = None,
    vectors: Annotated[str, typer.Option(help="Numbers of the vectors: float16, float32, or none.")] = "float16",
    shard_frames: Annotated[int, typer.Option(min=1, help="A file holds whole videos of at most so many frames.")] = (
        10_000
    ),
    split: Annotated[str, typer.Option(help="Name of the split.")] = "train",
    json: JsonOption = False,
) -> None:
    """Write frames as a dataset of Hugging Face: Parquet files and a card; `datasets.load_dataset(FOLDER)` opens it.

    Run again after it was interrupted, it goes on with the files that are missing.
    """
    from index.library import Library
    from jobs.console.output import error_console, print_every
    from jobs.export.huggingface.dataset import HfSettings, export_hf
    from jobs.export.huggingface.features import checked_precision

    settings = HfSettings(checked_precision(vectors), shard_frames, split)
    line = print_every(error_console())

    def on_file(done: int, total: int) -> None:
        line(lambda seconds: f"{done:,} of {total:,} files after {seconds:.0f} s")

    _show(export_hf(Library.open(library), folder, settings, video or (), space, on_file), folder, json)


def _show(report: HfReport, folder: Path, as_json: bool) -> None:
    from jobs.console.escape import visible
    from jobs.console.output import counted, print_json

    if as_json:
        print_json({"folder": str(folder.absolute()), **report._asdict()})
        return
    before = f", {counted(report.files_before, 'file')} of an earlier run kept" if report.files_before else ""
    print(
        f"{counted(report.frames, 'frame')} of {counted(report.videos, 'video')} in {counted(report.files, 'file')}, "
        f"{report.stored_bytes / 1e6:,.1f} MB{before}: load_dataset({visible(str(folder))!r})"
    )
