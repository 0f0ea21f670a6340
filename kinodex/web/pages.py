"""HTTP server of the viewer: it only reads, accepts only its own address, and opens only what `ViewerApi` holds."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from kinodex.agent.errors import TraceError
from kinodex.guards import SAFE, json_response, response
from kinodex.index.errors import KinodexError, LibraryError, QueryError
from kinodex.jobs.eval.folder import FIGURES
from kinodex.jobs.eval.folder import PAGE as REPORT_PAGE
from kinodex.jobs.pictures import MOST_BYTES
from kinodex.web.inputs import NotGiven, ViewerApi
from kinodex.web.page import Posters, modules, served_page, style
from kinodex.web.search import read_ground_request, read_request, whole_number

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

CLIENT_LEFT = 499
"""The status that logs know for a client who did not wait; nobody is sent it."""
PICTURE_KEPT_S = 300
"""A browser keeps a picture so long before it asks whether it is still the same."""
SANDBOX = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""A report is a file that somebody may have sent: it may sort its tables, and must not read this server's data."""

Handler = Callable[["Request"], Any]


def make_app(api: ViewerApi, hosts: list[str]) -> Starlette:
    """Make the ASGI application; it refuses requests whose Host is not among `hosts`."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    # With DNS rebinding a page of another site can reach loopback, but not under one of our names.
    return Starlette(
        routes=viewer_routes(api),
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)],
    )


def serve(api: ViewerApi, listener: socket.socket, hosts: list[str]) -> None:
    """Serve until Ctrl-C: quick requests in one thread, slow ones in another, because a library's caches need it.

    The text towers of the libraries are loaded meanwhile, so that the first search waits as little as it can.
    """
    import uvicorn

    app = make_app(api, hosts)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1
    )
    with closing(api), suppress(KeyboardInterrupt):  # Ctrl-C is how to end it
        api.load_towers()
        uvicorn.Server(config).run(sockets=[listener])


def numbered_route(path: str, answer: Handler, **more: Any) -> Route:
    """A route with numbers in its path, `{library:number}`: nothing has longer ones, and Python may not read them."""
    from starlette.convertors import IntegerConvertor, register_url_convertor
    from starlette.routing import Route

    class Number(IntegerConvertor):
        regex = "[0-9]{1,9}"

    register_url_convertor("number", Number())
    return Route(path, answer, **more)


def viewer_routes(api: ViewerApi) -> list[Any]:
    """Routes of the page, its data and its pictures; `kinodex serve` adds its own to them."""
    from starlette.routing import Route

    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="slow")

    def data(path: str, answer: Handler, slow: bool = False) -> Route:
        return numbered_route(
            f"/data/{path}", guarded(lambda request: json_response(answer(request)), worker if slow else None)
        )

    return [
        Route("/", guarded(lambda request: _page())),
        Route("/page/{name:path}", guarded(_part)),
        data("home", lambda request: api.home),
        data("traces/{key}", lambda request: api.trace(request.path_params["key"])),
        data("traces/{key}/curves", lambda request: api.curves(request.path_params["key"]), slow=True),
        data("runs/{run:number}", lambda request: api.run(request.path_params["run"])),
        data("libraries/{library:number}", lambda request: api.library(request.path_params["library"])),
        data("libraries/{library:number}/videos", lambda request: _rows(api.videos, request, "sort")),
        data("libraries/{library:number}/failures", lambda request: _rows(api.failures, request)),
        numbered_route("/data/libraries/{library:number}/search", _text_search(api, worker)),
        numbered_route(
            "/data/libraries/{library:number}/search/picture", _picture_search(api, worker), methods=["POST"]
        ),
        numbered_route("/data/libraries/{library:number}/moments", _ground(api)),
        data(
            "libraries/{library:number}/videos/{video}",
            lambda request: api.video(request.path_params["library"], request.path_params["video"]),
        ),
        data(
            "libraries/{library:number}/videos/{video}/detections/{frame:number}",
            lambda request: _detections(api, request),
        ),
        numbered_route(
            "/pictures/{library:number}/{video}/{frame:number}", guarded(lambda request: _picture(api, request))
        ),
        _poster_route(api),
        numbered_route("/reports/{run:number}/{name:path}", guarded(lambda request: _report(api, request))),
    ]


def guarded(
    answer: Callable[[Request], Response],
    worker: ThreadPoolExecutor | None = None,
    first: Callable[[Request], Awaitable[None]] | None = None,
) -> Callable[[Request], Awaitable[Response]]:
    """Turn errors about missing or wrong inputs into one line of JSON; any other exception is a fault and stays one.

    `first` is awaited before the answer is made, in the thread `worker` if there is one.
    """

    async def respond(request: Request) -> Response:
        try:
            if first is not None:
                await first(request)
            if worker is None:
                return answer(request)
            return await unless_left(request, asyncio.get_running_loop().run_in_executor(worker, answer, request))
        except (KinodexError, TraceError) as error:
            return json_response({"error": str(error)}, status=status_of(error))

    return respond


async def unless_left(request: Request, work: Awaitable[Response]) -> Response:
    """Do the work of a request whose body was read; it is cancelled when its client goes, who reads no answer."""
    from starlette.responses import Response

    doing, left = asyncio.ensure_future(work), asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait([doing, left], return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return await doing
    finally:
        left.cancel()
        doing.cancel()
    await asyncio.wait([doing])
    left.result()  # raises if its body was too large instead
    return Response(status_code=CLIENT_LEFT)


async def disconnected(request: Request) -> None:
    """Wait until the client of a request whose body was read has gone."""
    message: Any = {}
    while message.get("type") != "http.disconnect":
        message = await request.receive()


def status_of(error: Exception) -> int:
    """HTTP status of an error about a request: 404 for what is not there, else 400."""
    unknown = isinstance(error, NotGiven | TraceError | LibraryError) and not isinstance(error, QueryError)
    return 404 if unknown else 400


def _page() -> Response:
    text, policy = served_page()
    return response(text.encode(), "text/html", policy)


def _part(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "viewer.css":
        return response(style().encode(), "text/css")
    if name not in modules():
        raise NotGiven(f"got {name!r}, which is not a part of the page")
    return response(modules()[name].encode(), "text/javascript")


def _rows(page: Callable[..., Any], request: Request, *further: str) -> Any:
    query = request.query_params
    start = whole_number(query.get("start", "0"), "start", "give the number of a row, from 0")
    values = [query[name] for name in further if name in query]
    return page(request.path_params["library"], query.get("words", ""), start, *values)


def _text_search(api: ViewerApi, worker: ThreadPoolExecutor) -> Callable[[Request], Awaitable[Response]]:
    """Wait for the text tower here and not in the slow thread: searches without one, and in other libraries, go on."""

    async def tower(request: Request) -> None:
        load = api.tower_of(request.path_params["library"], read_request(request.query_params))
        if load is not None:
            await asyncio.shield(asyncio.wrap_future(load))  # a client who goes away does not end it for all others

    def search(request: Request) -> Response:
        return json_response(api.search(request.path_params["library"], read_request(request.query_params)))

    return guarded(search, worker, tower)


def _ground(api: ViewerApi) -> Callable[[Request], Awaitable[Response]]:
    """Ranges have a thread of their own: they are looked for along whole videos, and searches go on meanwhile."""
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ranges")

    async def tower(request: Request) -> None:
        read_ground_request(request.query_params)
        await asyncio.shield(asyncio.wrap_future(api.ground_tower(request.path_params["library"])))

    def ground(request: Request) -> Response:
        return json_response(api.ground(request.path_params["library"], read_ground_request(request.query_params)))

    return guarded(ground, worker, tower)


def _picture_search(api: ViewerApi, worker: ThreadPoolExecutor) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        # Another site's page cannot send this type without asking first, which this server never grants.
        if not request.headers.get("content-type", "").startswith("image/"):
            return json_response({"error": "send the picture itself, with content-type image/..."}, status=415)
        content = bytearray()
        async for part in request.stream():
            content += part
            if len(content) > MOST_BYTES:
                return json_response({"error": f"give a picture of at most {MOST_BYTES // 1_000_000} MB"}, status=413)
        answer = guarded(lambda request: json_response(_search_picture(api, request, bytes(content))), worker)
        return await answer(request)

    return respond


def _search_picture(api: ViewerApi, request: Request, content: bytes) -> Any:
    return api.search_picture(request.path_params["library"], content, read_request(request.query_params))


def _detections(api: ViewerApi, request: Request) -> Any:
    where = request.path_params
    return api.detections(where["library"], where["video"], where["frame"])


def _picture(api: ViewerApi, request: Request) -> Response:
    """A stored frame. Its bytes never change, so a browser may keep it while a search goes on."""
    where = request.path_params
    reply = response(api.picture(where["library"], where["video"], where["frame"]), "image/jpeg")
    reply.headers["cache-control"] = f"private, max-age={PICTURE_KEPT_S}"
    return reply


def _poster_route(api: ViewerApi) -> Route:
    """Route of posters, which have a thread and open libraries of their own: a page of them holds up no search."""
    from starlette.responses import Response

    posters = Posters([library.uri for library in api.inputs.libraries])
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="posters")

    def answer(request: Request) -> Response:
        where = request.path_params
        tag = f'"{posters.tag(where["library"], where["video"])}"'
        kept = {"etag": tag, "cache-control": f"private, max-age={PICTURE_KEPT_S}"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=SAFE | kept)
        poster = posters.poster(where["library"], where["video"])
        reply = response(poster.jpeg, "image/jpeg")
        reply.headers.update(kept | {"x-frame-no": str(poster.frame_no)})
        return reply

    return numbered_route("/posters/{library:number}/{video}", guarded(answer, worker))


def _report(api: ViewerApi, request: Request) -> Response:
    """Report of a run as it is in its folder, or one of its figures; always in a sandbox."""
    folder = api.run_folder(request.path_params["run"])
    figures = {f"{FIGURES}/{path.name}": path for path in (folder / FIGURES).glob("*.*")}
    path = ({REPORT_PAGE: folder / REPORT_PAGE} | figures).get(request.path_params["name"])
    kinds = {".html": "text/html", ".svg": "image/svg+xml", ".png": "image/png"}
    if path is None or path.suffix not in kinds or not path.is_file() or path.is_symlink():
        raise NotGiven(f"got {request.path_params['name']!r}, which is not a part of the report")
    return response(path.read_bytes(), kinds[path.suffix], SANDBOX)
