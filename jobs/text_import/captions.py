"""Read caption files: the forms that benchmarks publish, and kinodex's own.

- `{video: [caption, ...]}`, a caption for every `seconds` (LaViLa's of EgoSchema, as LLoVi and AKeyS publish them);
- `{second: caption}`, a file a video, named after it or with `_cap` behind (NExT-QA's of VideoAgent, in a zip);
- JSON lines, see jobs/text_import/jsonl.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.errors import UnreadableText
from jobs.text_import.files import json_of, read_files, stem
from jobs.text_import.jsonl import is_rows, read_rows
from jobs.text_import.types import ReadFailure, ReadResult, TextLine, one_line, video_text

SUFFIXES = (".json", ".jsonl")
FORMS = 'forms: {"video": ["caption", ...]}, {"second": "caption"}, or JSON lines with video, start_s, end_s, text'


def read_captions(source: Path, seconds: float) -> Iterator[ReadResult]:
    """Read the captions of every video in a file, folder or zip; one that has no end lasts for `seconds`.

    Raises UsageError for a source that does not exist or holds no such file.
    """
    return read_files(source, SUFFIXES, lambda name, data: _texts(name, data, seconds))


def _texts(name: str, data: bytes, seconds: float) -> Iterator[ReadResult]:
    if is_rows(name, data):
        yield from read_rows(name, data)
        return
    document = json_of(name, data)
    if isinstance(document, dict) and any(isinstance(each, list) for each in document.values()):
        for video, captions in document.items():
            yield _listed(name, video, captions, seconds)
    elif isinstance(document, dict) and document and all(_second(key) is not None for key in document):
        yield _by_second(name, stem(name).removesuffix("_cap"), document, seconds)
    else:
        raise UnreadableText(f"{name}: got JSON of another form than captions; {FORMS}")


def _listed(where: str, video: str, captions: Sequence[Any], seconds: float) -> ReadResult:
    if not isinstance(captions, list):
        message = f"{where}: got {type(captions).__name__} for video {video}; give a list of captions"
        return ReadFailure(where, video, UnreadableText.__name__, message)
    return _timed(where, video, [(number * seconds, each) for number, each in enumerate(captions)], seconds)


def _by_second(where: str, video: str, captions: Mapping[str, Any], seconds: float) -> ReadResult:
    return _timed(where, video, [(_second(key) or 0.0, each) for key, each in captions.items()], seconds)


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
