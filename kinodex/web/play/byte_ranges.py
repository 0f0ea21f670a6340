"""Range requests for one file (RFC 9110, section 14): the bytes that a request wants, and reading them.

They are read a piece at a time in threads, so that a slow disk or server holds up nobody else.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from dataclasses import dataclass

from kinodex.web.play.source_file import open_source

FILE_PIECE_BYTES = 1 << 18
ONE_RANGE = re.compile(r"bytes=[ \t]*(\d*)-(\d*)[ \t]*", re.ASCII | re.IGNORECASE)
MOST_DIGITS = 18
"""Digits of a position that is read: more name none of any file, and Python refuses very many."""


@dataclass(frozen=True, slots=True)
class Part:
    first: int
    until: int
    is_whole: bool = False

    @property
    def length(self) -> int:
        return self.until - self.first


def choose_part(header: str | None, if_range: str | None, size_bytes: int, etag: str) -> Part | None:
    """Choose the bytes that a request with these headers wants of a file; None: there are none such (416).

    As the RFC allows, a header that is malformed, names another unit or several ranges is ignored: the whole file is
    sent. So is one that comes with an `If-Range` of another state of the file; a date there is never this state's.
    """
    whole = Part(0, size_bytes, is_whole=True)
    match = ONE_RANGE.fullmatch(header) if header is not None else None
    if match is None or (if_range is not None and if_range.strip() != etag):
        return whole
    first, last = match[1], match[2]
    if not first and not last:
        return whole
    if not first:
        length = min(_position(last), size_bytes)
        return Part(size_bytes - length, size_bytes) if length else None
    begin = _position(first)
    if last and _position(last) < begin:
        return whole  # malformed, not unsatisfiable (section 14.1.1)
    until = min(_position(last) + 1, size_bytes) if last else size_bytes
    return Part(begin, until) if begin < size_bytes else None


def _position(digits: str) -> int:
    kept = digits.lstrip("0") or "0"
    return int(kept) if len(kept) <= MOST_DIGITS else int("9" * MOST_DIGITS)


async def read_part(uri: str, part: Part) -> AsyncGenerator[bytes]:
    with ExitStack() as opened:
        file = await asyncio.to_thread(lambda: opened.enter_context(open_source(uri)))
        await asyncio.to_thread(file.seek, part.first)
        left = part.length
        while left > 0:
            piece = await asyncio.to_thread(file.read, min(left, FILE_PIECE_BYTES))
            if not piece:
                return
            left -= len(piece)
            yield piece
