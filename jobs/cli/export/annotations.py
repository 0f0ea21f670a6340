"""`kinodex export label-studio`, `coco` and `fiftyone`: moments and detections as annotations."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import typer

from jobs.cli.options.library import JsonOption, LibraryArgument
from jobs.cli.options.moments import FolderArgument, MomentOptions, with_moments


@with_moments
def label_studio(
    library: LibraryArgument,
    folder: FolderArgument,
    moments: MomentOptions,
    url_prefix: Annotated[
        str | None,
        typer.Option(help="Address before the name of each video's file, such as /data/local-files/?d=films/."),
    ] = None,
    boxes: Annotated[
        bool, typer.Option(help="Add the detections and the text on screen within the moments as boxes.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Write tasks of Label Studio: tasks.json, and config.xml for its labelling interface. Default: the shots."""
    from index.library import Library
    from jobs.console.output import counted
    from jobs.export.annotations.label_studio import export_label_studio

    opened = Library.open(library)
    report = export_label_studio(opened, moments.choose(opened, "shots"), folder, url_prefix, boxes)
    text = f"{counted(report.tasks, 'task')}, {counted(report.moments, 'range')}, {report.boxes:,} boxes"
    _show(asdict(report), text, str(folder), as_json=json)


@with_moments
def coco(
    library: LibraryArgument,
    folder: FolderArgument,
    moments: MomentOptions,
    min_score: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least score of a detection.")] = 0.0,
    text: Annotated[bool, typer.Option("--text", help="Text on screen instead of detections.")] = False,
    json: JsonOption = False,
) -> None:
    """Write detections as COCO: annotations.json, and the frames in images/. --label: those of one label alone."""
    from index.library import Library
    from jobs.console.output import counted
    from jobs.export.annotations.coco import export_coco

    opened = Library.open(library)
    chosen = replace(moments, label="").choose(opened, "videos")
    report = export_coco(opened, chosen, folder, moments.label or None, min_score, text)
    found = f"{report.annotations:,} boxes of text" if text else counted(report.annotations, "detection")
    line = f"{found} in {counted(report.images, 'frame')}, {report.categories} labels"
    _show(asdict(report), line, str(folder), as_json=json)


@with_moments
def fiftyone(
    library: LibraryArgument,
    folder: FolderArgument,
    moments: MomentOptions,
    json: JsonOption = False,
) -> None:
    """Write moments as a data set that FiftyOne imports (FiftyOneTemporalDetectionDataset). Default: the shots."""
    from index.library import Library
    from jobs.console.output import counted
    from jobs.export.annotations.fiftyone import export_fiftyone
    from jobs.export.media.video_file import edit_facts_of

    opened = Library.open(library)
    chosen = moments.choose(opened, "shots")
    facts = edit_facts_of(opened, (each.video for each in chosen))
    videos = export_fiftyone(chosen, folder, {video_id: each.times_s for video_id, each in facts.items()})
    text = f"{counted(len(chosen), 'range')} of {counted(videos, 'video')}"
    _show({"videos": videos, "moments": len(chosen)}, text, str(folder), as_json=json)


def _show(report: dict[str, int], text: str, folder: str, as_json: bool) -> None:
    from jobs.console.escape import visible
    from jobs.console.output import print_json

    if as_json:
        print_json({"folder": folder, **report})
    else:
        print(f"{text} in {visible(folder)}")
