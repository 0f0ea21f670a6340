"""Charades-STA: sentences about half a minute of indoor life, and where they hold.

Gao et al. 2017, arXiv 1705.02101.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kinodex.jobs.eval.items import BadRow, SearchItem
from kinodex.jobs.eval.readers.fields import Name
from kinodex.jobs.eval.row_files import text_lines
from kinodex.jobs.eval.rows import AddNote, Raw, Row, check_range


class CharadesRow(Row):
    """A line, `VIDEO START END##SENTENCE`, with one moment; it is known by its number."""

    line: int
    video: Name
    start: float
    end: float
    sentence: Name

    def item(self, note: AddNote) -> SearchItem:
        moment = (self.video, *check_range("times", self.start, self.end))
        return SearchItem(str(self.line), "charades-sta", self.sentence, self.video, (moment,))


def charades_rows(path: Path) -> Iterator[Raw]:
    """Read the parts of each line."""
    for number, line in text_lines(path):
        place, mark, sentence = line.partition("##")
        words = place.split()
        if not mark or len(words) != 3:
            yield f"line {number}", BadRow(f"got {line[:60]!r}; a line is VIDEO START END##SENTENCE")
            continue
        times = dict(zip(("video", "start", "end"), words, strict=True))
        yield f"line {number}", {"line": number, **times, "sentence": sentence.strip()}
