"""Charades-STA: sentences about half a minute of indoor life, and where they hold (Gao et al. 2017, arXiv 1705.02101).

Published as text, `charades_sta_test.txt`: `VIDEO START END##SENTENCE` on each line. The lines have no ids: a search is
known by its line's number.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from jobs.benchmarks.moments import MomentSample, ParsedMoments, check_range, parse_moments
from jobs.benchmarks.samples import AS_PUBLISHED, AddNote, BadRow, Raw, text_lines


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    line: int
    video: Annotated[str, Field(min_length=1)]
    start: float
    end: float
    sentence: Annotated[str, Field(min_length=1)]


def read(path: Path) -> ParsedMoments:
    """Read searches, one a line, each with one moment."""
    return parse_moments(_rows(path), _Row, _item)


def _rows(path: Path) -> Iterator[Raw]:
    for number, line in text_lines(path):
        place, mark, sentence = line.partition("##")
        words = place.split()
        if not mark or len(words) != 3:
            yield f"line {number}", BadRow(f"got {line[:60]!r}; a line is VIDEO START END##SENTENCE")
            continue
        video, start, end = words
        raw = {"line": number, "video": video, "start": start, "end": end, "sentence": sentence.strip()}
        yield f"line {number}", raw


def _item(row: _Row, note: AddNote) -> MomentSample:
    moment = (row.video, *check_range("times", row.start, row.end))
    return MomentSample(str(row.line), "charades-sta", row.sentence, row.video, (moment,))
