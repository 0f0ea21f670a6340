"""ActivityNet Captions: sentences that tell films of about two minutes (Krishna et al. 2017, arXiv 1705.00754).

Published as `{video: {"duration", "timestamps": [[start, end], ...], "sentences"}}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import BadRow, SearchItem
from kinodex.jobs.eval.readers.fields import LengthS, Name
from kinodex.jobs.eval.row_files import json_file
from kinodex.jobs.eval.rows import AddNote, Raw, Row, check_range


class ActivityNetRow(Row):
    """A sentence with one moment, known by its video and its place in it, from 0.

    One that ends after its film is cut there, as its annotators saw no more.
    """

    video: Name
    number: int
    duration: LengthS
    times: tuple[float, float]
    sentence: str

    def item(self, note: AddNote) -> SearchItem:
        text, (start_s, end_s) = self.sentence.strip(), self.times
        if not text:
            raise BadRow("sentence: got no words")
        if end_s > self.duration:
            note(f"timestamps: got an end at {end_s:g} s of {self.duration:g}; the moment is cut there")
        moment = (self.video, *check_range("timestamps", start_s, min(end_s, self.duration)))
        name = f"{self.video}-{self.number}"
        return SearchItem(name, "activitynet-captions", text, self.video, (moment,), duration_s=self.duration)


def activitynet_rows(path: Path) -> Iterator[Raw]:
    """Read the sentences of each video."""
    videos = json_file(path)
    if not isinstance(videos, dict):
        raise UsageError(f"{path} is no object of videos; give val_1.json or another file as published")
    for video, facts in videos.items():
        facts = facts if isinstance(facts, dict) else {}
        times, sentences = facts.get("timestamps"), facts.get("sentences")
        if not (isinstance(times, list) and isinstance(sentences, list) and len(times) == len(sentences)):
            yield f"video {video}", BadRow("timestamps: they are a list, as long as that of sentences")
            continue
        for number, (pair, sentence) in enumerate(zip(times, sentences, strict=True)):
            row = {"number": number, "duration": facts.get("duration"), "times": pair, "sentence": sentence}
            yield f"video {video}, sentence {number}", {"video": video, **row}
