"""A reranker on loopback that speaks as vLLM does, or as text-embeddings-inference: `/rerank`.

    with RerankServer("vllm") as server:
        reranked(library, query, hits, server.url)
    assert server.texts == [["a line", "another"]]

The score of a text is the share of the query's words in it. What is missing in a body is refused as the server would.
"""

from __future__ import annotations

from typing import Any, Literal

from tests.support.loopback import NOT_FOUND, Answer, Call, Server

MOST_TEXTS = 32
"""`--max-client-batch-size` of text-embeddings-inference."""


class RerankServer(Server):
    """Serves `{url}/rerank` until the `with` ends; `answer` takes the place of scores, as status and JSON.

    The first `busy` requests are refused with it.
    """

    def __init__(
        self,
        form: Literal["vllm", "tei"],
        *,
        key: str | None = None,
        answer: tuple[int, Any] | None = None,
        busy: int | None = None,
    ) -> None:
        self.form, self.key, self.answer, self.busy = form, key, answer, busy
        self.texts: list[list[str]] = []

    @property
    def url(self) -> str:
        return self.address

    def respond(self, call: Call) -> Answer:
        body = call.json
        if call.path.rpartition("/")[2] != "rerank":
            return Answer(404, NOT_FOUND)
        if self.key is not None and call.headers.get("authorization") != f"Bearer {self.key}":
            return Answer(401, {"error": "Unauthorized"})
        texts = body.get("documents" if self.form == "vllm" else "texts")
        if texts is None:
            return Answer(422, {"error": "missing field"})
        if self.form == "tei" and (len(texts) > MOST_TEXTS or not body.get("truncate")):
            refusal = {"error": f"batch size {len(texts)}", "error_type": "Validation"}
            return Answer(413 if body.get("truncate") else 422, refusal)
        self.texts.append(texts)
        if self.answer is not None and (self.busy is None or len(self.texts) <= self.busy):
            return Answer(*self.answer)
        words = set(body["query"].casefold().split())
        scores = [len(words & set(text.casefold().split())) / len(words) for text in texts]
        best_first = sorted(enumerate(scores), key=lambda each: -each[1])
        if self.form == "tei":
            return Answer(200, [{"index": at, "score": score} for at, score in best_first])
        results = [
            {"index": at, "document": {"text": texts[at], "multi_modal": None}, "relevance_score": score}
            for at, score in best_first
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return Answer(200, {"id": "rerank-1", "model": "m", "usage": usage, "results": results})
