"""Environments of a server's libraries, opened when they are first asked about and kept for the next question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from agent.environment import Environment
from index.library import Library
from index.rows import VideoRow
from jobs.open_library import open_environment

KEPT = 8
"""Sets of videos whose vectors stay in memory for follow-up questions."""

STATES = ("additions", "speakers")
"""Tables that change whenever a stage adds to videos, or takes away: readers see no rows before these say so."""

Key = tuple[int, tuple[tuple[str, datetime], ...], tuple[int, ...]]
"""All that an environment is made of: the library, its videos as they were ingested, and what was added since."""


class Environments:
    """Environments by library and videos, for the thread of the questions alone."""

    def __init__(self, uris: Sequence[str], detector: str | None, space: str | None) -> None:
        self._uris, self._detector, self._space = tuple(uris), detector, space
        self._opened: dict[int, tuple[Library, Environment]] = {}
        self._recent: dict[Key, Environment] = {}
        self._opening = asyncio.Lock()

    async def of(self, number: int, video_ids: Sequence[str]) -> Environment:
        """The videos of these ids (none: all that the library has now), with the text tower of its space.

        Raises LibraryError, UnknownVideo or SpaceError.
        """
        async with self._opening:
            if number not in self._opened:  # the tower takes seconds to load
                self._opened[number] = await asyncio.to_thread(self._open, number)
        library, whole = self._opened[number]
        rows = [library.video(each) for each in video_ids] or library.videos()
        states = tuple(library.tables.version(name) for name in STATES if library.tables.has(name))
        key = (number, tuple((row.video_id, row.ingested_at) for row in rows), states)
        found = self._recent.pop(key, None) or self._make(library, rows, whole)
        self._recent[key] = found
        if len(self._recent) > KEPT:
            self._recent.pop(next(iter(self._recent)))
        return found

    def _open(self, number: int) -> tuple[Library, Environment]:
        library = Library.open(self._uris[number])
        return library, open_environment(library, detector=self._detector, space=self._space)

    def _make(self, library: Library, rows: Sequence[VideoRow], whole: Environment) -> Environment:
        return Environment.of(library, rows, whole.source.embed_texts, whole.detect, space=self._space)
