"""Add subtitles to a clip as a text track: its other packets are copied as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.pipeline.media.clip_file import removed_on_error
from kinodex.pipeline.subtitles.cues import Cue

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer, OutputContainer
    from av.stream import Stream
    from av.subtitles.stream import SubtitleStream

SUBTITLE_TICK_S = Fraction(1, 1000)
LONGEST_BYTES = 65_535
"""Bytes of a line of mov_text (3GPP TS 26.245), whose length has 16 bits."""
CODECS = {".mp4": "mov_text", ".mkv": "subrip"}
HEADER = b"[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name\nStyle: Default\n\n[Events]\nFormat: Text\n"
"""A header of ASS, which FFmpeg's encoders of text want before they open."""


def add_subtitles(clip: Path, out: Path, cues: Sequence[Cue], language: str | None = None) -> None:
    """Write `clip` to `out` (.mp4 or .mkv, like the clip) with a track of these cues, which count from the clip's 0.

    Cues that would show nothing are left out. Of cues that overlap each stands in a line of its own while both last.
    """
    import av

    with removed_on_error(out), av.open(str(clip)) as source, av.open(str(out), "w") as target:
        copies = {each.index: target.add_stream_from_template(each, opaque=True) for each in source.streams}
        track: Any = target.add_stream(CODECS[out.suffix])
        track.time_base = SUBTITLE_TICK_S
        track.codec_context.subtitle_header = HEADER
        track.metadata["language"] = language or "und"
        texts = _packets(track, _apart(cues), is_timed_text=out.suffix == ".mp4")
        _mux_in_order(source, target, copies, texts)


def _mux_in_order(
    source: InputContainer, target: OutputContainer, copies: dict[int, Stream], texts: Iterator[Packet[Any]]
) -> None:
    """Copy the packets of a clip; those of the text go among them by their times."""
    text = next(texts, None)
    for packet in source.demux():
        stamp = packet.dts if packet.dts is not None else packet.pts  # Matroska's first packets have no other
        if stamp is None:
            continue
        while text is not None and (text.pts or 0) * SUBTITLE_TICK_S <= stamp * packet.time_base:
            target.mux(text)
            text = next(texts, None)
        packet.stream = copies[packet.stream.index]
        target.mux(packet)
    if text is not None:
        target.mux([text, *texts])


def _packets(track: SubtitleStream, cues: Sequence[Cue], is_timed_text: bool) -> Iterator[Packet[Any]]:
    from av import Packet

    for cue in cues:
        data = cue.text.encode()[:LONGEST_BYTES].decode(errors="ignore").encode()
        packet: Packet[Any] = Packet(len(data).to_bytes(2, "big") + data if is_timed_text else data)
        packet.stream, packet.time_base = track, SUBTITLE_TICK_S
        packet.pts = packet.dts = round(cue.start_s / SUBTITLE_TICK_S)
        packet.duration = round(cue.end_s / SUBTITLE_TICK_S) - packet.pts
        yield packet


def _apart(cues: Sequence[Cue]) -> list[Cue]:
    """Make cues that follow each other of cues that may overlap: a track of timed text shows one at a time."""
    shown = [cue for cue in cues if cue.end_s - cue.start_s >= SUBTITLE_TICK_S and cue.text.strip()]
    edges = sorted({time_s for cue in shown for time_s in (cue.start_s, cue.end_s)})
    parts: list[Cue] = []
    for start_s, end_s in pairwise(edges):
        lines = [cue.text for cue in shown if cue.start_s <= start_s and cue.end_s >= end_s]
        text = "\n".join(dict.fromkeys(lines))
        if parts and parts[-1].text == text and parts[-1].end_s == start_s:
            parts[-1] = parts[-1]._replace(end_s=end_s)
        elif text and end_s - start_s >= SUBTITLE_TICK_S:
            parts.append(Cue(start_s, end_s, text))
    return parts
