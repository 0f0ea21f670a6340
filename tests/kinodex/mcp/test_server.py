"""The server over HTTP, what its tools say of themselves, their errors, and the tool `ask` within its limits."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client

from kinodex.agent.ask import ask
from kinodex.agent.limits.budget import Budget
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol.question import Question
from kinodex.desk import Desk
from kinodex.index.library import Library
from kinodex.jobs.open import open_environment
from kinodex.mcp import replies
from kinodex.mcp.ask_tool import AskOptions, answer_here
from kinodex.mcp.http import serve_http
from kinodex.mcp.server import make_server
from tests.support.servers.chat_server import Behaviour, ChatServer, failing
from tests.support.servers.mcp_client import (
    OPTIONS,
    QUESTION,
    TOOLS,
    call,
    check_frames,
    server_of,
    status_for,
    texts,
    use_tools,
)
from tests.world.rules.model import RuleBasedModel


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_http_on_loopback(mcp_library: Library, mode: str) -> None:
    """Clients of today's protocol and of the one before; a page of another site is refused."""

    async def use() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            serving = asyncio.create_task(serve_http(server_of(mcp_library), listener, "127.0.0.1"))
            async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
                several = [call(client, "lines", video="harbour") for _ in range(4)]
                assert [len(each["lines"]) for each in await asyncio.gather(*several)] == [3] * 4
                (hit,) = (await call(client, "search", query="boat", in_="frames", start_s=5, end_s=8, k=1))["hits"]
                assert 5 <= hit["start_s"] < 8
                await check_frames(client)
                answer = await call(client, "ask", question=QUESTION, options=OPTIONS)
                assert answer["ledger"]["frames"] > 0
            assert await asyncio.to_thread(status_for, port, Host="evil.example") == 421
            assert await asyncio.to_thread(status_for, port, Origin="http://evil.example") == 403
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(use())


@pytest.mark.slow
def test_a_server_after_one_that_ctrl_c_ended_answers(mcp_library: Library) -> None:
    """As in a notebook that serves twice."""

    async def serve(is_interrupted: bool) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            serving = asyncio.create_task(serve_http(server_of(mcp_library), listener, "127.0.0.1"))
            async with Client(f"http://127.0.0.1:{port}/mcp", mode="legacy") as client:
                assert len((await call(client, "lines", video="harbour"))["lines"]) == 3
            if is_interrupted:
                signal.raise_signal(signal.SIGINT)
            else:
                serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    with suppress(KeyboardInterrupt):  # which a process of xdist does not raise
        asyncio.run(serve(is_interrupted=True))
    asyncio.run(serve(is_interrupted=False))


@pytest.mark.slow
def test_http_for_others_serves_no_page_of_a_browser(mcp_library: Library) -> None:
    """Any name may lead there, one that a site has given to this address too."""

    async def use() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            serving = asyncio.create_task(serve_http(server_of(mcp_library), listener, "0.0.0.0"))
            async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                assert len((await call(client, "lines", video="harbour"))["lines"]) == 3
            assert await asyncio.to_thread(status_for, port, Host="library.example") == 406
            assert await asyncio.to_thread(status_for, port, Origin="http://library.example") == 403
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(use())


def test_what_the_server_says_of_itself(mcp_library: Library, root: Path) -> None:
    """Limits stand once, in the instructions; those of two tools with them."""
    stated = (root / "kinodex" / "mcp" / "instructions.jinja").read_text()
    limits = (
        f"{replies.VIDEOS} videos, {replies.HITS} hits or ranges, {replies.ROWS} rows, {replies.TEXT_BYTES:,} bytes"
    )
    assert limits in stated
    assert replies.EVIDENCE == replies.HITS

    async def use(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert f"At most {replies.SEGMENTS} segments" in (tools["overview"].description or "")
        assert f"At most {replies.FRAMES} frames of {replies.SIDE_PX:,} pixels" in (tools["frames"].description or "")
        reads = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        assert reads == TOOLS - {"ask"}

    use_tools(mcp_library, use)


REFUSED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("frames", {"video": "harbour", "times_s": [99]}, "give a time in there"),
    ("frames", {"video": "harbour", "start_s": 100, "end_s": 200}, "harbour, which covers [0.000, 30.000) s"),
    ("overview", {"video": "x" * 100_000}, "(100,"),
    ("overview", {"video": "harbour", "start_s": "nan"}, "start_s: Input should be a finite number"),
    ("lines", {"video": "harbour", "start_s": 30}, "[0.000, 30.000) s; give times in there"),
    ("lines", {"video": "harbour", "start_s": 5, "end_s": 5}, "the end must be after the start"),
    ("search", {"query": " "}, "give some words to look for"),
    ("search", {"query": "x" * 2001}, "query: Value error, got 2,001 characters; give at most 2,000"),
    ("ground", {"text": "x", "videos": ["a"] * 1001}, "got 1,001 videos; give at most 1,000"),
    ("ask", {"question": "x" * 20_001}, "got 20,001 characters; give at most 20,000"),
    ("search", {"query": "x", "videos": ["nobody"]}, "such as harbour"),
    ("search", {"query": "x", "k": -1}, "k: Input should be greater than or equal to 1"),
    ("ask", {"question": "What?", "agent": "ea"}, "did you mean"),
    ("ask", {"question": "What?", "agent": "videoseek"}, "needs a language model"),
    ("ask", {"question": "What?", "settings": {"zap": 1}}, "there is no parameter 'zap'"),
    ("ask", {"question": "What?", "budget": {"frames": 0}}, "above 0, or leave it out"),
    (
        "search",
        {"query": 5, "k": "many"},
        "query: Input should be a valid string; k: Input should be a valid integer",
    ),
    ("search", {"query": "x", "in": "dreams"}, "got 'dreams' for where to look"),
    ("ask", {"question": "What?", "budget": {"seconds": "inf"}}, "give a number above 0, or leave it out"),
    ("frames", {"video": "harbour", "times_s": [1.0], "count": 2}, "or else start_s, end_s and count"),
    ("frames", {"video": "harbour", "times_s": []}, "give times_s with a time or more"),
)


def test_a_call_that_makes_no_sense_is_refused_in_one_line(mcp_library: Library) -> None:
    """An argument that a tool does not have, left out, would have been a search of all videos, or other pictures."""
    unknown = "cannot be called so: {}: Extra inputs are not permitted; it takes "
    calls = [
        *REFUSED,
        ("search", {"query": "x", "video": "harbour"}, unknown.format("video")),
        ("frames", {"video": "harbour", "times": [1.0]}, unknown.format("times")),
    ]

    async def use(client: Client) -> None:
        for tool, arguments, says in calls:
            result = await client.call_tool(tool, arguments)
            (text,) = texts(result)
            assert result.is_error and says in text, (tool, arguments, text)
            assert "\n" not in text and "https:" not in text, "pydantic's messages have lines and links"
            assert len(text) < 1_200
        offered = (await client.list_tools()).tools
        assert all(each.input_schema["additionalProperties"] is False for each in offered)
        shown = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in offered]
        assert len(offered) == 10
        assert len(json.dumps(shown, separators=(",", ":"))) < 14_800, (
            "half of the 28,141 that they were, and 700 for conditions: each conversation pays"
        )
        for each in shown:
            jsonschema.Draft202012Validator.check_schema(each["inputSchema"])
            jsonschema.Draft202012Validator.check_schema(each.get("outputSchema", {}))

    use_tools(mcp_library, use)


def test_ask_answers_as_the_library_does(mcp_library: Library) -> None:
    environment = open_environment(mcp_library.uri)
    question, model = Question(QUESTION, tuple(OPTIONS)), RuleBasedModel(environment)
    answer = asyncio.run(ask(question, environment, model, agent="eea"))
    steps: list[float] = []
    messages: list[str] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)
        messages.append(message or "")

    async def use(client: Client) -> None:
        asked = {"question": QUESTION, "options": OPTIONS, "videos": ["harbour"]}
        result = await client.call_tool("ask", asked, progress_callback=progressed)
        reply = result.structured_content or {}
        found = (reply["status"], reply.get("answer"), reply.get("letter"))  # what is null is left out
        assert found == (answer.status, answer.text, answer.letter)
        assert [(each["start_s"], each["end_s"]) for each in reply["evidence"]] == [
            (each.start_s, each.end_s) for each in answer.evidence
        ]
        clocks = {"seconds": 0, "model_seconds": 0}
        assert reply["ledger"] | clocks == asdict(answer.ledger) | clocks
        assert steps == list(range(1, len(steps) + 1))
        assert messages[-1].startswith(f"round {answer.rounds}, ")
        uniform = await call(client, "ask", question=QUESTION, agent="uniform", settings={"frames": 5})
        assert (uniform["agent"], uniform["ledger"]["frames"]) == ("uniform", 5)

    use_tools(mcp_library, use)


def test_reports_come_while_a_model_still_thinks(mcp_library: Library) -> None:
    """The model's server answers only after two reports of the same state."""
    messages: list[str] = []
    enough = threading.Event()

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message or "")
        if messages.count(messages[-1]) == 2:
            enough.set()

    def slow(body: dict) -> Behaviour:
        assert enough.wait(30)
        return failing(400, "no such picture")

    async def use() -> None:
        with ChatServer(slow) as server:
            async with OpenAIModel(Role(base_url=server.base_url, model="tester")) as model:
                desk = Desk(mcp_library, {"default": model}, agent="uniform")
                options = AskOptions({"default": "tester"}, Budget(), beat_s=0.01)
                answering = answer_here(desk, lambda environment: model)
                async with Client(make_server(desk, options, answering)) as client:
                    asked = {"question": QUESTION, "options": OPTIONS}
                    result = await client.call_tool("ask", asked, progress_callback=progressed)
        assert result.is_error
        assert "no such picture" in texts(result)[0]
        assert messages[-1].endswith("0 replies of models")

    asyncio.run(use())


def test_a_call_may_spend_less_than_the_server_allows_but_not_more(mcp_library: Library) -> None:
    async def use(client: Client) -> None:
        shown = [
            (await call(client, "ask", question=QUESTION, budget={"frames": most}))["ledger"]["frames"]
            for most in (1, 100)
        ]
        assert shown[0] == 1
        assert 1 < shown[1] <= 4

    use_tools(mcp_library, use, Budget(frames=4))


def test_a_call_cannot_have_a_file_executed(mcp_library: Library, tmp_path: Path) -> None:
    own, trace = tmp_path / "own.py", tmp_path / "ran"
    own.write_text(f"open({str(trace)!r}, 'w').close()")

    async def use(client: Client) -> None:
        for name in (str(own), f"{own}:VARIANT", "own:VARIANT", "os.path:join"):
            refused = await client.call_tool("ask", {"question": QUESTION, "agent": name})
            assert refused.is_error
            assert "there is no agent" in texts(refused)[0]

    use_tools(mcp_library, use)
    assert not trace.exists()
