"""Environments of sets of videos, of which the last few stay in memory, with their vectors, for follow-up questions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kinodex.agent.videos.environment import Detect, Environment
    from kinodex.index.library import LibraryReader
    from kinodex.index.rows import VideoRow
    from kinodex.search.finder import Finder

MOST_ENVIRONMENTS = 8
"""Sets of videos whose vectors stay in memory."""
STATES = ("additions", "speakers")
"""Tables that change whenever a stage adds to videos, or takes away: readers see no rows before these say so."""


class Environments:
    """Environments of a library, by the towers of a finder, and by a detector where one is named."""

    def __init__(self, library: LibraryReader, finder: Finder, detector: str | None) -> None:
        self._library = library
        self._finder = finder
        self._detector = detector
        self._kept: OrderedDict[Any, Environment] = OrderedDict()

    def of(self, among: LibraryReader, rows: Sequence[VideoRow]) -> Environment:
        """Return the environment of these videos, made anew where a stage has changed what is known of them."""
        from kinodex.agent.videos.environment import Environment

        states = tuple(among.tables.version(name) for name in STATES if among.tables.has(name))
        key = tuple((row.video_id, row.ingested_at) for row in rows), states
        found = self._kept.pop(key, None)
        if found is None:
            found = Environment.of(among, rows, self._finder.embed_texts, self._detect, space=self._finder.space)
        self._kept[key] = found
        if len(self._kept) > MOST_ENVIRONMENTS:
            self._kept.popitem(last=False)
        return found

    @cached_property
    def _detect(self) -> Detect | None:
        from kinodex.jobs.detector import detect_with

        return None if self._detector is None else detect_with(self._library, self._detector)
