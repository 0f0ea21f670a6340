"""A reranker on loopback that speaks as vLLM does, or as text-embeddings-inference: `/rerank`.

    with RerankServer("vllm") as server:
        reranked(library, query, hits, server.url)
    assert server.texts == [["a line", "another"]]

The score of a text is the share of the query's words in it. What is missing in a body is refused as the server would.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Literal

from tests.support.loopback import send_json, serve_handler

MOST_TEXTS = 32
"""`--max-client-batch-size` of text-embeddings-inference."""


class RerankServer:
    """Serves `{url}/rerank` until the `with` ends; `answer` takes the place of scores, as status and JSON."""

    def __init__(
        self, form: Literal["vllm", "tei"], *, key: str | None = None, answer: tuple[int, Any] | None = None
    ) -> None:
        self.form, self.key, self.answer = form, key, answer
        self.texts: list[list[str]] = []
        self._address = ""
        self._serving = serve_handler(self._handler())

    @property
    def url(self) -> str:
        return self._address

    def __enter__(self) -> RerankServer:
        self._address = self._serving.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._serving.__exit__(kind, error, trace)

    def reply(self, path: str, key: str | None, body: dict[str, Any]) -> tuple[int, Any]:
        """Status and JSON for one request."""
        if path.rpartition("/")[2] != "rerank":
            return 404, {"detail": "Not Found"}
        if self.key is not None and key != f"Bearer {self.key}":
            return 401, {"error": "Unauthorized"}
        texts = body.get("documents" if self.form == "vllm" else "texts")
        if texts is None:
            return 422, {"error": "missing field"}
        if self.form == "tei" and (len(texts) > MOST_TEXTS or not body.get("truncate")):
            return 413 if body.get("truncate") else 422, {
                "error": f"batch size {len(texts)}",
                "error_type": "Validation",
            }
        self.texts.append(texts)
        if self.answer is not None:
            return self.answer
        words = set(body["query"].casefold().split())
        scores = [len(words & set(text.casefold().split())) / len(words) for text in texts]
        best_first = sorted(enumerate(scores), key=lambda each: -each[1])
        if self.form == "tei":
            return 200, [{"index": at, "score": score} for at, score in best_first]
        results = [
            {"index": at, "document": {"text": texts[at], "multi_modal": None}, "relevance_score": score}
            for at, score in best_first
        ]
        return 200, {
            "id": "rerank-1",
            "model": "m",
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
            "results": results,
        }

    def _handler(server) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler has a self of its own
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name
                """Nothing is printed."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                send_json(self, *server.reply(self.path, self.headers.get("authorization"), body))

        return Handler
