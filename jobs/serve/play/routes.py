"""Routes of playing: how to play a video, its bytes by ranges, a stream made of them, its transcript as captions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from index.clock import presentation_s
from index.errors import KinodexError, LibraryError
from index.library import Library
from index.redact import redact
from jobs.errors import UsageError
from jobs.serve.play.captions import captions_vtt
from jobs.serve.play.children import CannotStream, Children, TooManyStreams
from jobs.serve.play.file_bytes import read_part
from jobs.serve.play.ranges import choose_part
from jobs.serve.play.ways import PlayedVideos, Wish
from jobs.viewer.api import NotGiven
from jobs.viewer.search.request import numbers
from jobs.viewer.server import FORBIDDEN_ELSEWHERE, SAFE, json_response, numbered_route, unless_left

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

HEADERS = SAFE | {"content-security-policy": FORBIDDEN_ELSEWHERE}
FILE_HEADERS = HEADERS | {"cache-control": "private, no-cache", "accept-ranges": "bytes"}
STREAM_WAYS = ("remuxed", "transcoded")
RETRY_S = 5

Answer = Callable[["Request"], Awaitable["Response"]]


def play_routes(libraries: Sequence[Library], children: Children | None = None) -> list[Any]:
    """Routes that play the videos of these libraries; `children` open their files."""
    children = children or Children()
    videos = PlayedVideos(libraries, children)
    where = "/media/{library:number}/{video}"
    return [
        numbered_route(
            "/data/libraries/{library:number}/videos/{video}/playback",
            _answering(lambda request: _playback(videos, request)),
        ),
        numbered_route(where, _answering(lambda request: _file(videos, request))),
        numbered_route(f"{where}/stream", _answering(lambda request: _stream(videos, children, request))),
        numbered_route(f"{where}/captions.vtt", _answering(lambda request: _captions(videos, request))),
    ]


def _answering(answer: Answer) -> Answer:
    """Turn errors about a request or a file into one line of JSON; any other exception is a fault and stays one."""

    async def respond(request: Request) -> Response:
        from pipeline.errors import PipelineError

        try:
            return await unless_left(request, answer(request))
        except (KinodexError, PipelineError) as error:
            response = json_response({"error": redact(str(error))}, status=_status(error))
            if isinstance(error, TooManyStreams):
                response.headers["retry-after"] = str(RETRY_S)
            return response

    return respond


def _status(error: Exception) -> int:
    from pipeline.errors import PipelineError

    if isinstance(error, TooManyStreams):
        return 503
    if isinstance(error, CannotStream):
        return 422
    return 404 if isinstance(error, NotGiven | LibraryError | PipelineError) else 400


async def _playback(videos: PlayedVideos, request: Request) -> Response:
    query = request.query_params
    wish = Wish(_time(request), query.get("hevc") == "1", frozenset(query.get("failed", "").split(",")))
    return json_response(await videos.playback(*_video(request), wish))


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
    return _streamed(read_part(file.uri, part), headers, status)


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
    pieces = children.stream({"task": "stream", "uri": file.uri, "way": way, "from_s": presentation_s(row, from_s)})
    return _streamed(pieces, headers, 200, first=await anext(pieces, b""))


async def _captions(videos: PlayedVideos, request: Request) -> Response:
    from starlette.responses import Response

    number, video_id = _video(request)
    library = videos.library(number)
    text = captions_vtt(library.transcript(library.video(video_id).video_id), _time(request) or 0.0)
    return Response(text, headers=HEADERS, media_type="text/vtt")


def _streamed(pieces: AsyncGenerator[bytes], headers: Mapping[str, str], status: int, first: bytes = b"") -> Response:
    """Response of `first` and these pieces. When it ends, however it does, what gives them is closed, and with it its
    file or child: no garbage collector decides when.
    """
    from starlette.responses import StreamingResponse
    from starlette.types import Receive, Scope, Send

    async def body() -> AsyncGenerator[bytes]:
        if first:
            yield first
        async for piece in pieces:
            yield piece

    class Streamed(StreamingResponse):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            async with aclosing(pieces):
                await super().__call__(scope, receive, send)

    return Streamed(body(), status, headers)


def _video(request: Request) -> tuple[int, str]:
    return request.path_params["library"], request.path_params["video"]


def _time(request: Request) -> float | None:
    return numbers(request.query_params, "from")[0]
