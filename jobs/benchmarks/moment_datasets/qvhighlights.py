"""QVHighlights: moments and highlights in clips of 150 seconds from YouTube (Lei et al. 2021, arXiv 2107.09609).

Published as JSON lines, `highlight_val_release.jsonl` and others in `data` of jayleicn/moment_detr. The moments of a
search are whole numbers of clips of 2 seconds, each rated by three annotators from 0 (very bad) to 4 (very good).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from jobs.benchmarks.moments import MomentSample, ParsedMoments, check_range, parse_moments
from jobs.benchmarks.samples import AS_PUBLISHED, AddNote, BadRow, json_lines

CLIP_S = 2.0
Score = Annotated[float, Field(ge=0, le=4)]


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    qid: str
    query: Annotated[str, Field(min_length=1)]
    vid: Annotated[str, Field(min_length=1)]
    duration: Annotated[float, Field(gt=0)]
    relevant_windows: tuple[tuple[float, float], ...] = ()
    relevant_clip_ids: tuple[int, ...] = ()
    saliency_scores: tuple[Annotated[tuple[Score, ...], Field(min_length=1)], ...] = ()


def read(path: Path) -> ParsedMoments:
    """Read searches; the grade of a moment is 1 + the mean saliency of its clips. Rows of the test set have no moments.

    The 1 keeps a moment that all annotators rated 0 a relevant one, as it is in the published measures.
    """
    return parse_moments(json_lines(path), _Row, _item)


def _item(row: _Row, note: AddNote) -> MomentSample:
    if len(row.relevant_clip_ids) != len(row.saliency_scores):
        raise BadRow(f"saliency_scores: got {len(row.saliency_scores)}; there are {len(row.relevant_clip_ids)} clips")
    ranges = [check_range("relevant_windows", *window) for window in row.relevant_windows]
    late = next((end_s for _, end_s in ranges if end_s > row.duration + CLIP_S), None)
    if late is not None:
        note(f"relevant_windows: got an end at {late:g} s of {row.duration:g}; the search is kept")
    relevant = tuple((row.vid, start_s, end_s) for start_s, end_s in ranges)
    return MomentSample(
        row.qid, "qvhighlights", row.query.strip(), row.vid, relevant, _grades(row), duration_s=row.duration
    )


def _grades(row: _Row) -> tuple[float, ...] | None:
    """The grades of the windows; None if not every window has a clip with scores."""
    scores = dict(zip(row.relevant_clip_ids, row.saliency_scores, strict=True))
    grades = []
    for start_s, end_s in row.relevant_windows:
        clips = range(round(start_s / CLIP_S), round(end_s / CLIP_S))
        rated = [score for clip in clips for score in scores.get(clip, ())]
        if not rated:
            return None
        grades.append(1 + sum(rated) / len(rated))
    return tuple(grades) or None
