"""Tools that read: by time, word and label, of text alone, and in another space than the library's own."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from kinodex.agent.ask import variant_named
from kinodex.agent.limits import Budget
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.index.store.indexes import refresh
from kinodex.mcp.server import AskOptions, LibraryTools, make_server
from tests.support.libraries.text_library import text_library
from tests.support.models.stage_models import library_in_two_spaces, library_of, tiny_film
from tests.support.scenes.chapters import add_chapters
from tests.support.screen_text.lines import Line, add_screen_text
from tests.support.servers.mcp_client import QUESTION, call, texts, use_tools

SEEN = "a walrus plays chess"


def test_detections_and_transcript_by_time_and_word(mcp_library: Library) -> None:
    async def use(client: Client) -> None:
        overview = await call(client, "overview", video="harbour")
        assert (overview["detected"], overview["transcript_lines"]) == ({"boat": 10}, 3)
        found = await call(client, "detections", video="harbour", label="Boat", start_s=2, end_s=4)
        assert [each["time_s"] for each in found["detections"]] == [2.0, 3.0]
        assert found["detections"][0]["box"] == pytest.approx([0.1, 0.2, 0.3, 0.4])
        assert not (await call(client, "detections", video="harbour", min_score=0.95))["detections"]
        (hit,) = (await call(client, "search", query="code word", where="speech"))["hits"]
        assert hit["text"].startswith("Listen well")
        lines = await call(client, "transcript", video="harbour", start_s=hit["start_s"], end_s=hit["end_s"])
        assert [line["text"] for line in lines["lines"]] == [hit["text"]]
        detected = await call(client, "search", query="boat", where="detections", min_gap_s=5)
        assert len(detected["hits"]) == 2

    use_tools(mcp_library, use)


def test_a_stage_that_was_never_added_is_no_empty_list(mcp_library: Library, tmp_path: Path) -> None:
    library = Library.open(str(shutil.copytree(mcp_library.uri, tmp_path / "library")))
    reads = {"captions": "captions", "chapters": "chapters", "detections": None, "transcript": None}

    async def use(client: Client) -> None:
        overview = await call(client, "overview", video="harbour")
        assert overview["never_added"] == ["captions", "speech", "text", "summaries"]
        for tool, added_by in reads.items():
            missing = (await call(client, tool, video="harbour", start_s=20, end_s=21)).get("missing")
            said = f"{added_by} were never added to this video: `kinodex add {added_by}` does that"
            assert missing == (None if added_by is None else said), tool
        for only in ("screen-text", "captions", "chapters"):
            found = await call(client, "search", query="boat", where=only)
            assert (found["hits"], f"{only} were never" in found["missing"]) == ([], True)
        for kind in ("detections", "pictures", "all"):
            assert "missing" not in await call(client, "search", query="boat", where=kind)
        add_screen_text(library, library.videos()[0].video_id, [])
        assert "missing" not in await call(client, "search", query="boat", where="screen-text")

    use_tools(library, use)


def test_ranges_of_an_event_and_their_evidence(mcp_library: Library) -> None:
    async def use(client: Client) -> None:
        found = await call(client, "ground", event="a red boat at sea", most=2)
        assert 1 <= len(found["ranges"]) <= 2
        assert found["present"] is (found["evidence"] >= found["least_evidence"])
        assert found["present"] is any(each["strong"] for each in found["ranges"])
        assert all(each["start_s"] < each["end_s"] for each in found["ranges"])
        named = await call(client, "ground", event="a boat", videos=["harbour"])
        assert {each["title"] for each in named["ranges"]} == {"harbour"}

    use_tools(mcp_library, use)


def test_text_on_screen_among_what_is_said(mcp_library: Library, tmp_path: Path) -> None:
    library = Library.open(str(shutil.copytree(mcp_library.uri, tmp_path / "library")))
    lines = [Line(4.0, 7.0, "HARBOUR CAFE"), Line(20.0, 22.0, "THE END")]
    add_screen_text(library, library.videos()[0].video_id, lines)
    refresh(library.tables)

    async def use(client: Client) -> None:
        assert (await call(client, "overview", video="harbour"))["screen_text_lines"] == 2
        (hit,) = (await call(client, "search", query="harbor cafe", where="screen-text"))[
            "hits"
        ]  # with a letter missing
        assert (hit["text"], hit["start_s"], hit["found_in"]) == ("HARBOUR CAFE", 4.0, "screen-text")
        lines = (await call(client, "transcript", video="harbour", start_s=3.5, end_s=9.0))["lines"]
        assert [(line["start_s"], line.get("on_screen"), line.get("confidence")) for line in lines] == [
            (4.0, None, None),
            (4.0, True, 0.875),
            (8.0, None, None),
        ]

    use_tools(library, use)


def test_chapters_of_a_video_and_in_searches(mcp_library: Library, tmp_path: Path) -> None:
    library = Library.open(str(shutil.copytree(mcp_library.uri, tmp_path / "library")))
    row = library.video("harbour")
    add_chapters(library, row.video_id, row.duration_s)

    async def use(client: Client) -> None:
        contents = await call(client, "chapters", video="harbour")
        assert contents["written_by"] == "writer"
        assert [(part["title"], part["start_s"]) for part in contents["parts"]] == [("The harbour", 0), ("", 15)]
        scenes = await call(client, "chapters", video="harbour", scenes=True, start_s=8, end_s=16)
        assert [part["title"] for part in scenes["parts"]] == ["Scene of boats 1", "Scene of boats 2"]
        (hit,) = (await call(client, "search", query="boats return", where="chapters"))["hits"]
        assert (hit["found_in"], hit["start_s"], hit["end_s"]) == ("chapters", 0, 15)

    use_tools(library, use)


def test_text_alone(tmp_path: Path) -> None:
    lines = [(0.0, 4.0, "a red kite over the sea"), (4.0, 8.0, "a green boat in the snow")]
    words = text_library(tmp_path / "words", {"walk": lines}, {"walk": [(1.0, 2.0, "look up")]}, space="builtin")

    async def use(client: Client) -> None:
        overview = await call(client, "overview", video="walk")
        assert [each["caption"] for each in overview["segments"]] == [text for *_, text in lines]
        assert overview["transcript_from"] == ["imported"]
        hits = (await call(client, "search", query="green boat"))["hits"]
        assert (hits[0]["start_s"], hits[0]["found_in"]) == (4.0, "captions")
        captions = await call(client, "captions", video="walk", start_s=4)
        assert [each["text"] for each in captions["captions"]] == [lines[1][2]]
        refused = await client.call_tool("frames", {"video": "walk"})
        assert "imported as text and has no frames" in texts(refused)[0]
        assert (await call(client, "ask", question="What is in the snow?", agent="uniform"))["evidence"]

    use_tools(words, use)


@pytest.fixture(scope="module")
def two_spaces(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """`harbour`, with a caption, in two spaces, and `later` in the library's own alone."""
    folder = tmp_path_factory.mktemp("spaces")
    library_in_two_spaces(folder, SEEN)
    return library_of(folder / "library", [tiny_film(folder / "later.mp4", 6, 1)])


def test_searches_and_questions_are_of_that_space(two_spaces: Library) -> None:
    (_, other) = two_spaces.spaces()
    vector = two_spaces.load_space(other.name, "text").embed_text(["a boat"])[0]
    best = two_spaces.search.frames(vector, Scope(), 3, 1.0, other.digest)

    async def use(client: Client) -> None:
        async def hits(query: str, **arguments: Any) -> list[dict[str, Any]]:
            return list((await call(client, "search", query=query, **arguments))["hits"])

        found = await hits("a boat", where="pictures", k=3, min_gap_s=1.0)
        assert [(each["start_s"], each["score"]) for each in found] == [
            (each.time_s, pytest.approx(each.score, abs=1e-3)) for each in best
        ]
        assert {each["title"] for each in await hits("a boat", k=50)} == {"harbour"}
        assert [each["text"] for each in await hits(SEEN, where="captions")] == [SEEN]
        assert SEEN in [each.get("text") for each in await hits(SEEN)]
        answered = await call(client, "ask", question=QUESTION, videos=["harbour"])
        assert answered["ledger"]["frames"] > 0
        for tool, asked in (("ask", {"question": QUESTION}), ("search", {"query": "a boat", "videos": ["later"]})):
            refused = await client.call_tool(tool, asked)
            assert refused.is_error
            assert "later has no vectors yet" in texts(refused)[0]

    async def run() -> None:
        asking = AskOptions(RuleBasedModel, {"default": "builtin"}, variant_named("eea"), Budget())
        async with Client(make_server(LibraryTools(two_spaces, space=other.name), asking)) as client:
            await use(client)

    asyncio.run(run())
