"""Read the subtitles of a video as lines: sidecar files and text tracks inside it.

Tracks: SubRip, ASS, WebVTT, mov_text, and WebVTT in MP4.
"""

from __future__ import annotations

import html
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple

from kinodex.pipeline.decoding.clock import file_clock
from kinodex.pipeline.decoding.stream import VideoMetadata, open_options
from kinodex.pipeline.errors import SourceError, SubtitleError
from kinodex.pipeline.fetch import SILENCE_S, Source, local_copy
from kinodex.pipeline.origins import origin_of
from kinodex.pipeline.playlists import PLAYLIST_DEMUXERS
from kinodex.pipeline.sources import sidecar_tags

if TYPE_CHECKING:
    from av import Packet
    from av.stream import Stream

MAX_BYTES = 16_000_000
"""Longest text that is read of one file, or of all tracks of one video; a film has 0.1 MB."""
TEXT_CODECS = frozenset({"ass", "ssa", "srt", "subrip", "webvtt", "mov_text", "text"})

Report = Callable[[str], None]
"""Gets a sentence about what is left out."""


def ignore(problem: str) -> None:
    """Report nothing."""


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


# Parse the text of a subtitle file into cues: SRT, WebVTT, ASS and SSA. Linear in its length.

CLOCK = r"-?\s{0,3}\d{1,4}(?:\s{0,3}:\s{0,3}\d{1,4}){1,3}(?:\s{0,3}[.,]\s{0,3}\d{1,9})?"
"""A time in any form that files have: with or without hours and fractions, with spaces, before 0."""
TIMING = re.compile(rf"\s*({CLOCK})\s*(?:-{{1,2}}\s?>|[–—→]>?)\s*({CLOCK})(?:\s.*)?")
ARROW = "-->"
MEANS_TIMES = re.compile(r"\s*-?\d{1,4}\s?:")
NO_CUE = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")
"""How a block of WebVTT begins that is no cue."""
ASS_HEADINGS = frozenset({"[script info]", "[v4+ styles]", "[v4 styles]"})
ASS_COLUMNS = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")


class Cue(NamedTuple):
    """Plain text that one voice says, or that is shown, in `[start_s, end_s)` of the file's own clock."""

    start_s: float
    end_s: float
    text: str
    speaker: str | None = None


def parse_cues(text: str, report: Report = ignore) -> Iterator[Cue]:
    """Yield the cues of a file in its order; its text tells the format. `report` is told which lines have no times.

    Raises ValueError if it is in no format, or no times in it can be read.
    """
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if any(line.strip().lower() in ASS_HEADINGS for line in lines):
        return _checked(_ass_events(lines), ass_voices, report)
    if text.lstrip("\ufeff \r\n").startswith("WEBVTT"):
        return _checked(_vtt_events(lines), split_voices, report)
    return _checked(_srt_events(lines), srt_voices, report)


class _Event(NamedTuple):
    """The text that a file shows from a line on, as it is, and its two times; None where these cannot be read."""

    number: int
    times_s: tuple[float, float] | None
    text: str
    speaker: str | None = None


def _checked(
    events: Iterable[_Event], voices: Callable[[str], Iterable[tuple[str | None, str]]], report: Report
) -> Iterator[Cue]:
    """Yield the cues of events; those without times are told to `report`, after others with times."""
    problem, is_readable = "no line with two times", False
    for event in events:
        if event.times_s is None:
            problem = f"line {event.number} has no two times"
            report(problem)
            continue
        is_readable = True
        for speaker, words in voices(event.text):
            yield Cue(*event.times_s, words, speaker or event.speaker)
    if not is_readable:
        raise ValueError(problem)


def _srt_events(lines: Sequence[str]) -> Iterator[_Event]:
    """Yield the events of SRT: a line with two times begins one, whatever stands around it."""
    found = [number for number in range(len(lines)) if _is_timing(lines, number)]
    for number, until in zip_longest(found, found[1:]):
        body = lines[number + 1 : until]
        yield _Event(number + 1, _times_s(lines[number]), "\n".join(body if until is None else _without_number(body)))


def _without_number(body: Sequence[str]) -> Sequence[str]:
    """Take the number of the next cue off the end of a cue's lines; a number alone in the first line is its text."""
    last = len(body) - 1
    while last > 0 and not body[last].strip():
        last -= 1
    return body[:last] if last > 0 and re.fullmatch(r"\s*\d+\s*", body[last]) else body


def _vtt_events(lines: Sequence[str]) -> Iterator[_Event]:
    """Yield the events of WebVTT, without its notes, styles, regions and the names of cues.

    A cue ends at an empty line, or at the next times: a line that holds a space is an empty row of its text.
    """
    for first, block in _blocks(lines):
        if NO_CUE.match(block[0]):
            continue
        found = [at for at in range(len(block)) if _is_timing(block, at, at == 1)]
        for at, until in zip_longest(found, found[1:]):
            body = block[at + 1 : until]
            text = "\n".join(body if until is None else _without_number(body))
            yield _Event(first + at, _times_s(block[at]), text)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Split lines at empty ones; yields the number of the first line of each block, and the block."""
    block: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        if line:
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _is_timing(lines: Sequence[str], at: int, is_named: bool = False) -> bool:
    """True for a line with times, and for one with an arrow where times belong: first, after a number or a name."""
    line, before = lines[at], lines[at - 1].strip() if at else ""
    if TIMING.fullmatch(line):
        return True
    return ARROW in line and (is_named or not before or before.isdigit() or MEANS_TIMES.match(line) is not None)


def _times_s(line: str) -> tuple[float, float] | None:
    """Read the two times of a line; None if it has none."""
    timing = TIMING.fullmatch(line)
    start_s, end_s = map(_time_s, timing.groups()) if timing else (None, None)
    return None if start_s is None or end_s is None else (start_s, end_s)


def _ass_events(lines: Sequence[str]) -> Iterator[_Event]:
    """Yield the events of ASS or SSA that are text: no comments."""
    columns: Sequence[str] = ASS_COLUMNS
    for number, line in enumerate(lines, 1):
        kind, _, rest = line.strip().partition(":")
        if kind == "Format" and "start" in (names := [name.strip().lower() for name in rest.split(",")]):
            columns = names if {"end", "text"} <= set(names) and names[-1] == "text" else ASS_COLUMNS
        elif kind == "Dialogue":
            fields = dict(zip(columns, rest.strip().split(",", len(columns) - 1), strict=False))
            times_s = _times_s(f"{fields.get('start', '')} {ARROW} {fields.get('end', '')}")
            yield _Event(number, times_s, fields.get("text", ""), fields.get("name", "").strip() or None)


def _time_s(text: str) -> float | None:
    """Read a time that `CLOCK` matches, one before 0 as 0; None if it counts frames, or has too many parts."""
    whole, point, fraction = re.sub(r"\s", "", text).replace(",", ".").partition(".")
    parts = whole.lstrip("-").split(":")
    if not point and len(parts) > 2 and len(parts[-1]) == 3:
        *parts, fraction = parts  # 00:00:01:500
    if len(parts) > 3:
        return None
    whole_s = sum(int(part) * 60**power for power, part in enumerate(reversed(parts)))
    return 0.0 if whole.startswith("-") else (whole_s * 1000 + int(fraction.ljust(3, "0")[:3])) / 1000


# Lines that a file shows again and again, as one: signs that are set anew for every frame, and captions that roll up.

TOUCH_S = 0.05
"""Two cues touch if no more time than a frame lies between them."""


def unrolled(cues: Iterable[Cue]) -> list[Cue]:
    """Join cues of the same text that touch; of rows that stood in the cue before, only the new ones are said then."""
    said: list[Cue] = []
    places: dict[tuple[str | None, str], int] = {}
    before, last = Cue(-math.inf, -math.inf, ""), 0
    for cue in sorted(cues, key=lambda cue: (cue.start_s, cue.end_s)):
        place = places.get((cue.speaker, cue.text))
        if place is None or cue.start_s - said[place].end_s > TOUCH_S:
            rows = cue.text.split("\n")
            again = _rows_again(before, cue.speaker, rows) if cue.start_s - before.end_s <= TOUCH_S else 0
            place = last if again == len(rows) else len(said)
            if place == len(said):
                said.append(cue._replace(text="\n".join(rows[again:])))
                places[cue.speaker, said[-1].text] = place
        said[place] = said[place]._replace(end_s=max(said[place].end_s, cue.end_s))
        before, last = cue, place
    return said


def _rows_again(before: Cue, speaker: str | None, rows: Sequence[str]) -> int:
    """Count the first rows of a cue that were the last ones of the cue before it."""
    held = before.text.split("\n")
    if before.speaker != speaker:
        return 0
    return next((count for count in range(min(len(held), len(rows)), 0, -1) if held[-count:] == rows[:count]), 0)


# Text of one subtitle cue without its markup: by the rules of ASS for ASS, of SRT and WebVTT for these.
#
# Every pass is linear in the length of the text, whatever it holds: no pattern here looks past the next bracket.

# Tags that players know, of WebVTT (W3C, section 3.2) and of SRT (no standard; what FFmpeg and VLC take).
NAMES = "b|i|u|s|font|em|strong|strike|span|br|c|v|lang|ruby|rt"
TAG = re.compile(rf"</?(?:{NAMES})(?:[.\s/][^<>]*)?>|<(?:\d+:)?\d\d:\d\d[.,]\d\d\d>", re.IGNORECASE)
BREAK = re.compile(r"<br(?:[\s/][^<>]*)?>", re.IGNORECASE)
VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s([^<>]*)>")  # WebVTT: <v.loud Mary>
# No number is longer than Python reads.
ENTITY = re.compile(r"&(?:#\d{1,7}(?!\d)|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?")
# Codes of ASS for place and style that SRT files carry as well, because most players follow them there: {\an8}.
SRT_CODE = re.compile(r"\{\\(?:(?:an?|[biusq]|[kK][fo]?|f(?:s|r[xyz]?)|bord|shad|blur|be)-?[\d.]|[1-4]?(?:c|a|alpha)&"
                      r"|(?:pos|move|fade?|org|i?clip)\()[^{}]*\}")  # fmt: skip
DRAWING = re.compile(r"\\p(\d+)")


def srt_voices(text: str) -> Iterator[tuple[str | None, str]]:
    """Split a cue of SRT as `split_voices` does; codes of place and style in braces go, other text in braces stays."""
    return split_voices(SRT_CODE.sub("", text))


def split_voices(text: str) -> Iterator[tuple[str | None, str]]:
    """Split a cue of WebVTT into (speaker, plain text) of each voice; leaves out empty text.

    Known tags are removed and entities resolved; unknown tags, braces and backslashes are text.
    """
    opening, *voices = VOICE.split(text)
    for speaker, words in [("", opening), *zip(voices[::2], voices[1::2], strict=True)]:
        plain = tidy(_resolve(TAG.sub("", BREAK.sub("\n", words))))
        if plain:
            yield _resolve(speaker).strip() or None, plain


def ass_voices(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield the plain text of an ASS or SSA event, unless there is none; its speaker is not in it."""
    if words := ass_text(text):
        yield None, words


def ass_text(text: str) -> str:
    """Strip the text of an ASS or SSA event of override blocks and drawings; its codes for breaks become these.

    A brace without its partner is text, and so is one after a backslash, as in libass.
    """
    shown: list[str] = []
    position, drawing = 0, False
    while (opening := text.find("{", position)) >= 0:
        escaped = text[opening - 1 : opening] == "\\"
        closing = opening if escaped else text.find("}", opening)
        if closing < 0:
            break
        if not drawing:
            shown.append(text[position : opening - 1] + "{" if escaped else text[position:opening])
        if modes := DRAWING.findall(text, opening, closing):
            drawing = modes[-1].strip("0") != ""
        position = closing + 1
    if not drawing:
        shown.append(text[position:])
    plain = "".join(shown)
    for code, meaning in ((r"\N", "\n"), (r"\n", "\n"), (r"\h", " "), (r"\}", "}")):
        plain = plain.replace(code, meaning)
    return tidy(plain)


def tidy(text: str) -> str:
    """Strip each line of white space; empty lines go, and spaces that do not break become ordinary ones."""
    return "\n".join(line.strip() for line in text.replace("\xa0", " ").splitlines() if line.strip())


def _resolve(text: str) -> str:
    return ENTITY.sub(lambda match: html.unescape(match.group()), text)


# Decode text of unknown encoding.

SAMPLE_BYTES = 1 << 18
MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"),
         (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))  # fmt: skip
"""Byte order marks and what they say; that of UTF-32 begins like that of UTF-16."""
WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
ALWAYS_THERE = ("-->", "WEBVTT", "Dialogue:")
"""Every subtitle file holds one of these."""


def decode_text(data: bytes) -> str:
    """Decode a subtitle file's bytes: by a byte order mark, else as UTF-8, else in the likeliest encoding.

    UTF-16 and UTF-32 without a mark are known by what every subtitle file holds. Of encodings that are equally likely
    it is Windows-1252, the commonest; likelihood is charset-normalizer's, by the first 256 KiB.
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if b"\0" in data[:SAMPLE_BYTES] and (text := _wide_text(data)) is not None:
        return text
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(_likeliest(data), errors="replace")


def _wide_text(data: bytes) -> str | None:
    """Decode UTF-16 or UTF-32 without a byte order mark; None if it is neither."""
    for encoding in WIDE:
        text = data.decode(encoding, errors="replace")
        if any(word in text for word in ALWAYS_THERE):
            return text
    return None


def _likeliest(data: bytes) -> str:
    from charset_normalizer import from_bytes

    sample = data
    if len(data) > SAMPLE_BYTES:  # whole lines: a character that is cut in half would rule its encoding out
        sample = data[: data.rfind(b"\n", 0, SAMPLE_BYTES) + 1 or SAMPLE_BYTES]
    matches = from_bytes(sample)
    best = matches.best()
    if best is None:
        return "cp1252"
    ties = {match.encoding for match in matches if (match.chaos, match.coherence) == (best.chaos, best.coherence)}
    return "cp1252" if "cp1252" in ties else best.encoding
