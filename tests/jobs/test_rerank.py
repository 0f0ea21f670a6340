"""Hits in the order of a reranker, in either form of the wire; what is no reranker is refused in a sentence."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import pytest

from kinodex.agent.errors import ModelRejected, ModelUnreachable
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.rerank import KEY, reranked
from kinodex.requests import Find
from kinodex.search.finder import Finder
from tests.support.libraries.text_library import text_library
from tests.support.servers.rerank_server import RerankServer

LINES = [(float(at), at + 1.0, f"the {what} at the sea {'and a kite' * (at == 36)}") for at, what in
         enumerate(["boat", "bird", "cat", "dog"] * 10)]  # fmt: skip


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return text_library(tmp_path_factory.mktemp("words") / "library", {"walk": LINES})


@pytest.mark.parametrize("form", ["vllm", "tei"])
def test_hits_come_in_the_order_of_the_scores_which_claim_nothing(lines: Library, form: Literal["vllm", "tei"]) -> None:
    query = Find(query="the kite at the sea", in_="words", k=10, min_gap_s=0.0)
    with RerankServer(form) as server:
        found = Finder(lines).find(query.model_copy(update={"rerank": server.url}))
    assert len(found) == 10 and [len(texts) for texts in server.texts] == [32, 8], "four times as many are compared"
    assert (found[0].time_s, found[0].reranked) == (36.0, 1.0)
    scores = [hit.reranked or 0.0 for hit in found]
    assert scores == sorted(scores, reverse=True) and {hit.basis for hit in found} == {"ranking"}


def test_a_frame_has_the_words_of_its_time_and_stays_in_its_place_without_any(library: Path) -> None:
    drawn = Library.open(str(library))
    hits = Finder(drawn).find(Find(query="a boat", in_="frames", k=12))
    with RerankServer("tei") as server:
        found = reranked(drawn, "a boat", hits, f"{server.url}/rerank")
    assert {(hit.video_id, hit.frame_no) for hit in found} == {(hit.video_id, hit.frame_no) for hit in hits}
    silent = [at for at, hit in enumerate(found) if hit.reranked is None]
    assert silent and all(found[at] == hits[at] for at in silent) and len(server.texts[0]) == len(hits) - len(silent)


def test_what_gives_no_scores_is_said_without_secrets(lines: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Find(query="the kite", in_="words", k=2)
    finder = Finder(lines)
    for url in ("reranker:8000", "ftp://host", "http://", "http://host:99999"):
        with pytest.raises(UsageError, match="http://HOST:PORT"):
            finder.find(query.model_copy(update={"rerank": url}))
    with pytest.raises(ModelUnreachable) as gone:
        finder.find(query.model_copy(update={"rerank": "http://user:hidden@127.0.0.1:9"}))
    assert "hidden" not in str(gone.value) and "127.0.0.1:9/rerank does not answer" in str(gone.value)
    with RerankServer("vllm", key="sesame") as server:
        with pytest.raises(ModelRejected, match=f"refuses with 401: .*; set {KEY}"):
            finder.find(query.model_copy(update={"rerank": server.url}))
        monkeypatch.setenv(KEY, "sesame")
        assert finder.find(query.model_copy(update={"rerank": server.url}))[0].reranked is not None
    for answer, says in (
        ((200, {"data": []}), "gives no scores but"),
        ((200, [{"index": 0, "score": 0.5}] * 3), "1 scores for"),
        ((500, "out of memory"), "failed with 500: .*out of memory"),
        ((424, {"error": "model is not a re-ranker model"}), "not a re-ranker"),
    ):
        with RerankServer("tei", answer=answer) as server, pytest.raises((ModelUnreachable, ModelRejected), match=says):
            finder.find(query.model_copy(update={"rerank": server.url}))


def test_a_busy_reranker_is_asked_again_when_it_says_and_not_if_that_is_too_late(lines: Library) -> None:
    hits = lines.search.words("kite", k=5)
    busy = (429, {"error": {"message": "Please retry in 1.2s"}})
    with RerankServer("vllm", answer=busy, busy=2) as server:
        began_s = time.monotonic()
        assert reranked(lines, "kite", hits, server.url)
        assert time.monotonic() - began_s >= 2.4 and len(server.texts) == 3
    late = (429, {"error": {"message": "Please retry in 3600s"}})
    with RerankServer("vllm", answer=late) as server, pytest.raises(ModelRejected, match="429"):
        reranked(lines, "kite", hits, server.url)
    assert len(server.texts) == 1
