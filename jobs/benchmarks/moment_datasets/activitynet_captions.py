"""ActivityNet Captions: sentences that tell films of about two minutes (Krishna et al. 2017, arXiv 1705.00754).

Published as JSON, `val_1.json` and others: `{video: {"duration", "timestamps": [[start, end], ...], "sentences"}}`. A
sentence is known by its video and its place in it, from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from jobs.benchmarks.moments import MomentSample, ParsedMoments, check_range, parse_moments
from jobs.benchmarks.samples import AS_PUBLISHED, AddNote, BadRow, Raw, json_file
from jobs.errors import UsageError


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    video: Annotated[str, Field(min_length=1)]
    number: int
    duration: Annotated[float, Field(gt=0)]
    times: tuple[float, float]
    sentence: str


def read(path: Path) -> ParsedMoments:
    """Read searches, each with one moment; one that ends after its film is cut there, as its annotators saw no more."""
    return parse_moments(_rows(path), _Row, _item)


def _rows(path: Path) -> Iterator[Raw]:
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


def _item(row: _Row, note: AddNote) -> MomentSample:
    text = row.sentence.strip()
    if not text:
        raise BadRow("sentence: got no words")
    start_s, end_s = row.times
    if end_s > row.duration:
        note(f"timestamps: got an end at {end_s:g} s of {row.duration:g}; the moment is cut there")
    moment = (row.video, *check_range("timestamps", start_s, min(end_s, row.duration)))
    return MomentSample(
        f"{row.video}-{row.number}", "activitynet-captions", text, row.video, (moment,), duration_s=row.duration
    )
