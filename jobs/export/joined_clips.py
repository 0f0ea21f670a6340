"""Moments of each video joined into one film, in time order and with the transcript as subtitles."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kinodex.index.library import LibraryReader
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.clips import MANIFEST
from kinodex.jobs.export.cutting import Cut, clip_failure, cut_exactly
from kinodex.jobs.export.file_names import distinct, file_stem
from kinodex.jobs.export.moments import Moment, by_video, in_time_order, moment_facts
from kinodex.jobs.export.tables import table_text
from kinodex.jobs.export.target_folder import target_folder
from kinodex.jobs.export.text_files import check_free
from kinodex.jobs.export.video_files import video_file


@dataclass(frozen=True, slots=True)
class JoinedClip:
    """A film of the ranges of one video, or the `error` why there is none."""

    path: Path
    title: str
    ranges: tuple[tuple[float, float], ...]
    error: str = ""


def check_clip_path(out: Path) -> None:
    """Raise UsageError for a name that is no .mp4, for a file that is there, and for a folder that is not."""
    if out.suffix.lower() != ".mp4":
        raise UsageError(f"got {out}; a clip is an .mp4: give such a name")
    check_free(out, overwrite=False)
    if not out.parent.is_dir():
        raise UsageError(f"got {out}, whose folder is not there; make it first")


def join_clips(library: LibraryReader, moments: Sequence[Moment], out: Path) -> list[JoinedClip]:
    """Write the moments of each video, in time order and with the transcript as subtitles, as one file a video.

    Moments that overlap are joined; of several videos the files are `out` with -1, -2 and so on. A video that cannot be
    cut gives an entry with an error.
    """
    groups = by_video(moments)
    numbered = [out.with_name(f"{out.stem}-{number}{out.suffix}") for number in range(1, len(groups) + 1)]
    paths = [out] if len(groups) == 1 else numbered
    for path in paths:
        check_clip_path(path)
    return [_joined(library, group, path) for group, path in zip(groups.values(), paths, strict=True)]


def export_joined(library: LibraryReader, moments: Sequence[Moment], folder: Path) -> list[JoinedClip]:
    """Write the films of `join_clips` and a table, `clips.csv`, into a folder that is new or empty."""
    groups = list(by_video(moments).values())
    names = [f"{stem}.mp4" for stem in distinct(file_stem(group[0].video.title) for group in groups)]
    with target_folder(folder, {"joined": True, **moment_facts(moments)}, dict) as target:
        made = [_joined(library, each, target.work / name) for each, name in zip(groups, names, strict=True)]
        rows = [asdict(each) | {"path": "" if each.error else each.path.name} for each in made]
        target.write_bytes(MANIFEST, table_text([*JoinedClip.__slots__], rows))
        target.finish(*(each.path.name for each in made if not each.error), MANIFEST)
    return [replace(each, path=folder / each.path.name) for each in made]


def _joined(library: LibraryReader, moments: Sequence[Moment], out: Path) -> JoinedClip:
    video, ranges = moments[0].video, merged_ranges(moments)
    try:
        with video_file(library, video) as path, tempfile.TemporaryDirectory(dir=out.parent, prefix=".clip-") as work:
            cut: Cut = cut_exactly(library, video, path, Path(work) / "clip", ranges, subtitles=True)
            cut.path.replace(out)
    except Exception as error:
        return JoinedClip(out, video.title, ranges, clip_failure(error))
    return JoinedClip(out, video.title, tuple((each.start_s, each.end_s) for each in cut.ranges))


def merged_ranges(moments: Sequence[Moment]) -> tuple[tuple[float, float], ...]:
    """List the ranges of moments of one video in time order, those that touch as one."""
    ranges: list[tuple[float, float]] = []
    for each in in_time_order(moments):
        if ranges and each.start_s <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], each.end_s)
        else:
            ranges.append((each.start_s, each.end_s))
    return tuple(ranges)
