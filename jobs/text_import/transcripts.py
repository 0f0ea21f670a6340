"""Read transcript files: subtitles named after videos, LongVideoBench's and LongTVQA's JSON, kinodex's own form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from jobs.errors import UnreadableText
from jobs.text_import.files import json_of, read_files, stem
from jobs.text_import.jsonl import is_rows, read_rows
from jobs.text_import.longtvqa import read_clips
from jobs.text_import.longvideobench import Cut, read_lines
from jobs.text_import.types import ReadResult, TextLine, VideoText, one_line, video_text
from pipeline.sources.discover import SUBTITLE_SUFFIXES, sidecar_tags
from pipeline.subtitles import subtitle_lines

SUFFIXES = (*SUBTITLE_SUFFIXES, ".json", ".jsonl")
FORMS = (
    "forms: subtitles (SRT, VTT, ASS), LongVideoBench's lists of lines, LongTVQA's texts by clip or episode, or JSON "
    "lines with video, start_s, end_s, text"
)


def read_transcripts(source: Path, clip_s: float, cuts: Mapping[str, Sequence[Cut]]) -> Iterator[ReadResult]:
    """Read the lines of every video in a file, folder or zip; `clip_s` is the length of LongTVQA's clips.

    Raises UsageError for a source that does not exist or holds no such file.
    """
    return read_files(source, SUFFIXES, lambda name, data: _texts(name, data, clip_s, cuts))


def _texts(name: str, data: bytes, clip_s: float, cuts: Mapping[str, Sequence[Cut]]) -> Iterator[ReadResult]:
    if PurePosixPath(name).suffix.lower() in SUBTITLE_SUFFIXES:
        yield _subtitles(name, data)
        return
    if is_rows(name, data):
        yield from read_rows(name, data)
        return
    document = json_of(name, data)
    if isinstance(document, list) and any(isinstance(row, dict) and {"text", "line"} & row.keys() for row in document):
        yield from read_lines(name, document, cuts)
    elif isinstance(document, dict) and any(isinstance(each, str) for each in document.values()):
        yield from read_clips(name, document, clip_s)
    else:
        raise UnreadableText(f"{name}: got JSON of another form than a transcript; {FORMS}")


def _subtitles(name: str, data: bytes) -> ReadResult:
    """Read subtitles named after their video, with the language if there is one: film.srt, film.en.srt."""
    video, language = sidecar_tags(name)
    lines = [
        TextLine(line.start_s, line.end_s, one_line(line.text), None, line.speaker, language)
        for line in subtitle_lines(data, name)
    ]
    text = video_text(name, video, lines, ())
    return replace(text, whole_name=stem(name)) if language and isinstance(text, VideoText) else text
