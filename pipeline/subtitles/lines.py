"""Read the subtitles of a video as lines: sidecar files and text tracks inside it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from kinodex.pipeline.decoding.clock import file_clock
from kinodex.pipeline.decoding.stream import VideoMetadata, open_options
from kinodex.pipeline.errors import SourceError, SubtitleError
from kinodex.pipeline.fetch import local_copy
from kinodex.pipeline.origins import origin_of
from kinodex.pipeline.playlists import PLAYLIST_DEMUXERS
from kinodex.pipeline.source import SILENCE_S, Source
from kinodex.pipeline.sources import sidecar_tags
from kinodex.pipeline.subtitles.cues import Cue, Report, ignore, parse_cues
from kinodex.pipeline.subtitles.encodings import decode_text
from kinodex.pipeline.subtitles.markup import ass_text, split_voices, srt_voices
from kinodex.pipeline.subtitles.repeated_cues import unrolled

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
    """Read all lines of a video in order of time, each once, and a message for each unreadable file or track."""
    lines: set[Line] = set()
    errors: list[str] = []
    for uri in source.sidecars:
        try:
            name, is_named = PurePosixPath(source.uri).stem, source.is_named and origin_of(uri) == origin_of(source.uri)
            lines.update(sidecar_lines(uri, source.timeout_s, name, errors.append, is_named=is_named))
        except (SubtitleError, SourceError) as error:
            errors.append(str(error))
    try:
        if metadata.container not in PLAYLIST_DEMUXERS:
            lines.update(embedded_lines(path, source.uri))
    except SubtitleError as error:
        errors.append(str(error))
    return sorted(lines, key=lambda line: (line.start_s, line.end_s, line.language or "", line.text)), errors


def sidecar_lines(
    uri: str, timeout_s: float = SILENCE_S, video: str = "", report: Report = ignore, *, is_named: bool = False
) -> list[Line]:
    """Read a subtitle file in any common encoding, of the video of this stem; as `subtitle_lines`, or a SourceError."""
    with local_copy(Source(uri, uri, timeout_s=timeout_s, is_named=is_named)) as path:
        _require_short(path.stat().st_size, uri)
        return subtitle_lines(path.read_bytes(), uri, video, report)


def subtitle_lines(data: bytes, uri: str, video: str = "", report: Report = ignore) -> list[Line]:
    """Parse the lines of a file's bytes, called `uri`, each once; `report` is told what of it is left out.

    Raises SubtitleError where nothing can be read.
    """
    _require_short(len(data), uri)
    _, language = sidecar_tags(uri, video)
    unread: list[str] = []
    try:
        cues = unrolled(parse_cues(decode_text(data), unread.append))
    except ValueError as error:
        raise SubtitleError(
            f"{uri}: not readable as subtitles ({error}); SRT, VTT, ASS and SSA are; repair the file or remove it"
        ) from error
    if unread:
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        report(f"{uri}: {unread[0]}{more}, so what it shows is left out; correct the time, as in 00:01:02.500")
    return [Line(cue.start_s, max(cue.start_s, cue.end_s), cue.text, "sidecar", language, cue.speaker) for cue in cues]


def embedded_lines(path: Path, name: str) -> list[Line]:
    """Read the lines of every text track, of images none; raises SubtitleError for damage, or for too much text."""
    import av
    from av.stream import Discard

    cues: dict[tuple[int, str | None], list[Cue]] = {}
    size_bytes = 0
    try:
        with av.open(f"file:{path}", container_options=open_options(), metadata_errors="replace") as file:
            tracks = [stream for stream in file.streams if _is_text(stream)]
            for stream in file.streams:
                stream.discard = Discard.default if stream in tracks else Discard.all
            for packet in file_clock(path, name).demux(file, *tracks) if tracks else ():
                # A data track that is no text may be a film's telemetry, of any size.
                size_bytes += packet.size if packet.stream.type == "subtitle" else 0
                _require_short(size_bytes, name)
                if packet.size and packet.pts is not None:
                    cues.setdefault((packet.stream.index, _language(packet.stream)), []).extend(_packet_cues(packet))
    except av.FFmpegError as error:
        raise SubtitleError(
            f"{name}: a text track is damaged ({error.strerror}) after {sum(map(len, cues.values()))} lines; "
            "make the file again, or put the subtitles beside it as .srt"
        ) from error
    return [
        Line(cue.start_s, cue.end_s, cue.text, "embedded", language, cue.speaker)
        for (_, language), of_track in cues.items()
        for cue in unrolled(of_track)
    ]


def _language(track: Stream) -> str | None:
    return track.language if track.language != "und" else None


def _is_text(stream: Stream) -> bool:
    if stream.type == "subtitle":
        return stream.codec_context is not None and stream.codec_context.name in TEXT_CODECS
    # FFmpeg has no decoder for WebVTT in MP4 (ISO/IEC 14496-30) and shows the track as data.
    return stream.type == "data" and stream.container.format.name.startswith("mov")


def _packet_cues(packet: Packet[Stream]) -> Iterator[Cue]:
    start_s = float((packet.pts or 0) * packet.time_base)
    end_s = float(((packet.pts or 0) + (packet.duration or 0)) * packet.time_base)
    for speaker, words in _cues(packet):
        yield Cue(start_s, end_s, words, speaker)


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
