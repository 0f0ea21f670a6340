"""Routes of the page, its data and its pictures: they only read, and open only what `ViewerApi` holds."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from kinodex.index.errors import SpaceError
from kinodex.jobs.eval.folder import FIGURES
from kinodex.jobs.eval.folder import PAGE as REPORT_PAGE
from kinodex.jobs.pictures import MOST_BYTES
from kinodex.requests import VERBS, Ground, schema_of
from kinodex.server.responses import SAFE, Handler, NotGiven, answering, json_response, numbered_route, response
from kinodex.web.page import parts, served_page
from kinodex.web.posters import Posters
from kinodex.web.query_strings import read_request, whole_number
from kinodex.web.viewer_api import ViewerApi

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

SEARCHES_AT_ONCE = 2
"""While one waits for Lance, another computes; more of them only wait for Python."""
REPLIES_KEPT = 256
"""Replies to searches, of 20 kB each."""
PICTURE_KEPT_S = 300
"""A browser keeps a picture so long before it asks whether it is still the same."""
KEPT_FOR_GOOD = "private, max-age=31536000, immutable"
"""For what has a name that changes with its content."""
SANDBOX = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""A report is a file that somebody may have sent: it may sort its tables, and must not read this server's data."""

LIBRARY = "libraries/{library:number}"


def viewer_routes(api: ViewerApi) -> list[Any]:
    """Routes of the page, its data and its pictures: quick ones in the server's thread, slow ones in another."""
    from starlette.middleware import Middleware
    from starlette.middleware.gzip import GZipMiddleware
    from starlette.routing import Route

    worker = ThreadPoolExecutor(max_workers=SEARCHES_AT_ONCE, thread_name_prefix="slow")

    def data(path: str, answer: Callable[..., Any], *names: str, slow: bool = False) -> Route:
        def respond(request: Request) -> Response:
            return json_response(answer(*(request.path_params[name] for name in names)))

        return numbered_route(f"/data/{path}", answering(respond, worker if slow else None))

    def rows(path: str, page: Callable[..., Any], *further: str) -> Route:
        """Return a route to a page of rows by words, from a row on, with `further` values of the query."""

        def respond(request: Request) -> Response:
            query = request.query_params
            start = whole_number(query.get("start", "0"), "start", "give the number of a row, from 0")
            values = {name: query[name] for name in further if query.get(name)}
            return json_response(page(request.path_params["library"], query.get("words", ""), start, **values))

        return numbered_route(f"/data/{path}", answering(respond))

    def facets(request: Request) -> Response:
        return json_response(api.facets(request.path_params["library"], request.query_params.get("where") or None))

    def extract(request: Request) -> Response:
        path, query = request.path_params, request.query_params
        start = whole_number(query.get("start", "0"), "start", "give the number of a row, from 0")
        return json_response(api.extract(path["library"], path["name"], start, query.get("where") or None))

    return [
        Route("/", answering(_page)),
        Route("/page/{name:path}", answering(_part), middleware=[Middleware(GZipMiddleware)]),
        data("home", lambda: api.home),
        data("requests", lambda: {verb: schema_of(request) for verb, request in VERBS.items()}),
        data("traces/{key}", api.trace, "key"),
        data("traces/{key}/curves", api.curves, "key", slow=True),
        data("runs/{run:number}", api.run, "run"),
        data(LIBRARY, api.library, "library"),
        rows(f"{LIBRARY}/videos", api.videos, "sort", "where"),
        numbered_route(f"/data/{LIBRARY}/facets", answering(facets)),
        numbered_route(f"/data/{LIBRARY}/extracts/{{name}}", answering(extract)),
        rows(f"{LIBRARY}/failures", api.failures),
        data(f"{LIBRARY}/videos/{{video}}", api.video, "library", "video"),
        data(f"{LIBRARY}/videos/{{video}}/detections/{{frame:number}}", api.detections, "library", "video", "frame"),
        numbered_route(f"/data/{LIBRARY}/search", _text_search(api, worker)),
        numbered_route(f"/data/{LIBRARY}/search/picture", _picture_search(api, worker), methods=["POST"]),
        numbered_route(f"/data/{LIBRARY}/examples", _examples(api, worker)),
        numbered_route(f"/data/{LIBRARY}/moments", _ground(api)),
        numbered_route(
            "/pictures/{library:number}/{video}/{frame:number}", answering(lambda request: _picture(api, request))
        ),
        numbered_route("/posters/{library:number}/{video}", _poster(api)),
        numbered_route("/reports/{run:number}/{name:path}", answering(lambda request: _report(api, request))),
    ]


def _page(request: Request) -> Response:
    text, policy = served_page()
    return response(text.encode(), "text/html", policy)


def _part(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in parts():
        raise NotGiven(f"got {name!r}, which is not a part of the page; reload it")
    text, kind = parts()[name]
    reply = response(text.encode(), kind)
    reply.headers["cache-control"] = KEPT_FOR_GOOD
    return reply


def _text_search(api: ViewerApi, worker: ThreadPoolExecutor) -> Handler:
    """Wait for the text tower here and not in the slow thread: searches without one, and in other libraries, go on.

    Replies are kept, and given again until a table of the library changes.
    """
    kept: OrderedDict[Any, bytes] = OrderedDict()

    async def respond(request: Request) -> Response:
        number = request.path_params["library"]
        asked = api.read_search(
            number, request.query_params.multi_items()
        )  # here: the caches of a library belong to this thread
        stamp = api.stamp(number)
        key = number, asked, stamp
        if key in kept:
            kept.move_to_end(key)
            return response(kept[key], "application/json")

        async def embedded(_: Request) -> None:
            load = api.tower_of(number, asked)
            if load is not None:
                await asyncio.shield(asyncio.wrap_future(load))  # a client who goes away does not end it for all others
                await asyncio.shield(asyncio.wrap_future(api.begin_text(number, asked.query)))

        def search(_: Request) -> Response:
            return json_response(api.search(number, asked))

        reply = await answering(search, worker, embedded)(request)
        if stamp is not None and reply.status_code == 200:
            kept[key] = bytes(reply.body)
            if len(kept) > REPLIES_KEPT:
                kept.popitem(last=False)
        return reply

    return answering(respond)


def _examples(api: ViewerApi, worker: ThreadPoolExecutor) -> Handler:
    """Choose searches to begin with, once the text tower is there; none where it cannot be had."""

    async def respond(request: Request) -> Response:
        number = request.path_params["library"]
        stamp = api.stamp(number)  # here: the caches of a library belong to this thread
        if (load := api.text_tower(number)) is None:
            return json_response([])
        try:
            await asyncio.shield(asyncio.wrap_future(load))
        except SpaceError:
            return json_response([])
        return await answering(lambda _: json_response(api.examples(number, stamp)), worker)(request)

    return answering(respond)


def _ground(api: ViewerApi) -> Handler:
    """Ranges have a thread of their own: they are looked for along whole videos, and searches go on meanwhile."""
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ranges")

    async def tower(request: Request) -> None:
        read_request(Ground, request.query_params.multi_items())
        if (load := api.text_tower(request.path_params["library"])) is not None:
            await asyncio.shield(asyncio.wrap_future(load))

    def ground(request: Request) -> Response:
        asked = read_request(Ground, request.query_params.multi_items())
        return json_response(api.ground(request.path_params["library"], asked))

    return answering(ground, worker, tower)


def _picture_search(api: ViewerApi, worker: ThreadPoolExecutor) -> Handler:
    async def respond(request: Request) -> Response:
        # Another site's page cannot send this type without asking first, which this server never grants.
        if not request.headers.get("content-type", "").startswith("image/"):
            return json_response({"error": "send the picture itself, with content-type image/..."}, status=415)
        content = bytearray()
        async for part in request.stream():
            content += part
            if len(content) > MOST_BYTES:
                return json_response({"error": f"give a picture of at most {MOST_BYTES // 1_000_000} MB"}, status=413)

        number = request.path_params["library"]
        asked = api.read_search(number, request.query_params.multi_items())

        def search(_: Request) -> Response:
            return json_response(api.search(number, asked, bytes(content)))

        return await answering(search, worker)(request)

    return answering(respond)


def _picture(api: ViewerApi, request: Request) -> Response:
    """Return a stored frame. Its bytes never change, so a browser may keep it while a search goes on."""
    where = request.path_params
    reply = response(api.picture(where["library"], where["video"], where["frame"]), "image/jpeg")
    reply.headers["cache-control"] = f"private, max-age={PICTURE_KEPT_S}"
    return reply


def _poster(api: ViewerApi) -> Handler:
    """Posters have a thread and open libraries of their own: a page of them holds up no search."""
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

    return answering(answer, worker)


def _report(api: ViewerApi, request: Request) -> Response:
    """Report of a run as it is in its folder, or one of its figures; always in a sandbox."""
    folder = api.run_folder(request.path_params["run"])
    figures = {f"{FIGURES}/{path.name}": path for path in (folder / FIGURES).glob("*.*")}
    path = ({REPORT_PAGE: folder / REPORT_PAGE} | figures).get(request.path_params["name"])
    kinds = {".html": "text/html", ".svg": "image/svg+xml", ".png": "image/png"}
    if path is None or path.suffix not in kinds or not path.is_file() or path.is_symlink():
        raise NotGiven(f"got {request.path_params['name']!r}, which is not a part of the report")
    return response(path.read_bytes(), kinds[path.suffix], SANDBOX)
