"""`kinodex mcp --space`: what is searched and asked in another space of the library than its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import Client

from agent.core.budget import Budget
from agent.models.rulebased.model import RuleBasedModel
from agent.variants.registry import named
from index.library import Library
from index.rows import Scope
from jobs.mcp.ask_tool import Asking
from jobs.mcp.server import make_server
from jobs.mcp.tools import LibraryTools
from tests.jobs.mcp.test_server import QUESTION, data, texts
from tests.support.command import bad, runner
from tests.support.stage_models import library_in_two_spaces, library_of, tiny_film

SEEN = "a walrus plays chess"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """`harbour`, with a caption, in two spaces, and `later` in the library's own alone."""
    folder = tmp_path_factory.mktemp("spaces")
    library_in_two_spaces(folder, SEEN)
    return library_of(folder / "library", [tiny_film(folder / "later.mp4", 6, 1)])


def test_searches_and_questions_are_of_that_space(library: Library) -> None:
    (_, other) = library.spaces()
    vector = library.load_space(other.name, "text").embed_text(["a boat"])[0]
    best = library.search_frames(vector, Scope(), 3, 1.0, other.digest)

    async def use(client: Client) -> None:
        async def hits(query: str, **arguments: Any) -> list[dict[str, Any]]:
            return list((await data(client, "search", query=query, **arguments))["hits"])

        found = await hits("a boat", only="frames", k=3, min_gap_s=1.0)
        assert [(each["start_s"], each["score"]) for each in found] == [
            (each.time_s, pytest.approx(each.score, abs=1e-3)) for each in best
        ]
        assert {each["title"] for each in await hits("a boat", k=50)} == {"harbour"}
        assert [each["text"] for each in await hits(SEEN, only="captions")] == [SEEN]
        assert SEEN in [each.get("text") for each in await hits(SEEN)]
        answered = await data(client, "ask", question=QUESTION, videos=["harbour"])
        assert answered["ledger"]["frames"] > 0
        for tool, asked in (("ask", {"question": QUESTION}), ("search", {"query": "a boat", "videos": ["later"]})):
            refused = await client.call_tool(tool, asked)
            assert refused.is_error
            assert "later has no vectors yet" in texts(refused)[0]

    async def run() -> None:
        asking = Asking(RuleBasedModel, {"default": "builtin"}, named("eea"), Budget())
        async with Client(make_server(LibraryTools(library, space=other.name), asking)) as client:
            await use(client)

    asyncio.run(run())


def test_a_space_that_is_not_held_is_refused_at_once(library: Library, monkeypatch: Any, capsys: Any) -> None:
    (_, other) = library.spaces()
    bad(runner(monkeypatch, capsys), "mcp", library.uri, "--space", "nowhere", code=2, says=other.name)
