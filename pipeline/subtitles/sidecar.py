"""Read the subtitles of a video: sidecar files, then embedded text tracks, as lines."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.decoding.container import VideoMetadata
from pipeline.errors import SourceError, SubtitleError
from pipeline.sources.discover import Source, sidecar_language
from pipeline.sources.fetch import read_bytes
from pipeline.subtitles.cues import Line, split_voices
from pipeline.subtitles.embedded import embedded_lines


def read_subtitles(path: Path, source: Source, metadata: VideoMetadata) -> tuple[list[Line], list[str]]:
    """Read all lines of a video in order of time, each once, and one message for each unreadable file or track."""
    lines: set[Line] = set()
    errors: list[str] = []
    for uri in source.sidecars:
        try:
            lines.update(sidecar_lines(uri, metadata.zero_s))
        except (SubtitleError, SourceError) as error:
            errors.append(str(error))
    try:
        lines.update(embedded_lines(path, source.uri))
    except SubtitleError as error:
        errors.append(str(error))
    return sorted(lines, key=lambda line: (line.start_s, line.end_s, line.language or "", line.text)), errors


def sidecar_lines(uri: str, zero_s: float = 0.0) -> list[Line]:
    """Read the lines of an SRT, VTT, ASS or SSA file in any common encoding; its times count from `zero_s`.

    Raises:
        SubtitleError: the text is in no subtitle format that pysubs2 reads.
        SourceError: the file cannot be read.
    """
    return subtitle_lines(read_bytes(uri), uri, zero_s)


def subtitle_lines(data: bytes, uri: str, zero_s: float = 0.0) -> list[Line]:
    """Parse the lines of a file's bytes; raises SubtitleError, which calls it `uri`."""
    import pysubs2

    text = decode_text(data)
    if text.lstrip("\ufeff \n").startswith("WEBVTT"):
        text = _only_cues(text)
    try:
        events = pysubs2.SSAFile.from_string(text, keep_html_tags=True)
    except (pysubs2.Pysubs2Error, ValueError) as error:
        raise SubtitleError(
            f"{uri}: not readable as subtitles ({type(error).__name__}); SRT, VTT, ASS and SSA are; "
            "repair the file or remove it"
        ) from error
    language = sidecar_language(uri)
    lines: list[Line] = []
    for event in events:
        if event.is_comment or event.is_drawing:
            continue
        start_s, end_s = zero_s + event.start / 1000, zero_s + max(event.start, event.end) / 1000
        for speaker, words in split_voices(event.plaintext):
            lines.append(Line(start_s, end_s, words, "sidecar", language, speaker or event.name or None))
    return lines


def decode_text(data: bytes) -> str:
    """Decode bytes of unknown encoding: by a byte order mark, else as UTF-8, else in the likeliest encoding.

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
    """Strip WebVTT of notes, styles, regions and cue names, which pysubs2 would read as spoken text."""
    cues: list[str] = []
    for block in re.split(r"\n[ \t]*\n", vtt.replace("\r\n", "\n").replace("\r", "\n")):
        lines = block.strip("\n").split("\n")
        timing = next((i for i, line in enumerate(lines) if "-->" in line), None)
        if timing is not None and not lines[0].startswith("NOTE"):
            cues.append("\n".join(lines[timing:]))
    return "WEBVTT\n\n" + "\n\n".join(cues) + "\n"
