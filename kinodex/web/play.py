"""Playing the videos of a library in the page, from where they were ingested: files, streams made of them, captions.

No request names a path or an address: only a library's number and the id of one of its videos.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from html import escape
from importlib.util import find_spec
from pathlib import PurePosixPath
from stat import S_ISREG
from typing import IO, TYPE_CHECKING, Any, Literal

from kinodex.guards import (
    FORBIDDEN_ELSEWHERE,
    SAFE,
    NotGiven,
    Refused,
    answering,
    json_response,
    numbered,
    numbered_route,
    streamed,
    unless_left,
)
from kinodex.index.clocks import presentation_s
from kinodex.index.library import Library
from kinodex.index.rows import SpeechRow, VideoRow
from kinodex.index.times import cue_clock
from kinodex.jobs.child_processes import child_environment
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.errors import PipelineError, SourceError, SourceMissing, SourceUnreachable
from kinodex.redaction import redact, redact_uri
from kinodex.web.query_strings import times_s

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from kinodex.pipeline.media.facts import MediaFacts

HEADERS = SAFE | {"content-security-policy": FORBIDDEN_ELSEWHERE}
FILE_HEADERS = HEADERS | {"cache-control": "private, no-cache", "accept-ranges": "bytes"}
STREAM_WAYS = ("remuxed", "transcoded")


def play_routes(libraries: Sequence[Library], children: Children | None = None) -> list[Any]:
    """Routes that play the videos of these libraries; `children` open their files."""
    children = children or Children()
    videos = PlayedVideos(libraries, children)

    def route(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
        return numbered_route(path, answering(lambda request: unless_left(request, answer(request))))

    async def playback(request: Request) -> Response:
        query = request.query_params
        wish = Wish(_time(request), query.get("hevc") == "1", frozenset(query.get("failed", "").split(",")))
        return json_response(await videos.playback(*_video(request), wish))

    where = "/media/{library:number}/{video}"
    return [
        route("/data/libraries/{library:number}/videos/{video}/playback", playback),
        route(where, lambda request: _file(videos, request)),
        route(f"{where}/stream", lambda request: _stream(videos, children, request)),
        route(f"{where}/captions.vtt", lambda request: _captions(videos, request)),
    ]


async def _file(videos: PlayedVideos, request: Request) -> Response:
    """Bytes of a file that browsers may play as it is, and of no other; the range that is asked for."""
    from starlette.responses import Response

    file = await videos.file(*_video(request))
    if file.mime is None:
        raise NotGiven("the file is none that browsers play as it is; ask for its playback")
    headers = FILE_HEADERS | {"etag": file.etag}
    if request.headers.get("if-none-match") == file.etag and "range" not in request.headers:
        return Response(status_code=304, headers=headers)
    asked = request.headers.get("range"), request.headers.get("if-range")
    part = choose_part(*asked, file.size_bytes, file.etag)
    if part is None:
        return Response(status_code=416, headers=headers | {"content-range": f"bytes */{file.size_bytes}"})
    headers |= {"content-length": str(part.length), "content-type": file.mime}
    if not part.is_whole:
        headers["content-range"] = f"bytes {part.first}-{part.until - 1}/{file.size_bytes}"
    status = 200 if part.is_whole else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    return streamed(read_part(file.uri, part), headers, status)


async def _stream(videos: PlayedVideos, children: Children, request: Request) -> Response:
    """Stream of a video from a time on; it has begun when the response does, so a broken file is an error."""
    from starlette.responses import Response

    way, from_s = request.query_params.get("way"), _time(request)
    if way not in STREAM_WAYS or from_s is None:
        raise UsageError(f"got way {way!r} from {from_s}; give way={' or '.join(STREAM_WAYS)} and from=SECONDS")
    number, video_id = _video(request)
    file, row = await videos.file(number, video_id), videos.library(number).video(video_id)
    await videos.facts(file)  # it is a video: nothing else is ever opened for a stream
    headers = HEADERS | {"content-type": "video/mp4", "accept-ranges": "none"}
    if request.method == "HEAD":
        return Response(headers=headers)
    times_s = {"from_s": presentation_s(row, from_s), "end_s": presentation_s(row, row.end_s)}
    pieces = children.stream({"task": "stream", "uri": file.uri, "way": way, **times_s})
    return streamed(pieces, headers, 200, first=await anext(pieces, b""))


async def _captions(videos: PlayedVideos, request: Request) -> Response:
    from starlette.responses import Response

    number, video_id = _video(request)
    library = videos.library(number)
    text = captions_vtt(library.speech(library.video(video_id).video_id), _time(request) or 0.0)
    return Response(text, headers=HEADERS, media_type="text/vtt")


def _video(request: Request) -> tuple[int, str]:
    return request.path_params["library"], request.path_params["video"]


def _time(request: Request) -> float | None:
    return times_s(request.query_params, "from")[0]


# Choice of the way in which the page plays a video: its file, a stream made of it, or its stored frames; and why.

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
        """The file of a video as it is now. Raises NotGiven, UnknownVideo, SourceError."""
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
    from kinodex.jobs.addresses import address_states, relocate_command

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


# The file that a video of a library was read from, as it is now.

HEAD_BYTES = 4096
MP4_BOXES = (b"ftyp", b"styp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot")
"""Types of the box that an MP4 or QuickTime file begins with (ISO/IEC 14496-12, 4.2), four bytes after its length."""
EBML = b"\x1a\x45\xdf\xa3"
CHANGED = "the file has changed since it was indexed, so times and frames may differ"


@dataclass(frozen=True, slots=True)
class PlayFile:
    """A source that is there: `uri` is the library's, `is_changed` if it is no longer what was indexed."""

    uri: str
    size_bytes: int
    etag: str
    mime: str | None
    is_changed: bool
    """`mime` is None where the first bytes are of no container that browsers play as it is: those are never sent."""


def known_sources(library: Library, video: VideoRow) -> list[tuple[str, tuple[int | None, str] | None]]:
    """A video's address and the copies that an ingest found, each with size and mark as it was read, if noted."""
    places = [each for each in library.ingest_log.places(video) if each.video_id == video.video_id]
    return [(each.uri, (each.size_bytes, each.stamp) if each.stamp else None) for each in places]


def find_file(uri: str, known: tuple[int | None, str] | None) -> PlayFile:
    """Look at a source: its state, its first bytes. Blocks; for a thread. Raises a SourceError or PlaylistRefused."""
    from kinodex.pipeline.filesystems import attempt, is_remote
    from kinodex.pipeline.playlists import kind_by_head, refusal
    from kinodex.pipeline.source import Source
    from kinodex.pipeline.stamps import stamp

    now = stamp(Source(uri, title=""))
    with open_source(uri) as file:
        head = attempt(uri, lambda: file.read(HEAD_BYTES))
    if kind := kind_by_head(head):
        raise refusal(uri, kind, is_remote=is_remote(uri))
    if now is None:
        raise SourceUnreachable(f"{uri}: its server does not say how large it is, or what state it has; copy it here")
    is_changed = known is not None and known != (now.size_bytes, now.mark)
    # Strong: made of the file's size and mark, and without what these may give away.
    etag = f'"{hashlib.sha256(f"{now.size_bytes} {now.mark}".encode()).hexdigest()[:24]}"'
    mime = "video/mp4" if head[4:8] in MP4_BOXES else "video/webm" if head.startswith(EBML) else None
    return PlayFile(uri, now.size_bytes, etag, mime, is_changed)


# Range requests for one file (RFC 9110, section 14): which of its bytes a request wants.
#
# They are read a piece at a time in threads, so that a slow disk or server holds up nobody else.

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


def open_source(uri: str) -> AbstractContextManager[IO[bytes]]:
    from kinodex.pipeline.filesystems import is_remote
    from kinodex.pipeline.remote_parts import open_parts

    return open_parts(uri) if is_remote(uri) else open_local(uri)


def open_local(uri: str) -> IO[bytes]:
    """Open a regular file, never waiting for a pipe's other end; raises SourceMissing or SourceForbidden."""
    from kinodex.pipeline.fetch import local_file
    from kinodex.pipeline.filesystems import attempt

    path = local_file(uri)
    file = attempt(uri, lambda: os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb"))
    if not S_ISREG(os.fstat(file.fileno()).st_mode):  # it was replaced between the look and the opening
        file.close()
        raise SourceMissing(f"{uri}: is no regular file; name a file")
    return file


# Child processes that open media files: what they find out, and the streams that they write.
#
# A file that crashes, hangs or fills a decoder ends its child and nothing else. A child lives as long as its client: it
# is killed as soon as nobody wants its answer, and by the kernel if this process ends.

MEMORY_BYTES = 1_500_000_000
ANSWER_S = 30.0
"""Longest time to look into a file; one on a slow server needs many reads."""
SILENCE_S = 60.0
"""A stream ends that writes nothing for so long."""
UNREAD_S = 60.0
"""A stream ends that its client does not read for so long: it can go on later."""
PIECE_BYTES = 1 << 16
MODULE = "kinodex.pipeline.media.stream_child"


class CannotStream(Refused):
    """A file that cannot be looked into or streamed: it is broken, or took its child down."""

    status = 422


class TooManyStreams(Refused):
    """All children that may stream at once do."""

    status = 503
    retry_s = 4.0


class Children:
    """The children of one server: at most `most` that stream, the others for moments."""

    def __init__(self, most: int = 4, unread_s: float = UNREAD_S) -> None:
        self._most = most
        self._unread_s = unread_s
        self.streaming: set[Process] = set()

    async def answer(self, task: dict[str, Any]) -> dict[str, Any]:
        async with _child(task) as child:
            try:
                printed, errors = await asyncio.wait_for(_read_all(child), ANSWER_S)
            except TimeoutError:
                raise CannotStream(f"the file could not be looked into within {ANSWER_S:.0f} s") from None
        if child.returncode != 0:
            raise CannotStream(_reason(child, errors))
        reply: dict[str, Any] = json.loads(printed)
        return reply

    async def stream(self, task: dict[str, Any]) -> AsyncGenerator[bytes]:
        """Yield what a child streams. Before the first bytes raises CannotStream or TooManyStreams.

        It is killed when this generator is closed, at an exception too. A stream that breaks off raises CannotStream.
        """
        if len(self.streaming) >= self._most:
            raise TooManyStreams(f"{self._most} videos are being repacked or converted already; close one of them")
        async with _child(task) as child:
            self.streaming.add(child)
            try:
                assert child.stdout is not None
                while piece := await asyncio.wait_for(child.stdout.read(PIECE_BYTES), SILENCE_S):
                    unread = asyncio.get_running_loop().call_later(self._unread_s, _kill, child)
                    try:
                        yield piece
                    finally:
                        unread.cancel()
                assert child.stderr is not None
                errors = await child.stderr.read()
                if await child.wait() != 0:
                    raise CannotStream(_reason(child, errors))
            except TimeoutError:
                raise CannotStream("the file gave nothing more for too long") from None
            finally:
                self.streaming.discard(child)


@asynccontextmanager
async def _child(task: dict[str, Any]) -> AsyncIterator[Process]:
    """Start a child for one task; it is dead when the block ends."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", MODULE, str(MEMORY_BYTES), json.dumps(task)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=PIECE_BYTES,
        env=child_environment() | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    try:
        yield child
    finally:
        _kill(child)
        await asyncio.shield(child.wait())


def _kill(child: Process) -> None:
    if child.returncode is None:
        with suppress(ProcessLookupError):  # it has just ended
            child.kill()


async def _read_all(child: Process) -> tuple[bytes, bytes]:
    assert child.stdout is not None and child.stderr is not None
    printed, errors = await asyncio.gather(child.stdout.read(), child.stderr.read())
    await child.wait()
    return printed, errors


def _reason(child: Process, errors: bytes) -> str:
    """Say why a child failed; a mistake in this program is raised as one, with its traceback."""
    from kinodex.pipeline.child_limits import OUT_OF_MEMORY
    from kinodex.pipeline.media.stream_child import BROKEN_FILE

    if child.returncode == BROKEN_FILE:
        message: str = json.loads(errors.splitlines()[-1])["message"]
        return message
    if child.returncode == OUT_OF_MEMORY:
        return f"decoding it takes more than {MEMORY_BYTES / 1e6:.0f} MB of memory"
    if child.returncode is not None and child.returncode < 0:
        return f"the process that reads it was ended by signal {-child.returncode}"
    raise RuntimeError(f"the process that reads a video failed: {errors.decode(errors='replace')}")


# A video's transcript as WebVTT, for players.

SHORTEST_S = 0.001


def captions_vtt(lines: Iterable[SpeechRow], zero_s: float) -> str:
    """Write lines as WebVTT (W3C) on a clock that begins at `zero_s` of the library's; none that ended before."""
    cues = [_cue(line, zero_s) for line in lines if line.end_s > zero_s and line.text.strip()]
    return "\n\n".join(["WEBVTT", *cues]) + "\n"


def _cue(line: SpeechRow, zero_s: float) -> str:
    start_s = max(line.start_s - zero_s, 0.0)
    end_s = max(line.end_s - zero_s, start_s + SHORTEST_S)
    said = f"{line.speaker}: {line.text}" if line.speaker else line.text
    # An empty line would end the cue, and "-->" would begin another; escape() takes care of the latter.
    text = "\n".join(part.strip() for part in escape(said, quote=False).splitlines() if part.strip())
    return f"{cue_clock(start_s)} --> {cue_clock(end_s)}\n{text}"
