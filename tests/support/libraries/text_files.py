"""Files of captions and transcripts for the tests of `kinodex import`, and what is read from them."""

from __future__ import annotations

import json
from pathlib import Path

from kinodex.jobs.text_import.captions import read_captions
from kinodex.jobs.text_import.longvideobench import read_cuts
from kinodex.jobs.text_import.transcripts import read_transcripts
from kinodex.jobs.text_import.video_text import ReadResult, VideoText


def captions(source: Path, seconds: float = 1.0) -> list[ReadResult]:
    return list(read_captions(source, seconds))


def transcripts(source: Path, clip_s: float = 60.0, cuts: Path | None = None) -> list[ReadResult]:
    return list(read_transcripts(source, clip_s, read_cuts(cuts) if cuts else {}))


def written(path: Path, value: object) -> Path:
    """Write text, or a value as JSON, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def spans(read: ReadResult) -> list[tuple[float, float, str]]:
    """The lines of a text that was read."""
    assert isinstance(read, VideoText), read
    return [(line.start_s, line.end_s, line.text) for line in read.lines]


def names(found: list[ReadResult]) -> list[str | None]:
    return [each.name for each in found]
