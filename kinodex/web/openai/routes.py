"""Routes of OpenAI's API over questions of `kinodex serve`: `/v1/models`, `/v1/chat/completions`, `/v1/responses`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kinodex.index.library import Library
from kinodex.server.responses import json_response
from kinodex.web.openai.chat_completions import ChatBody
from kinodex.web.openai.errors import RequestRefused, answering
from kinodex.web.openai.models import ChatModel, chat_models, find_model, library_names
from kinodex.web.openai.picture_search import PictureSearch
from kinodex.web.openai.question import ChatDesk
from kinodex.web.openai.request import reply_to
from kinodex.web.openai.responses import ResponseBody
from kinodex.web.questions import Questions

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def openai_routes(questions: Questions, libraries: Sequence[Library]) -> list[Any]:
    """Routes of the API over these libraries, which belong to the thread of the server's loop."""
    from starlette.routing import Route

    settings, began = questions.settings, int(time.time())
    uris = [library.uri for library in libraries]
    models = chat_models(library_names(uris), settings.agent, has_language=settings.choice.has_language)
    desk = ChatDesk(questions, libraries, models, PictureSearch(uris, settings.space))

    def listed(model: ChatModel) -> dict[str, Any]:
        return {"id": model.name, "object": "model", "created": began, "owned_by": "kinodex"}

    async def listing(request: Request) -> Response:
        return json_response({"object": "list", "data": [listed(each) for each in models]})

    async def one(request: Request) -> Response:
        return json_response(listed(find_model(models, request.path_params["name"])))

    async def completions(request: Request) -> Response:
        return await reply_to(desk, request, ChatBody)

    async def responses(request: Request) -> Response:
        return await reply_to(desk, request, ResponseBody)

    async def unknown(request: Request) -> Response:
        raise RequestRefused(
            f"there is no {request.method} {request.url.path[:100]} here; there are GET /v1/models, POST "
            "/v1/chat/completions and POST /v1/responses",
            code="unknown_url",
            status=404,
        )

    every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    return [
        Route("/v1/models", answering(listing)),
        Route("/v1/models/{name:path}", answering(one)),
        Route("/v1/chat/completions", answering(completions), methods=["POST"]),
        Route("/v1/responses", answering(responses), methods=["POST"]),
        Route("/v1/{rest:path}", answering(unknown), methods=every),
    ]
