"""The way in which the page plays a video, and why: its file, a stream made of it, or its stored frames."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.pipeline.errors import PipelineError, SourceError, SourceMissing
from kinodex.redaction import redact, redact_uri
from kinodex.server.responses import NotGiven, numbered
from kinodex.web.play.children import CannotStream, Children
from kinodex.web.play.source_file import CHANGED, PlayFile, find_file, known_sources

if TYPE_CHECKING:
    from kinodex.pipeline.media.facts import MediaFacts

WITHOUT_SOURCE = "imported:"
"""How the URI of a video begins that was imported as words alone."""
INSTALL = "pip install 'kinodex[decode]' on the server lets it repack and convert"
REMOTE_KEPT_S = 30.0
"""A file elsewhere is looked at again after so long; between, a page asks for many of its parts."""
GONE_LIMIT_S = 5.0
LAST_S = 0.1
"""A stream begins no later than so long before the end, where there still is a picture."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A page's wish to play: from a time on, with its browser's abilities, and the ways that it tried in vain."""

    from_s: float | None = None
    can_hevc: bool = False
    failed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Playback:
    """A way to play a video. A time of the library is that of the browser's clock plus `offset_s`.

    `url` is null for a slideshow. `why` is one sentence; `warning` another, if the file is no longer what was indexed.
    `gone` is the address that holds nothing any more, and `remedy` the command by which the library finds it.
    """

    way: Literal["file", "remuxed", "transcoded", "slideshow"]
    why: str
    start_s: float
    duration_s: float
    url: str | None = None
    mime: str | None = None
    offset_s: float = 0.0
    warning: str | None = None
    gone: str | None = None
    remedy: str | None = None


class PlayedVideos:
    """The videos of the libraries as files to play, and what is known of those files. For one thread with a loop."""

    def __init__(self, libraries: Sequence[Library], children: Children) -> None:
        self._libraries = libraries
        self._children = children
        self._facts: dict[tuple[str, str], MediaFacts] = {}
        self._remote: dict[str, tuple[float, PlayFile]] = {}

    def library(self, number: int) -> Library:
        return numbered(self._libraries, number, "library")

    async def file(self, number: int, video_id: str) -> PlayFile:
        """Return the file of a video as it is now. Raises NotGiven, UnknownVideo, SourceError."""
        from kinodex.pipeline.filesystems import is_remote

        library = self.library(number)
        video = library.video(video_id)
        if video.uri.startswith(WITHOUT_SOURCE):
            raise NotGiven("this video was imported as words alone; it has no file")
        first: SourceError | None = None
        for uri, known in known_sources(library, video):
            looked_s, file = self._remote.get(uri, (0.0, None))
            if file is not None and time.monotonic() - looked_s < REMOTE_KEPT_S:
                return file
            try:
                found = await asyncio.to_thread(find_file, uri, known)
            except SourceError as error:
                first = first or error
                continue
            if is_remote(uri):
                self._remote[uri] = time.monotonic(), found
            return found
        raise first or SourceMissing(f"{video.uri}: holds another video by now; put the old one back to play it")

    async def playback(self, number: int, video_id: str, wish: Wish) -> Playback:
        """Choose how to play a video; raises NotGiven and UnknownVideo. A file that cannot be played is a slideshow."""
        row = self.library(number).video(video_id)
        slides = Playback("slideshow", "", row.start_s, row.duration_s)
        try:
            file = await self.file(number, video_id)
        except NotGiven as error:
            return replace(slides, why=str(error))
        except PipelineError as error:
            slides = replace(slides, why=f"its file cannot be read: {redact(str(error))}")
            return await asyncio.to_thread(_with_remedy, self.library(number), row, slides)
        whole = replace(slides, way="file", url=f"/media/{number}/{video_id}", mime=file.mime)
        whole = replace(whole, offset_s=-row.zero_s, warning=CHANGED if file.is_changed else None)
        if find_spec("av") is None:
            return _by_name(row, whole, slides, wish)
        try:
            return await self._by_facts(file, whole, wish)
        except CannotStream as error:
            return replace(slides, why=f"its file cannot be opened: {redact(str(error))}", warning=whole.warning)

    async def _by_facts(self, file: PlayFile, whole: Playback, wish: Wish) -> Playback:
        """Choose by the file's codecs and container; raises CannotStream."""
        from kinodex.pipeline.media.play import playable

        if "transcoded" in wish.failed:
            why = "this browser did not play the file, and not what was made of it either"
            return replace(whole, way="slideshow", why=why, url=None, mime=None)
        unsent = frozenset({"file"}) if file.mime is None else frozenset()
        choice = playable(await self.facts(file), wish.can_hevc, wish.failed | unsent)
        whole = replace(whole, why=choice.why, mime=choice.mime)
        if choice.way == "file":
            return whole
        last_s = max(whole.start_s, whole.start_s + whole.duration_s - LAST_S)
        from_s = min(max(whole.start_s if wish.from_s is None else wish.from_s, whole.start_s), last_s)
        url = f"{whole.url}/stream?way={choice.way}&from={from_s!r}"
        return replace(whole, way=choice.way, url=url, offset_s=from_s)

    async def facts(self, file: PlayFile) -> MediaFacts:
        from kinodex.pipeline.media.facts import MediaFacts

        key = file.uri, file.etag
        if key not in self._facts:
            reply: dict[str, Any] = await self._children.answer({"task": "facts", "uri": file.uri})
            self._facts[key] = MediaFacts(**reply)
        return self._facts[key]


def _with_remedy(library: Library, row: VideoRow, slides: Playback) -> Playback:
    """Say of a file that is gone from its address how the library learns of the new one."""
    from kinodex.jobs.addresses.relocation import relocate_command
    from kinodex.jobs.addresses.states import address_states

    ((state, _),) = address_states(library, [row], GONE_LIMIT_S)
    if state != "gone":
        return slides
    return replace(slides, gone=redact_uri(row.uri), remedy=relocate_command(redact_uri(library.uri), row.uri))


def _by_name(row: VideoRow, whole: Playback, slides: Playback, wish: Wish) -> Playback:
    """Choose without PyAV: the file if its name and codec are such that browsers play it."""
    from kinodex.pipeline.media.play import plays_by_name

    is_likely = plays_by_name(row.codec, PurePosixPath(row.uri).suffix) and whole.mime is not None
    if is_likely and "file" not in wish.failed:
        return replace(whole, why="by its name and codec, browsers play it")
    tried = "this browser did not play the file" if "file" in wish.failed else "browsers do not play such a file"
    return replace(slides, why=f"{tried}, and PyAV is not installed here ({INSTALL})", warning=whole.warning)
