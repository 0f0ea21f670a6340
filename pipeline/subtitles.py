"""Read the subtitles of a video as lines: sidecar files and text tracks inside it, and the markup of their cues.

Tracks: SubRip, ASS, WebVTT, mov_text, and WebVTT in MP4.
"""

from __future__ import annotations

import html
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipeline.decoding.video_stream import OPEN_OPTIONS, VideoMetadata
from pipeline.errors import SourceError, SubtitleError
from pipeline.sources.discover import sidecar_language
from pipeline.sources.fetch import Source, read_bytes

if TYPE_CHECKING:
    from av import Packet
    from av.stream import Stream

VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")  # WebVTT: <v.loud Mary>
MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|<[\d:.]+>")  # tags, and the time stamps of karaoke
TEXT_CODECS = frozenset({"ass", "ssa", "srt", "subrip", "webvtt", "mov_text", "text"})


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, spoken or shown in `[start_s, end_s)`, in the video's own presentation time."""

    start_s: float
    end_s: float
    text: str
    source: Literal["sidecar", "embedded"]
    language: str | None = None
    speaker: str | None = None


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


def split_voices(text: str) -> Iterator[tuple[str | None, str]]:
    """Split a cue into (speaker, plain text) of each voice; resolves markup and entities, leaves out empty text."""
    opening, *voices = VOICE.split(text)
    for speaker, words in [("", opening), *zip(voices[::2], voices[1::2], strict=True)]:
        plain = html.unescape(MARKUP.sub("", words)).replace("\xa0", " ")
        plain = "\n".join(line.strip() for line in plain.splitlines() if line.strip())
        if plain:
            yield html.unescape(speaker).strip() or None, plain


def embedded_lines(path: Path, name: str) -> list[Line]:
    """Read the lines of every text track; tracks of images (DVD, Blu-ray) are left out.

    Raises:
        SubtitleError: a track is damaged, so that some of its packets cannot be read.
    """
    import av
    from av.stream import Discard

    lines: list[Line] = []
    with av.open(f"file:{path}", container_options=OPEN_OPTIONS, metadata_errors="replace") as file:
        tracks = [stream for stream in file.streams if _is_text(stream)]
        for stream in file.streams:
            stream.discard = Discard.default if stream in tracks else Discard.all
        try:
            for packet in file.demux(tracks) if tracks else ():
                if packet.size and packet.pts is not None:
                    lines += _packet_lines(packet)
        except av.FFmpegError as error:
            raise SubtitleError(
                f"{name}: a text track is damaged ({error.strerror}) after {len(lines)} lines; "
                "make the file again, or put the subtitles beside it as .srt"
            ) from error
    return lines


def _only_cues(vtt: str) -> str:
    """Strip WebVTT of notes, styles, regions and cue names, which pysubs2 would read as spoken text."""
    cues: list[str] = []
    for block in re.split(r"\n[ \t]*\n", vtt.replace("\r\n", "\n").replace("\r", "\n")):
        lines = block.strip("\n").split("\n")
        timing = next((i for i, line in enumerate(lines) if "-->" in line), None)
        if timing is not None and not lines[0].startswith("NOTE"):
            cues.append("\n".join(lines[timing:]))
    return "WEBVTT\n\n" + "\n\n".join(cues) + "\n"


def _is_text(stream: Stream) -> bool:
    if stream.type == "subtitle":
        return stream.codec_context is not None and stream.codec_context.name in TEXT_CODECS
    # FFmpeg has no decoder for WebVTT in MP4 (ISO/IEC 14496-30) and shows the track as data.
    return stream.type == "data" and stream.container.format.name.startswith("mov")


def _packet_lines(packet: Packet[Stream]) -> Iterator[Line]:
    start_s = float((packet.pts or 0) * packet.time_base)
    end_s = float(((packet.pts or 0) + (packet.duration or 0)) * packet.time_base)
    language = packet.stream.language if packet.stream.language != "und" else None
    if packet.stream.type == "data":
        cues = [("", text) for text in _mp4_webvtt_cues(bytes(packet))]
    else:
        cues = [_ass_cue(subtitle.ass) for subtitle in packet.decode() if hasattr(subtitle, "ass")]
    for name, text in cues:
        for speaker, words in split_voices(text):
            yield Line(start_s, end_s, words, "embedded", language, speaker or name or None)


def _ass_cue(event: bytes) -> tuple[str, str]:
    """Split FFmpeg's event (ReadOrder,Layer,Style,Name,L,R,V,Effect,Text) into actor and text without overrides."""
    from pysubs2 import SSAEvent

    fields = event.decode("utf-8", errors="replace").split(",", 8)
    if len(fields) < 9:
        return "", ""
    ssa = SSAEvent(text=fields[8])
    return fields[3].strip(), "" if ssa.is_drawing else ssa.plaintext


def _mp4_webvtt_cues(sample: bytes) -> Iterator[str]:
    """Yield the text of each cue of one sample: boxes `vttc` that hold a `payl` (ISO/IEC 14496-30, section 7)."""
    for kind, cue in _boxes(sample):
        if kind == b"vttc":
            for part, payload in _boxes(cue):
                if part == b"payl":
                    yield payload.decode("utf-8", errors="replace")


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    while len(data) >= 8:
        size, kind = struct.unpack(">I4s", data[:8])
        if not 8 <= size <= len(data):
            return
        yield kind, data[8:size]
        data = data[size:]
