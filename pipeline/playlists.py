"""Playlists: files that name other files, whose frames a demuxer would give as theirs.

A playlist can name any file that its reader may read, so it is read only where somebody allowed it, and then only if
it names plain files in its own folder or below: those are its members, and part of its identity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kinodex.pipeline.errors import PlaylistRefused

HEAD_BYTES = 4096
"""As much as a file's start is read to tell a playlist; demuxers look for these marks no further in."""

MARKS = {
    "hls": re.compile(rb"#EXTM3U"),
    "concat": re.compile(rb"ffconcat version"),
    "vobsub": re.compile(rb"# VobSub index file"),
    "mlv": re.compile(rb"MLVI"),
    "dash": re.compile(rb"\s*<(?s:.)*<MPD\b|\s*<MPD\b"),
    "imf": re.compile(rb"\s*<(?s:.)*<(\w+:)?CompositionPlaylist\b|\s*<(\w+:)?CompositionPlaylist\b"),
    "sdp": re.compile(rb"v=0\r?\n(?s:.)*^[cm]=", re.MULTILINE),
}
"""Start of a file by the name of FFmpeg's demuxer that would open others for it."""

REFERRING_DEMUXERS = frozenset({*MARKS, "rtsp", "sap", "rtp", "webm_dash_manifest", "image2"})
"""Demuxers of FFmpeg that open files or addresses beside the one that they are given."""

PLAYLIST_DEMUXERS = frozenset({"hls", "concat"})
"""Demuxers of the kinds that are read where it is allowed."""

DEVICES = frozenset({"alsa", "fbdev", "kmsgrab", "lavfi", "oss", "video4linux2,v4l2", "x11grab"})

REMEDY = "join them to one file (ffmpeg -i LIST -c copy FILM.mp4)"

SAFE_NAME = re.compile(r"(?!.*(?:^|/)\.)[A-Za-z0-9_.-]+(?: [A-Za-z0-9_.-]+)*(?:/[A-Za-z0-9_.-]+(?: [A-Za-z0-9_.-]+)*)*")
"""A relative path of plain characters and no hidden part, which no reader of playlists takes for anything else."""

BLANKS = " \t"
LONGEST_LINE = 1000
HLS_MAP = re.compile(r'#EXT-X-MAP:URI="([^"]*)"(,BYTERANGE="[0-9@]*")?')
HLS_REFUSED = re.compile(r"#EXT.*URI\s*=|#EXT-X-(STREAM-INF|DEFINE|KEY:(?!METHOD=NONE$))")
CONCAT_FILE = re.compile(r"file\s+(?:'([^'\\]*)'|([^'\\\s]+))")
CONCAT_OTHER = re.compile(r"#|ffconcat version|(duration|inpoint|outpoint)\s")


def playlist_kind(path: Path) -> str | None:
    """Return the kind of a playlist, a key of `MARKS`, by its first bytes; None for any other file. Raises OSError."""
    with path.open("rb") as file:
        return kind_by_head(file.read(HEAD_BYTES))


def kind_by_head(head: bytes) -> str | None:
    head = head.removeprefix(b"\xef\xbb\xbf")
    return next((kind for kind, mark in MARKS.items() if mark.match(head)), None)


def playlist_members(path: Path, kind: str, name: str) -> tuple[Path, ...]:
    """List the files that a playlist names, each once, in order; messages call it `name`.

    Raises PlaylistRefused: it is of a kind that is never read, names anything but plain files in its folder or below,
    or asks for what would make more than these files decide what is shown.
    """
    readers = {"hls": _hls_names, "concat": _concat_names}
    if kind not in readers:
        raise PlaylistRefused(f"{name}: a playlist ({kind}) whose members are not read; {REMEDY}")
    if re.search(r"[?#%\\]", str(path)):
        raise PlaylistRefused(f"{name}: a playlist in a path with ?, #, % or \\, which mean more in one; rename it")
    lines = re.split(r"[\r\n\0]", path.read_bytes().decode("utf-8-sig", "replace"))
    if any(len(line) > LONGEST_LINE for line in lines):
        raise PlaylistRefused(f"{name}: a playlist with a line of more than {LONGEST_LINE} characters; {REMEDY}")
    names = dict.fromkeys(readers[kind](lines, name))
    if not names:
        raise PlaylistRefused(f"{name}: a playlist ({kind}) that names no file; leave it out")
    return tuple(_member(path, each, name) for each in names)


def refusal(name: str, kind: str, is_remote: bool = False) -> PlaylistRefused:
    """Make the error for a playlist that nobody allowed, or that lies elsewhere and could not be allowed."""
    allow = "fetch it with them and allow it" if is_remote else "allow it"
    return PlaylistRefused(
        f"{name}: a playlist ({kind}), which shows what other files hold; name those files, {REMEDY}, or {allow} with "
        "--allow-playlists"
    )


def _member(playlist: Path, member: str, name: str) -> Path:
    path = playlist.parent / member
    if not SAFE_NAME.fullmatch(member) or not path.resolve().is_relative_to(playlist.parent.resolve()):
        raise PlaylistRefused(
            f"{name}: names {member[:200]!r}; allowed are files in its own folder or below, by letters, digits, "
            f". _ - and spaces; {REMEDY}"
        )
    if not path.is_file():
        raise PlaylistRefused(f"{name}: names {member[:200]!r}, and no such file is there; put it there, or {REMEDY}")
    if inner := playlist_kind(path):
        raise PlaylistRefused(f"{name}: names {member[:200]!r}, itself a playlist ({inner}); {REMEDY}")
    return path


def _hls_names(lines: list[str], name: str) -> Iterator[str]:
    """Yield the URIs of a finished media playlist (RFC 8216, section 4) without keys, other lists or more addresses."""
    lines = [line.rstrip(BLANKS) for line in lines]
    if "#EXT-X-ENDLIST" not in lines:
        raise PlaylistRefused(f"{name}: a playlist of streams, or one that still grows; name a list of segments")
    for line in lines:
        if initialisation := HLS_MAP.fullmatch(line):
            yield initialisation[1]
        elif HLS_REFUSED.match(line):
            raise PlaylistRefused(f"{name}: holds the tag {line[:80]!r}, with which it is not read; {REMEDY}")
        elif line and not line.startswith("#"):
            yield line


def _concat_names(lines: list[str], name: str) -> Iterator[str]:
    """Yield the files of an ffconcat script (FFmpeg's formats manual, "concat"), which holds times besides."""
    for line in (each.strip(BLANKS) for each in lines):
        if file := CONCAT_FILE.fullmatch(line):
            yield file[1] or file[2]
        elif line and not CONCAT_OTHER.match(line):
            raise PlaylistRefused(f"{name}: holds the line {line[:80]!r}, with which it is not read; {REMEDY}")
