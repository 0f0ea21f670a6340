"""Text tracks inside a video file: SubRip, ASS, WebVTT, mov_text, and WebVTT in MP4."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.decoding.container import OPEN_OPTIONS
from pipeline.errors import SubtitleError
from pipeline.subtitles.cues import Line, split_voices

if TYPE_CHECKING:
    from av import Packet
    from av.stream import Stream

TEXT_CODECS = frozenset({"ass", "ssa", "srt", "subrip", "webvtt", "mov_text", "text"})


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
