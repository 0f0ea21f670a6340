"""Transcript files: subtitles, and the forms that benchmarks publish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from kinodex.jobs.errors import UnreadableText
from kinodex.jobs.text_import.files import json_of, read_files, stem
from kinodex.jobs.text_import.json_lines import is_rows, read_rows
from kinodex.jobs.text_import.longtvqa import read_clips
from kinodex.jobs.text_import.longvideobench import Cut, read_lines
from kinodex.jobs.text_import.video_text import ReadResult, TextLine, VideoText, one_line, video_text
from kinodex.pipeline.sources import SUBTITLE_SUFFIXES, sidecar_tags
from kinodex.pipeline.subtitles.lines import subtitle_lines

TRANSCRIPT_SUFFIXES = (*SUBTITLE_SUFFIXES, ".json", ".jsonl")
TRANSCRIPT_FORMS = (
    "forms: subtitles (SRT, VTT, ASS), LongVideoBench's lists of lines, LongTVQA's texts by clip or episode, or JSON "
    "lines with video, start_s, end_s, text"
)


def read_transcripts(source: Path, clip_s: float, cuts: Mapping[str, Sequence[Cut]]) -> Iterator[ReadResult]:
    """Read the lines of every video in a file, folder or zip; `clip_s` is the length of LongTVQA's clips."""
    return read_files(source, TRANSCRIPT_SUFFIXES, lambda name, data: _transcript_texts(name, data, clip_s, cuts))


def _transcript_texts(name: str, data: bytes, clip_s: float, cuts: Mapping[str, Sequence[Cut]]) -> Iterator[ReadResult]:
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
        raise UnreadableText(f"{name}: got JSON of another form than a transcript; {TRANSCRIPT_FORMS}")


def _subtitles(name: str, data: bytes) -> ReadResult:
    """Read subtitles named after their video, with the language if there is one: film.srt, film.en.srt."""
    video, language = sidecar_tags(name)
    problems: list[str] = []
    lines = [
        TextLine(line.start_s, line.end_s, one_line(line.text), None, line.speaker, language)
        for line in subtitle_lines(data, name, report=problems.append)
    ]
    text = video_text(name, video, lines, problems)
    return replace(text, whole_name=stem(name)) if language and isinstance(text, VideoText) else text
