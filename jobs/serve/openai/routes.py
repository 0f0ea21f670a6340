"""Routes under `/v1`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from index.library import Library
from jobs.serve.openai.chat import Chat, complete
from jobs.serve.openai.errors import RequestRefused, answering
from jobs.serve.openai.model_names import as_listed, chat_models, find_model, library_names
from jobs.serve.openai.pictures import PictureSearch
from jobs.serve.questions import Questions
from jobs.viewer.server import json_response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def openai_routes(questions: Questions, libraries: Sequence[Library]) -> list[Any]:
    """Routes of the endpoint over these libraries, which belong to the thread of the server's loop."""
    from starlette.routing import Route

    settings, began = questions.settings, int(time.time())
    uris = [library.uri for library in libraries]
    models = chat_models(library_names(uris), settings.agent, has_language=settings.choice.has_language)
    chat = Chat(questions, libraries, models, PictureSearch(uris, settings.space))

    async def listing(request: Request) -> Response:
        return json_response({"object": "list", "data": [as_listed(each, began) for each in models]})

    async def one(request: Request) -> Response:
        return json_response(as_listed(find_model(models, request.path_params["name"]), began))

    async def completions(request: Request) -> Response:
        return await complete(chat, request)

    async def unknown(request: Request) -> Response:
        raise RequestRefused(
            f"there is no {request.method} {request.url.path[:100]} here; there are GET /v1/models and POST "
            "/v1/chat/completions",
            code="unknown_url",
            status=404,
        )

    every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    return [
        Route("/v1/models", answering(listing)),
        Route("/v1/models/{name:path}", answering(one)),
        Route("/v1/chat/completions", answering(completions), methods=["POST"]),
        Route("/v1/{rest:path}", answering(unknown), methods=every),
    ]
