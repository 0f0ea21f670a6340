"""A reranker behind an endpoint orders what a search found, by its words. `--rerank`.

`/rerank` is asked as vLLM serves it (`documents`; `results` with a `relevance_score` each) and as Hugging Face's
text-embeddings-inference does (`texts`; a list with a `score` each): one body has the fields of both, either reply is
read. What it says is an order, and claims nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError

from kinodex.agent.errors import ModelRejected, ModelUnreachable, NoCompletion
from kinodex.index.library import LibraryReader
from kinodex.index.nesting import parse_json
from kinodex.index.rows import Hit
from kinodex.jobs.errors import UsageError
from kinodex.jobs.library import batched
from kinodex.jobs.verification.requests import lines_in
from kinodex.jobs.verification.spans import Span
from kinodex.redaction import redact, redact_uri

if TYPE_CHECKING:
    import httpx2

AHEAD, MOST_AHEAD = 4, 200
"""The reranker gets `AHEAD` times as many hits as are asked for, at most `MOST_AHEAD`."""
TEXTS_A_REQUEST = 32
"""As many as text-embeddings-inference takes unless its user says otherwise."""
LONGEST_TEXT = 2000
TIMEOUT_S = 60.0
BUSY, LEAST_WAIT_S = (429, 503), 0.5
KEY = "KINODEX_RERANK_KEY"
"""Environment variable with a key, for a server that wants one."""
SHOWN = 200


class _Rank(BaseModel):
    index: int
    score: float = Field(validation_alias=AliasChoices("relevance_score", "score"), allow_inf_nan=False)


class _Ranks(BaseModel):
    results: list[_Rank]


_REPLY: TypeAdapter[_Ranks | list[_Rank]] = TypeAdapter(_Ranks | list[_Rank])


def reranked(library: LibraryReader, query: str, hits: Sequence[Hit], url: str) -> list[Hit]:
    """Order hits by the scores that a reranker gives their words, the best first, each with its score.

    The words of a hit are its own, else all lines and captions of its time. Hits without any keep their places. Raises
    UsageError for an address that is none and a ModelError where no scores come.
    """
    address = rerank_address(url)
    if not query.strip():
        raise UsageError("got nothing in words to compare hits with; --rerank needs a text")
    texts = [hit.text or " ".join(note.text for note in lines_in(library, Span.of(hit))) for hit in hits]
    places = [at for at, text in enumerate(texts) if text.strip()]
    scores = _scores(address, query, [texts[at][:LONGEST_TEXT] for at in places])
    scored = [replace(hits[at], reranked=score) for at, score in zip(places, scores, strict=True)]
    ordered = sorted(scored, key=lambda hit: -(hit.reranked or 0.0))
    moved = dict(zip(places, ordered, strict=True))
    return [moved.get(at, hit) for at, hit in enumerate(hits)]


def compared(count: int) -> int:
    """Return the number of hits that are put to a reranker for the first `count` of its order."""
    return max(count, min(AHEAD * count, MOST_AHEAD))


def rerank_address(url: str) -> str:
    """Return the address of `/rerank` under the one that was given.

    Raises UsageError for what is no address of a server.
    """
    try:
        parts = urlsplit(url)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or too large
        is_server = False
    if not is_server:
        raise UsageError(f"got --rerank {redact_uri(url)!r}; give the address of the reranker, http://HOST:PORT")
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith("/rerank") else f"{path}/rerank").geturl()


def _scores(address: str, query: str, texts: Sequence[str]) -> list[float]:
    from kinodex.jobs.blocking_http import BlockingClient

    key = os.environ.get(KEY, "").strip()
    headers = {"authorization": f"Bearer {key}"} if key else {}
    with BlockingClient(timeout=TIMEOUT_S, headers=headers) as client:
        return [score for some in batched(texts, TEXTS_A_REQUEST) for score in _ask(client, address, query, some)]


def _post(client: httpx2.Client, address: str, body: Mapping[str, object]) -> httpx2.Response:
    """Post a request; where the server is busy and says for how long, again then, within `TIMEOUT_S` in all."""
    from kinodex.agent.models.waits import asked_wait_s

    until_s = time.monotonic() + TIMEOUT_S
    while True:
        reply = client.post(address, json=body)
        if reply.status_code not in BUSY:
            return reply
        wait_s = asked_wait_s(reply.status_code, reply.headers, _json_or_text(reply), time.time())
        if wait_s is None or time.monotonic() + wait_s > until_s:
            return reply
        time.sleep(max(wait_s, LEAST_WAIT_S))


def _json_or_text(reply: httpx2.Response) -> object:
    try:
        return parse_json(reply.content)
    except ValueError:
        return reply.text


def _ask(client: httpx2.Client, address: str, query: str, texts: Sequence[str]) -> list[float]:
    import httpx2

    place = redact_uri(address)
    body = {"query": query, "documents": texts, "texts": texts, "truncate": True, "truncate_prompt_tokens": -1}
    try:
        reply = _post(client, address, body)
    except httpx2.HTTPError as error:
        why = redact(str(error)) or type(error).__name__
        raise ModelUnreachable(
            f"the reranker {place} does not answer ({why}); start it, or correct --rerank"
        ) from error
    said = redact(" ".join(reply.text.split())[:SHOWN])
    if reply.status_code >= 500:
        raise ModelUnreachable(f"the reranker {place} failed with {reply.status_code}: {said}; see its own log")
    if reply.status_code >= 400:
        todo = f"set {KEY}" if reply.status_code in (401, 403) else "give the address of a server that has /rerank"
        raise ModelRejected(f"the reranker {place} refuses with {reply.status_code}: {said}; {todo}")
    try:
        ranks = _REPLY.validate_json(reply.content)
    except ValidationError as error:
        raise NoCompletion(f"{place} gives no scores but {said!r}; give the address of a reranker") from error
    scores = {each.index: each.score for each in (ranks.results if isinstance(ranks, _Ranks) else ranks)}
    if sorted(scores) != list(range(len(texts))):
        raise NoCompletion(f"the reranker {place} gives {len(scores)} scores for {len(texts)} texts; update it")
    return [scores[at] for at in range(len(texts))]
