"""Routes that play the videos of libraries in the page, from where they were ingested: files, streams, captions.

No request names a path or an address: only a library's number and the id of one of its videos.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from kinodex.index.clocks import presentation_s
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.server.responses import (
    FORBIDDEN_ELSEWHERE,
    SAFE,
    NotGiven,
    answering,
    json_response,
    numbered_route,
    streamed,
    unless_left,
)
from kinodex.web.play.byte_ranges import choose_part, read_part
from kinodex.web.play.captions import captions_vtt
from kinodex.web.play.children import Children
from kinodex.web.play.playback import PlayedVideos, Wish
from kinodex.web.query_strings import times_s

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


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
