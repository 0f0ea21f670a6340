"""The spoken or written words that come with a video: sidecar files and embedded text tracks, as lines."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipeline.decoding.metadata import VideoMetadata
from pipeline.errors import SourceError, SubtitleError
from pipeline.sources.discover import Source, read_bytes, sidecar_language

VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")  # WebVTT: <v.loud Mary>
MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|<[\d:.]+>")  # tags, and the time stamps of karaoke


@dataclass(frozen=True, slots=True)
class Line:
    """What is said or shown as text in `[start_s, end_s)`, in the video's own presentation time."""

    start_s: float
    end_s: float
    text: str
    source: Literal["sidecar", "embedded"]
    language: str | None = None
    speaker: str | None = None


def read_subtitles(path: Path, source: Source, facts: VideoMetadata) -> tuple[list[Line], list[str]]:
    """All lines of a video in order of time, each once, and one message for each unreadable file or track."""
    from pipeline.subtitles.embedded import embedded_lines

    lines: set[Line] = set()
    errors: list[str] = []
    for uri in source.sidecars:
        try:
            lines.update(sidecar_lines(uri, facts.zero_s))
        except (SubtitleError, SourceError) as error:
            errors.append(str(error))
    try:
        lines.update(embedded_lines(path, source.uri))
    except SubtitleError as error:
        errors.append(str(error))
    return sorted(lines, key=lambda line: (line.start_s, line.end_s, line.language or "", line.text)), errors


def sidecar_lines(uri: str, zero_s: float = 0.0) -> list[Line]:
    """Lines of an SRT, VTT, ASS or SSA file in any common encoding; its times count from `zero_s`.

    Raises:
        SubtitleError: the text is in no subtitle format that pysubs2 reads.
        SourceError: the file cannot be had.
    """
    return subtitle_lines(read_bytes(uri), uri, zero_s)


def subtitle_lines(data: bytes, uri: str, zero_s: float = 0.0) -> list[Line]:
    """The same of a file's bytes; raises SubtitleError, which calls it `uri`."""
    import pysubs2

    text = decode_text(data)
    if text.lstrip("\ufeff \n").startswith("WEBVTT"):
        text = _only_cues(text)
    try:
        events = pysubs2.SSAFile.from_string(text, keep_html_tags=True)
    except (pysubs2.Pysubs2Error, ValueError) as error:
        raise SubtitleError(
            f"{uri}: not readable as subtitles ({type(error).__name__}); SRT, VTT, ASS and SSA are; "
            "repair the file or take it away"
        ) from error
    language = sidecar_language(uri)
    lines: list[Line] = []
    for event in events:
        if event.is_comment or event.is_drawing:
            continue
        start_s, end_s = zero_s + event.start / 1000, zero_s + max(event.start, event.end) / 1000
        for speaker, words in spoken(event.plaintext):
            lines.append(Line(start_s, end_s, words, "sidecar", language, speaker or event.name or None))
    return lines


def spoken(text: str) -> Iterator[tuple[str | None, str]]:
    """(speaker, plain text) of each voice in a cue; markup and entities resolved, nothing for empty text."""
    opening, *voices = VOICE.split(text)
    for speaker, words in [("", opening), *zip(voices[::2], voices[1::2], strict=True)]:
        plain = html.unescape(MARKUP.sub("", words)).replace("\xa0", " ")
        plain = "\n".join(line.strip() for line in plain.splitlines() if line.strip())
        if plain:
            yield html.unescape(speaker).strip() or None, plain


def decode_text(data: bytes) -> str:
    """Text of bytes in an unknown encoding: a byte order mark, else UTF-8, else the likeliest one.

    Of equally likely ones Windows-1252, the commonest; likelihood is charset-normalizer's.
    """
    from charset_normalizer import from_bytes

    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        matches = from_bytes(data)
    best = matches.best()
    if best is None:
        return data.decode("cp1252", errors="replace")
    ties = [match for match in matches if (match.chaos, match.coherence) == (best.chaos, best.coherence)]
    return str(next((match for match in ties if match.encoding == "cp1252"), best))


def _only_cues(vtt: str) -> str:
    """WebVTT without notes, styles, regions and cue names, which pysubs2 would read as spoken text."""
    cues: list[str] = []
    for block in re.split(r"\n[ \t]*\n", vtt.replace("\r\n", "\n").replace("\r", "\n")):
        lines = block.strip("\n").split("\n")
        timing = next((i for i, line in enumerate(lines) if "-->" in line), None)
        if timing is not None and not lines[0].startswith("NOTE"):
            cues.append("\n".join(lines[timing:]))
    return "WEBVTT\n\n" + "\n\n".join(cues) + "\n"
