"""Caption files in the forms that benchmarks publish."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kinodex.jobs.errors import UnreadableText
from kinodex.jobs.text_import.files import json_of, read_files, stem
from kinodex.jobs.text_import.json_lines import is_rows, read_rows
from kinodex.jobs.text_import.video_text import ReadFailure, ReadResult, TextLine, one_line, video_text

CAPTION_SUFFIXES = (".json", ".jsonl")
CAPTION_FORMS = (
    'forms: {"video": ["caption", ...]}, {"second": "caption"}, or JSON lines with video, start_s, end_s, text'
)


def read_captions(source: Path, seconds: float) -> Iterator[ReadResult]:
    """Read the captions of every video in a file, folder or zip; one that has no end lasts for `seconds`.

    Forms: `{video: [caption, ...]}`, a caption for every `seconds` (LaViLa's of EgoSchema); `{second: caption}`, a file
    a video, named after it or with `_cap` behind (NExT-QA's of VideoAgent); JSON lines. Raises UsageError.
    """
    return read_files(source, CAPTION_SUFFIXES, lambda name, data: _caption_texts(name, data, seconds))


def _caption_texts(name: str, data: bytes, seconds: float) -> Iterator[ReadResult]:
    if is_rows(name, data):
        yield from read_rows(name, data)
        return
    document = json_of(name, data)
    if isinstance(document, dict) and any(isinstance(each, list) for each in document.values()):
        for video, captions in document.items():
            if isinstance(captions, list):
                yield _timed(name, video, [(n * seconds, each) for n, each in enumerate(captions)], seconds)
            else:
                message = f"{name}: got {type(captions).__name__} for video {video}; give a list of captions"
                yield ReadFailure(name, video, UnreadableText.__name__, message)
    elif isinstance(document, dict) and document and all(_second(key) is not None for key in document):
        captions = [(_second(key) or 0.0, each) for key, each in document.items()]
        yield _timed(name, stem(name).removesuffix("_cap"), captions, seconds)
    else:
        raise UnreadableText(f"{name}: got JSON of another form than captions; {CAPTION_FORMS}")


def _timed(where: str, video: str, captions: Sequence[tuple[float, Any]], seconds: float) -> ReadResult:
    lines: list[TextLine] = []
    problems: list[str] = []
    for start_s, caption in captions:
        if isinstance(caption, str) and caption.strip():
            lines.append(TextLine(start_s, start_s + seconds, one_line(caption)))
        else:
            problems.append(f"{video} at {start_s:g} s: got {caption!r}, which is no caption")
    return video_text(where, video, lines, problems)


def _second(key: str) -> float | None:
    """Parse a key as a time in seconds; None if it is none."""
    try:
        time_s = float(key)
    except ValueError:
        return None
    return time_s if math.isfinite(time_s) and time_s >= 0 else None
