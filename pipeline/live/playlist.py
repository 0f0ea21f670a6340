"""A playlist of segments (RFC 8216) on a web server."""

from __future__ import annotations

import io
import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from kinodex.pipeline.errors import PlaylistRefused, SourceForbidden, SourceMissing, SourceUnreachable
from kinodex.pipeline.live.growing_file import LOOK_S
from kinodex.pipeline.live.piece import Piece
from kinodex.pipeline.playlists import HLS_MAP, HLS_REFUSED, kind_by_head

if TYPE_CHECKING:
    import httpx2

MOST_PLAYLIST_BYTES, MOST_SEGMENT_BYTES = 2_000_000, 200_000_000


@dataclass(frozen=True, slots=True)
class _Segment:
    sequence: int
    address: str
    initial: str
    duration_s: float
    is_break: bool
    shown_at: float | None


def published_segments(address: str, name: str, patience_s: float, due: int | None) -> Generator[Piece, None, None]:
    """Yield the segments of a playlist as they are published, from the one numbered `due`, or the first listed."""
    import httpx2

    initials: dict[str, bytes] = {}
    began_at: float | None = None
    new_at = time.monotonic()
    with httpx2.Client(timeout=patience_s, follow_redirects=False) as client:
        while True:
            text = _get(client, address, name, MOST_PLAYLIST_BYTES).decode("utf-8-sig", "replace")
            listed, has_ended, target_s = read_playlist(text, address, name)
            if due is not None and listed and listed[-1].sequence + 1 < due:
                due = None  # the server counts anew
            new = [each for each in listed if due is None or each.sequence >= due]
            for at, each in enumerate(new):
                is_break = each.is_break or each.sequence != due
                if began_at is None or is_break:
                    began_at = each.shown_at or time.time() - sum(rest.duration_s for rest in new[at:])
                try:
                    if each.initial and each.initial not in initials:
                        initials = {each.initial: _get(client, each.initial, name, MOST_SEGMENT_BYTES)}
                    content = _get(client, each.address, name, MOST_SEGMENT_BYTES)
                except SourceMissing:  # it was deleted meanwhile: the next one is a break
                    continue
                file = io.BytesIO(initials.get(each.initial, b"") + content)
                yield Piece(file, each.sequence, is_break, shown_at=(0.0, began_at))
                due, new_at = each.sequence + 1, time.monotonic()
            if has_ended:
                return
            if time.monotonic() - new_at > max(patience_s, 3 * target_s):
                raise SourceUnreachable(
                    f"{name}: no new segment for {time.monotonic() - new_at:.0f} s; is it still on?"
                )
            time.sleep(max(LOOK_S, min(target_s / 2, 2.0)))


def _get(client: httpx2.Client, address: str, name: str, most_bytes: int) -> bytes:
    import httpx2

    try:
        with client.stream("GET", address) as reply:
            if reply.status_code in (401, 403):
                raise SourceForbidden(f"{name}: the server wants a user and a password; give them in the address")
            if reply.status_code in (404, 410):
                raise SourceMissing(f"{name}: the server has no {urlsplit(address).path}; check the address")
            if reply.status_code != 200:
                raise SourceUnreachable(f"{name}: the server says {reply.status_code}; try again later")
            content = bytearray()
            for part in reply.iter_bytes():
                content += part
                if len(content) > most_bytes:
                    raise PlaylistRefused(f"{name}: names a file of more than {most_bytes:,} bytes")
            return bytes(content)
    except httpx2.HTTPError as error:
        raise SourceUnreachable(f"{name}: cannot be read ({type(error).__name__}); check that it is on") from None


def read_playlist(text: str, address: str, name: str) -> tuple[list[_Segment], bool, float]:
    """Read the segments of a media playlist, whether it has ended, and its target duration in seconds.

    Raises PlaylistRefused for what is none, and for one with keys, parts of files, or segments on another server.
    """
    lines = [line.strip() for line in text.splitlines()]
    if kind_by_head(text[:4096].encode()) != "hls":
        raise PlaylistRefused(f"{name}: no HLS playlist; a video's file or page is given without --live")
    variants = [below for line, below in pairwise(lines) if line.startswith("#EXT-X-STREAM-INF")]
    if variants:
        shown = ", ".join(urljoin(name, each) for each in variants[:3])
        raise PlaylistRefused(f"{name}: lists several streams; give one of them: {shown}")
    found: list[_Segment] = []
    sequence, target_s, length_s, initial = 0, 6.0, 0.0, ""
    is_break, shown_at, has_ended = False, None, False
    for line in lines:
        tag, _, value = line.partition(":")
        if initialisation := HLS_MAP.fullmatch(line):
            initial = _own_address(address, initialisation[1], name)
        elif HLS_REFUSED.match(line) or tag == "#EXT-X-BYTERANGE":
            raise PlaylistRefused(f"{name}: holds the tag {tag}, with which it is not read while it grows")
        elif tag == "#EXT-X-MEDIA-SEQUENCE":
            sequence = int(value)
        elif tag == "#EXT-X-TARGETDURATION":
            target_s = float(value)
        elif tag == "#EXTINF":
            length_s = float(value.partition(",")[0])
        elif tag == "#EXT-X-DISCONTINUITY":
            is_break = True
        elif tag == "#EXT-X-PROGRAM-DATE-TIME":
            shown_at = _moment(value)
        elif tag == "#EXT-X-ENDLIST":
            has_ended = True
        elif line and not line.startswith("#"):
            where = _own_address(address, line, name)
            found.append(_Segment(sequence + len(found), where, initial, length_s, is_break, shown_at))
            is_break, shown_at = False, None
    return found, has_ended, target_s


def _moment(text: str) -> float | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text).timestamp()
    return None


def _own_address(playlist: str, member: str, name: str) -> str:
    """Return the address of a file that a playlist names; raises PlaylistRefused for one on another server."""
    found = urljoin(playlist, member)
    own, other = urlsplit(playlist), urlsplit(found)
    if (own.scheme, own.hostname, own.port) != (other.scheme, other.hostname, other.port):
        raise PlaylistRefused(f"{name}: names a segment on {other.hostname}, another server, which is not read")
    if own.username and not other.username:  # the playlist's own user may read its segments
        return other._replace(netloc=own.netloc).geturl()
    return found
