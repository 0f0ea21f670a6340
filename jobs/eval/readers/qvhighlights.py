"""QVHighlights: moments and highlights in clips of 150 seconds from YouTube (Lei et al. 2021, arXiv 2107.09609).

The moments of a search are whole numbers of clips of 2 seconds, each rated by three annotators from 0 to 4.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kinodex.jobs.eval.items import BadRow, SearchItem
from kinodex.jobs.eval.readers.fields import LengthS, Name
from kinodex.jobs.eval.rows import AddNote, Row, check_range

CLIP_S = 2.0
Score = Annotated[float, Field(ge=0, le=4)]


class QVHighlightsRow(Row):
    """The grade of a moment is 1 + the mean saliency of its clips. Rows of the test set have no moments.

    The 1 keeps a moment that all annotators rated 0 a relevant one, as it is in the published measures.
    """

    qid: str
    query: Name
    vid: Name
    duration: LengthS
    relevant_windows: tuple[tuple[float, float], ...] = ()
    relevant_clip_ids: tuple[int, ...] = ()
    saliency_scores: tuple[Annotated[tuple[Score, ...], Field(min_length=1)], ...] = ()

    def item(self, note: AddNote) -> SearchItem:
        clips, scores = len(self.relevant_clip_ids), len(self.saliency_scores)
        if clips != scores:
            raise BadRow(f"saliency_scores: got {scores}; there are {clips} clips")
        ranges = [check_range("relevant_windows", *window) for window in self.relevant_windows]
        late = next((end_s for _, end_s in ranges if end_s > self.duration + CLIP_S), None)
        if late is not None:
            note(f"relevant_windows: got an end at {late:g} s of {self.duration:g}; the search is kept")
        relevant = tuple((self.vid, start_s, end_s) for start_s, end_s in ranges)
        text, grades = self.query.strip(), self._grades()
        return SearchItem(self.qid, "qvhighlights", text, self.vid, relevant, grades, duration_s=self.duration)

    def _grades(self) -> tuple[float, ...] | None:
        """Return the grades of the windows; None if not every window has a clip with scores."""
        scores = dict(zip(self.relevant_clip_ids, self.saliency_scores, strict=True))
        grades = []
        for start_s, end_s in self.relevant_windows:
            clips = range(round(start_s / CLIP_S), round(end_s / CLIP_S))
            rated = [score for clip in clips for score in scores.get(clip, ())]
            if not rated:
                return None
            grades.append(1 + sum(rated) / len(rated))
        return tuple(grades) or None
