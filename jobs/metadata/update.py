"""Columns of videos set from tables, from names of paths, and from what lies in and beside their files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.metadata.columns import typed_rows
from kinodex.jobs.metadata.input import MetadataInput
from kinodex.jobs.metadata.row_videos import path_of, values_by_video
from kinodex.pipeline.errors import PipelineError
from kinodex.pipeline.sources import download_info


@dataclass(frozen=True, slots=True)
class MetadataReport:
    """Outcome: videos that were set, the library's columns with their types, and rows that fit no video or several."""

    videos: int
    columns: Mapping[str, str]
    rows: int = 0
    unmatched: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    problems: tuple[str, ...] = field(default=())
    """Files of videos that could not be read for their tags."""


def set_metadata(
    library: Library, given: MetadataInput, videos: Sequence[VideoRow] | None = None, *, from_files: bool = False
) -> MetadataReport:
    """Set the columns of videos, or of all; nothing is set where a value does not fit its column (MetadataConflict).

    Of a column that several name, tables count more than paths, and these more than files, whose headers and
    `.info.json` are read with `from_files`.
    """
    rows = library.videos() if videos is None else list(videos)
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    problems: list[str] = []
    if from_files:
        for row in rows:
            try:
                values[row.video_id] |= tags_of_file(row.uri)
            except PipelineError as error:
                problems.append(str(error))
    if given.pattern is not None:
        found = {row.video_id: match.groupdict() for row in rows if (match := given.pattern.search(path_of(row.uri)))}
        for video_id, groups in typed_rows(found).items():
            values[video_id] |= groups
    fitted, unmatched, ambiguous = values_by_video(given, rows)
    for video_id, row_values in fitted.items():
        values[video_id] |= row_values
    written = library.metadata.write(values, {row.video_id: row.title for row in rows})
    columns = {name: str(kind) for name, kind in library.metadata.columns().items()}
    return MetadataReport(written, columns, len(given.rows), unmatched, ambiguous, tuple(problems))


def tags_of_file(uri: str) -> dict[str, Any]:
    """Return the columns in the header of a video's file and in the `.info.json` beside it; raises a PipelineError."""
    from kinodex.pipeline.decoding.stream import choose_stream, file_tags
    from kinodex.pipeline.media.source import open_source

    with open_source(uri) as container:
        return file_tags(container, choose_stream(container, uri)) | download_info(uri)
