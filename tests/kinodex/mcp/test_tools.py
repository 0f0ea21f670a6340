"""Tools that read: by time, word and label, of text alone, in another space; replies cut to their limits."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp import Client
from PIL import Image

from kinodex.agent.limits.budget import Budget
from kinodex.desk import Desk
from kinodex.index.library import Library
from kinodex.index.store.indexes import refresh
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.verdicts import RANKED
from kinodex.mcp import replies
from kinodex.mcp.ask_tool import AskOptions, answer_here
from kinodex.mcp.server import ASKS, READS, make_server
from tests.support.libraries.agent_library import make_library
from tests.support.libraries.text_library import text_library
from tests.support.scenes.chapters import add_chapters
from tests.support.screen_text.lines import Line, add_screen_text
from tests.support.servers.looking_server import looking_server
from tests.support.servers.mcp_client import QUESTION, call, pictures, texts, use_tools
from tests.world.drawn_space import DRAWN
from tests.world.rules.model import RuleBasedModel


@pytest.mark.slow
def test_detections_transcript_and_ranges(mcp_library: Library) -> None:
    async def use(client: Client) -> None:
        overview = await call(client, "overview", video="harbour")
        assert (overview["detected"], overview["lines"]["speech"]) == ({"boat": 10}, 3)
        found = await call(client, "detections", video="harbour", label="Boat", start_s=2, end_s=4)
        assert [each["time_s"] for each in found["detections"]] == [2.0, 3.0]
        assert found["detections"][0]["box"] == pytest.approx([0.1, 0.2, 0.3, 0.4])
        assert not (await call(client, "detections", video="harbour", min_score=0.95))["detections"]
        lines = await call(client, "lines", video="harbour", start_s=4, end_s=6)
        assert [line["text"][:11] for line in lines["lines"]] == ["Listen well"]
        assert len((await call(client, "search", query="boat", in_="detections", min_gap_s=5))["hits"]) == 2
        ranges = await call(client, "ground", text="a red boat at sea", k=2, videos=["harbour"])
        assert 1 <= len(ranges["ranges"]) <= 2 and {each["title"] for each in ranges["ranges"]} == {"harbour"}
        assert (ranges.get("present"), {each["basis"] for each in ranges["ranges"]}) == (None, {ranges["basis"]})
        nothing = await call(client, "search", query="zzzzqqq", in_="frames")
        assert (nothing["basis"], nothing["claim"], nothing["hits"][0]["basis"]) == ("ranking", RANKED, "ranking")
        assert all(each["start_s"] < each["end_s"] for each in ranges["ranges"])

    use_tools(mcp_library, use)


@pytest.mark.slow
def test_the_servers_model_looks_where_there_is_one(
    mcp_library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    library = Library.open(str(shutil.copytree(mcp_library.uri, tmp_path / "library")))

    async def use(client: Client) -> None:
        hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        assert (hints["search"], hints["frames"]) == (ASKS, READS)
        found = await call(client, "search", query="a red boat", in_="frames", k=3, verify=2)
        assert (found["basis"], found["claim"]) == (
            "verified",
            "present: a model saw it in 1 of the 2 moments it looked at",
        )
        assert [hit.get("present") for hit in found["hits"]] == [True, False, None]
        ranges = await call(client, "ground", text="a red boat", k=2, verify=1)
        assert (ranges["present"], ranges["ranges"][0]["reason"]) == (True, "a boat is in the picture (1)")

    async def run(choice: ModelChoice) -> None:
        async with Client(make_server(Desk(library, choice), looks=True)) as client:
            await use(client)

    with looking_server(lambda number, line: number == 1) as server:
        asyncio.run(run(ModelChoice("tester", server.base_url)))

    async def refused(client: Client) -> None:
        result = await client.call_tool("search", {"query": "a red boat", "verify": 1})
        assert result.is_error and "no model that sees; name a vision-language model" in texts(result)[0]

    use_tools(mcp_library, refused)


def test_what_was_never_added_is_no_empty_list_and_is_read_once_it_is(mcp_library: Library, tmp_path: Path) -> None:
    library = Library.open(str(shutil.copytree(mcp_library.uri, tmp_path / "library")))
    row = library.video("harbour")

    async def use(client: Client) -> None:
        overview = await call(client, "overview", video="harbour")
        assert overview["never_added"] == ["speech", "screen_text", "captions", "chapters"]
        for tool in ("captions", "chapters", "detections", "lines"):
            missing = (await call(client, tool, video="harbour", start_s=20, end_s=21)).get("missing")
            said = f"this video has no {tool} yet: run `kinodex add {tool}`"
            assert missing == (said if tool in ("captions", "chapters") else None), tool
        for place in ("detections", "frames", "all"):
            assert "missing" not in await call(client, "search", query="boat", in_=place)
        for place in ("screen_text", "captions", "chapters"):
            refused = await client.call_tool("search", {"query": "boat", "in": place})
            assert refused.is_error and f"`kinodex add {place}` makes it" in texts(refused)[0]

        add_chapters(library, row.video_id, row.duration_s)
        add_screen_text(library, row.video_id, [Line(4.0, 7.0, "HARBOUR CAFE"), Line(20.0, 22.0, "THE END")])
        refresh(library.tables)
        assert "missing" not in await call(client, "search", query="boat", in_="screen_text")
        assert (await call(client, "overview", video="harbour"))["lines"]["screen_text"] == 2
        (hit,) = (await call(client, "search", query="harbor cafe", in_="screen_text"))["hits"]
        assert (hit["text"], hit["start_s"], hit["found_in"]) == ("HARBOUR CAFE", 4.0, "screen_text")
        lines = (await call(client, "lines", video="harbour", start_s=3.5, end_s=9.0))["lines"]
        told = [(line["start_s"], line["found_in"], line.get("confidence")) for line in lines]
        assert told == [(4.0, "speech", None), (4.0, "screen_text", 0.875), (8.0, "speech", None)]
        contents = await call(client, "chapters", video="harbour")
        assert contents["written_by"] == "writer"
        assert [(part["title"], part["start_s"]) for part in contents["parts"]] == [("The harbour", 0), ("", 15)]
        scenes = await call(client, "chapters", video="harbour", scenes=True, start_s=8, end_s=16)
        assert [part["title"] for part in scenes["parts"]] == ["Scene of boats 1", "Scene of boats 2"]
        (hit,) = (await call(client, "search", query="boats return", in_="chapters"))["hits"]
        assert (hit["found_in"], hit["start_s"], hit["end_s"]) == ("chapters", 0, 15)

    use_tools(library, use)


def test_text_alone_and_a_library_that_has_gone(tmp_path: Path) -> None:
    lines = [(0.0, 4.0, "a red kite over the sea"), (4.0, 8.0, "a green boat in the snow")]
    words = text_library(tmp_path / "words", {"walk": lines}, {"walk": [(1.0, 2.0, "look up")]}, space=DRAWN)
    calls: dict[str, dict[str, Any]] = {"videos": {}, "overview": {"video": "walk"}, "search": {"query": "kite"}}

    async def use(client: Client) -> None:
        overview = await call(client, "overview", video="walk")
        assert [each["caption"] for each in overview["segments"]] == [text for *_, text in lines]
        assert overview["speech_from"] == ["imported"]
        hits = (await call(client, "search", query="green boat"))["hits"]
        assert (hits[0]["start_s"], hits[0]["found_in"]) == (4.0, "captions")
        captions = await call(client, "captions", video="walk", start_s=4)
        assert [each["text"] for each in captions["captions"]] == [lines[1][2]]
        refused = await client.call_tool("frames", {"video": "walk"})
        assert "imported as text and has no frames" in texts(refused)[0]
        assert (await call(client, "ask", question="What is in the snow?", agent="uniform"))["evidence"]
        shutil.rmtree(words.uri)
        for tool, arguments in (calls | {"ask": {"question": "What?"}}).items():
            result = await client.call_tool(tool, arguments)
            (text,) = texts(result)
            assert result.is_error and f"cannot use {words.uri}: " in text and "\n" not in text

    use_tools(words, use)


def test_searches_and_questions_are_of_the_space_that_is_named(described: Path) -> None:
    library = Library.open(str(described))
    desk = Desk(library, ModelChoice(), space=library.spaces()[1].name, agent="eea")
    asking = AskOptions({"default": "rules"}, Budget()), answer_here(desk, RuleBasedModel)

    async def run() -> None:
        async with Client(make_server(desk, *asking)) as client:
            for place in ("frames", "all"):
                hits = (await call(client, "search", query="a boat", in_=place, k=50))["hits"]
                assert {each["title"] for each in hits} == {"film-02"}
            answered = await call(client, "ask", question=QUESTION, videos=["film-02"])
            assert answered["ledger"]["frames"] > 0
            for tool, asked in (("ask", {"question": QUESTION}), ("search", {"query": "a boat"})):
                refused = await client.call_tool(tool, asked | {"videos": ["film-01"]})
                assert refused.is_error and "film-01 has no vectors yet" in texts(refused)[0]

    asyncio.run(run())


MANY = 450


@pytest.mark.slow
def test_long_tables_come_in_pages_that_say_so(tmp_path: Path) -> None:
    """Many segments, captions and lines of one text-only video; some lines are very long."""
    lines = [(float(n), n + 1.0, f"caption {n}") for n in range(MANY)]
    said = [(float(n), n + 1.0, f"line {n} " + "word " * (400 if n % 50 == 7 else 30)) for n in range(MANY)]

    async def use(client: Client) -> None:
        for tool in ("lines", "captions"):
            seen: list[dict[str, Any]] = []
            cut: str | None = ""
            while cut is not None:
                reply = await call(client, tool, video="long", offset=len(seen))
                cut = reply.get("cut")
                rows: list[dict[str, Any]] = reply.get("lines") or reply["captions"]
                assert 0 < len(rows) <= replies.ROWS
                seen += rows
                assert cut is None or f"of {MANY}; call again with offset={len(seen)}" in cut
            assert [row["start_s"] for row in seen] == list(range(MANY))
            assert max(len(row["text"]) for row in seen) < replies.CHARACTERS + 30
        assert "characters)" in (await call(client, "lines", video="long", start_s=7, end_s=8))["lines"][0]["text"]
        overview = await call(client, "overview", video="long")
        starts = [each["start_s"] for each in overview["segments"]]
        assert len(starts) == replies.SEGMENTS and np.diff(starts).max() <= 8
        assert f"60 of {MANY} segments" in overview["cut"]
        assert "cut" not in await call(client, "search", query="caption", in_="speech", k=5)
        hits = await call(client, "search", query="word", in_="speech", k=1000)
        assert len(hits["hits"]) == replies.HITS and "only 50 hits fit" in hits["cut"]

    use_tools(text_library(tmp_path / "long", {"long": lines}, {"long": said}), use)


def test_pictures_are_few_and_small(mcp_library: Library, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (640, 640, 3), dtype=np.uint8)
    heavy = io.BytesIO()
    Image.fromarray(noise).save(heavy, "JPEG", quality=92)

    async def many(client: Client) -> None:
        result = await client.call_tool("frames", {"video": "harbour", "count": 20, "side_px": 4000})
        heading = json.loads(texts(result)[0])
        assert len(pictures(result)) == heading["frames"] == replies.FRAMES
        assert heading["cut"] == (
            "8 frames spread over the part, which are as many as a reply holds; pictures are at most 1024 pixels a side"
        )
        assert np.diff([json.loads(text)["time_s"] for text in texts(result)[1:]]).min() >= 3
        named = await client.call_tool("frames", {"video": "harbour", "times_s": [*range(30)]})
        assert json.loads(texts(named)[0])["cut"] == "only the frames of the first 8 times, of 30 given"

    async def large(client: Client) -> None:
        result = await client.call_tool("frames", {"video": "noise", "count": 8})
        jpegs = [each.data for each in result.content if each.type == "image"]
        assert 0 < len(jpegs) < 8 and sum(map(len, jpegs)) <= replies.IMAGE_BYTES * 4 / 3 + 4 * len(jpegs)
        assert f"{len(jpegs)} of 8 pictures fit" in texts(result)[0]

    use_tools(mcp_library, many)
    use_tools(make_library(tmp_path / "heavy", {"noise": ["noise"] * 8}, heavy.getvalue()), large)
