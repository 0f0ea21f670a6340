"""Searches of one's own: a line of JSON each, about videos of one's own library. docs/evaluation.md shows the lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, StringConstraints

from jobs.benchmarks.moments import MomentSample, ParsedMoments, Range, check_range, is_there, parse_moments
from jobs.benchmarks.samples import AS_PUBLISHED, AddNote, BadRow, json_lines

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


# A misspelt field of one's own file would silently leave out a moment or a video.
class _Row(BaseModel, extra="forbid"):
    model_config = AS_PUBLISHED

    id: Text
    text: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    image: Text | None = None
    video: Text | None = None
    relevant: tuple[tuple[float, float] | tuple[Text, float, float], ...] = ()
    grades: tuple[float, ...] | None = None
    absent: bool = False
    category: Text | None = None


def read(path: Path) -> ParsedMoments:
    """Read searches and their moments, [start, end] in `video`, or [video, start, end]; an image beside the file."""
    return parse_moments(json_lines(path), _Row, lambda row, note: _item(row, path.parent, note))


def _item(row: _Row, folder: Path, note: AddNote) -> MomentSample:
    image = None if row.image is None else folder / row.image
    if image is not None and not is_there(image):
        raise BadRow(f"image: there is no file {image}; give its path from the folder of the file of searches")
    if not row.text and image is None:
        raise BadRow("text: got neither text nor image; a search has one of them, or both")
    if row.absent and row.relevant:
        raise BadRow(f"absent: got true and {len(row.relevant)} relevant moments; give one of them")
    if not row.absent and not row.relevant:
        note('relevant: got no moment; the search is kept and not scored (say "absent": true if there is none)')
    relevant = tuple(_range(moment, row.video) for moment in row.relevant)
    return MomentSample(row.id, "own", row.text, row.video, relevant, _grades(row), image, row.absent, row.category)


def _range(moment: tuple[float, float] | tuple[str, float, float], video: str | None) -> Range:
    if len(moment) == 3:
        name, start_s, end_s = moment
        if video not in (None, name):
            raise BadRow(f"relevant: got a moment of {name}, and {video} is the video that is searched")
        return (name, *check_range("relevant", start_s, end_s))
    if video is None:
        raise BadRow("relevant: got [start, end] and no video; give video, or moments as [video, start, end]")
    return (video, *check_range("relevant", *moment))


def _grades(row: _Row) -> tuple[float, ...] | None:
    if row.grades is None:
        return None
    if len(row.grades) != len(row.relevant):
        raise BadRow(f"grades: got {len(row.grades)}; there are {len(row.relevant)} relevant moments")
    if not all(grade > 0 for grade in row.grades):
        raise BadRow(f"grades: got {min(row.grades):g}; each is more than 0")
    return row.grades
