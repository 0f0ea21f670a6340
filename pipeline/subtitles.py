"""Read the subtitles of a video as lines: sidecar files and text tracks inside it.

Tracks: SubRip, ASS, WebVTT, mov_text, and WebVTT in MP4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from pipeline.cue_text import ass_text, split_voices, srt_voices
from pipeline.decoding.video_stream import VideoMetadata, open_options
from pipeline.errors import SourceError, SubtitleError
from pipeline.playlists import PLAYLIST_DEMUXERS
from pipeline.sources.discover import sidecar_tags
from pipeline.sources.fetch import SILENCE_S, Source, local_copy
from pipeline.subtitle_formats import parse_cues
from pipeline.text_encoding import decode_text

if TYPE_CHECKING:
    from av import Packet
    from av.stream import Stream

MAX_BYTES = 16_000_000
"""Longest text that is read of one file, or of all tracks of one video; a film has 0.1 MB."""
TEXT_CODECS = frozenset({"ass", "ssa", "srt", "subrip", "webvtt", "mov_text", "text"})


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, spoken or shown in `[start_s, end_s)`.

    Of a text track inside a video these are presentation times; those of a sidecar count from where a player starts.
    """

    start_s: float
    end_s: float
    text: str
    source: Literal["sidecar", "embedded"]
    language: str | None = None
    speaker: str | None = None


def read_subtitles(path: Path, source: Source, metadata: VideoMetadata) -> tuple[list[Line], list[str]]:
    """Read all lines of a video in order of time, each once, and one message for each unreadable file or track.

    Of a playlist, only the files beside it are read.
    """
    lines: set[Line] = set()
    errors: list[str] = []
    for uri in source.sidecars:
        try:
            lines.update(sidecar_lines(uri, source.timeout_s, PurePosixPath(source.uri).stem))
        except (SubtitleError, SourceError) as error:
            errors.append(str(error))
    try:
        if metadata.container not in PLAYLIST_DEMUXERS:
            lines.update(embedded_lines(path, source.uri))
    except SubtitleError as error:
        errors.append(str(error))
    return sorted(lines, key=lambda line: (line.start_s, line.end_s, line.language or "", line.text)), errors


def sidecar_lines(uri: str, timeout_s: float = SILENCE_S, video: str = "") -> list[Line]:
    """Read the lines of an SRT, VTT, ASS or SSA file in any common encoding; `video` is the stem of its video.

    Raises:
        SubtitleError: the text is in none of these formats, or too long.
        SourceError: the file cannot be read.
    """
    with local_copy(Source(uri, uri, timeout_s=timeout_s)) as path:
        _require_short(path.stat().st_size, uri)
        return subtitle_lines(path.read_bytes(), uri, video)


def subtitle_lines(data: bytes, uri: str, video: str = "") -> list[Line]:
    """Parse the lines of a file's bytes; raises SubtitleError, which calls it `uri`."""
    _require_short(len(data), uri)
    _, language = sidecar_tags(uri, video)
    try:
        cues = list(parse_cues(decode_text(data)))
    except ValueError as error:
        raise SubtitleError(
            f"{uri}: not readable as subtitles ({error}); SRT, VTT, ASS and SSA are; repair the file or remove it"
        ) from error
    return [Line(cue.start_s, max(cue.start_s, cue.end_s), cue.text, "sidecar", language, cue.speaker) for cue in cues]


def embedded_lines(path: Path, name: str) -> list[Line]:
    """Read the lines of every text track; tracks of images (DVD, Blu-ray) are left out.

    Raises:
        SubtitleError: a track is damaged, so that some of its packets cannot be read; or they hold too much text.
    """
    import av
    from av.stream import Discard

    lines: list[Line] = []
    size_bytes = 0
    try:
        with av.open(f"file:{path}", container_options=open_options(), metadata_errors="replace") as file:
            tracks = [stream for stream in file.streams if _is_text(stream)]
            for stream in file.streams:
                stream.discard = Discard.default if stream in tracks else Discard.all
            for packet in file.demux(tracks) if tracks else ():
                # A data track that is no text may be a film's telemetry, of any size.
                size_bytes += packet.size if packet.stream.type == "subtitle" else 0
                _require_short(size_bytes, name)
                if packet.size and packet.pts is not None:
                    lines += _packet_lines(packet)
    except av.FFmpegError as error:
        raise SubtitleError(
            f"{name}: a text track is damaged ({error.strerror}) after {len(lines)} lines; "
            "make the file again, or put the subtitles beside it as .srt"
        ) from error
    return lines


def _is_text(stream: Stream) -> bool:
    if stream.type == "subtitle":
        return stream.codec_context is not None and stream.codec_context.name in TEXT_CODECS
    # FFmpeg has no decoder for WebVTT in MP4 (ISO/IEC 14496-30) and shows the track as data.
    return stream.type == "data" and stream.container.format.name.startswith("mov")


def _packet_lines(packet: Packet[Stream]) -> Iterator[Line]:
    start_s = float((packet.pts or 0) * packet.time_base)
    end_s = float(((packet.pts or 0) + (packet.duration or 0)) * packet.time_base)
    language = packet.stream.language if packet.stream.language != "und" else None
    for speaker, words in _cues(packet):
        yield Line(start_s, end_s, words, "embedded", language, speaker)


def _cues(packet: Packet[Stream]) -> Iterator[tuple[str | None, str]]:
    """Yield speaker and text of each cue in a packet.

    From its bytes: FFmpeg's decoders turn all text into ASS, in which what was text in braces cannot be known.
    """
    data, codec = bytes(packet), packet.stream.type == "subtitle" and packet.stream.codec_context.name
    if not codec:
        for text in _mp4_webvtt_cues(data):
            yield from split_voices(text)
    elif codec in ("ass", "ssa"):  # ReadOrder,Layer,Style,Name,L,R,V,Effect,Text
        fields = _decoded(data).split(",", 8)
        if len(fields) == 9 and (words := ass_text(fields[8])):
            yield fields[3].strip() or None, words
    elif codec == "mov_text":  # 3GPP TS 26.245, section 5.17: length, text, boxes of style
        yield from split_voices(_decoded(data[2 : 2 + int.from_bytes(data[:2], "big")]))
    else:
        yield from (split_voices if codec == "webvtt" else srt_voices)(_decoded(data))


def _decoded(data: bytes) -> str:
    """Decode the text of a packet: UTF-8, or UTF-16 by its byte order mark, as tx3g allows."""
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if wide else "utf-8", errors="replace").rstrip("\0")


def _mp4_webvtt_cues(sample: bytes) -> Iterator[str]:
    """Yield the text of each cue of one sample: boxes `vttc` that hold a `payl` (ISO/IEC 14496-30, section 7)."""
    for kind, cue in _boxes(sample):
        if kind == b"vttc":
            for part, payload in _boxes(cue):
                if part == b"payl":
                    yield payload.decode("utf-8", errors="replace")


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if not 8 <= size <= len(data) - at:
            return
        yield kind, data[at + 8 : at + size]
        at += size


def _require_short(size_bytes: int, name: str) -> None:
    if size_bytes > MAX_BYTES:
        raise SubtitleError(
            f"{name}: holds {size_bytes / 1e6:.0f} MB of subtitles, more than the {MAX_BYTES / 1e6:.0f} MB "
            "that are read; leave it out, or take fonts and pictures out of it"
        )
