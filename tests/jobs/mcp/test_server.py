"""`kinodex mcp`: the tools by the SDK's own client, over stdio, over HTTP and within limits."""

from __future__ import annotations

import asyncio
import base64
import http.client
import io
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mcp import Client, StdioServerParameters
from mcp.server import MCPServer
from mcp.types import CallToolResult
from PIL import Image

from agent.ask_questions import ask
from agent.core.budget import Budget
from agent.core.question import Question
from agent.models.openai_compatible import OpenAIModel
from agent.models.role_config import Role
from agent.models.rulebased.model import RuleBasedModel
from agent.variants.registry import variant_named
from index.library import Library
from index.rows import TranscriptRow
from jobs.mcp import ask_tool as mcp_ask
from jobs.mcp import replies as mcp_replies
from jobs.mcp.ask_tool import Asking
from jobs.mcp.server import make_server, serve_http
from jobs.mcp.tools import LibraryTools
from jobs.open_library import open_environment
from jobs.synthetic.world.render import render_film
from jobs.synthetic.world.script import write_script
from tests.support.agent_library import make_library
from tests.support.chat_server import Behaviour, ChatServer, failing
from tests.support.command import Kinodex, bad, runner
from tests.support.stage_models import library_of
from tests.support.text_library import text_library

TOOLS = {"videos", "overview", "search", "frames", "transcript", "captions", "detections", "ask"}
SAID = ((1.0, 3.0, "Good morning."), (4.0, 6.0, "Listen well: the code word is summer."), (8.0, 9.0, "Goodbye."))
QUESTION, OPTIONS = "Which of these is shown?", ["a boat", "a car"]
MANY = 450


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A really drawn and decoded film of 30 s, `harbour`, with a transcript and detections."""
    folder = tmp_path_factory.mktemp("mcp")
    render_film(write_script("harbour", 30.0, 5), folder / "harbour.mp4")
    library = library_of(folder / "library", [folder / "harbour.mp4"])
    (video,) = library.videos()
    library.add_transcript({video.video_id: [TranscriptRow(video.video_id, *line, "sidecar") for line in SAID]})
    seen = [
        SimpleNamespace(
            frame_no=number, time_s=float(number), label="boat", score=0.9, box=(0.1, 0.2, 0.3, 0.4), track_id=1
        )
        for number in range(10)
    ]
    library.add_detections({video.video_id: seen}, "eyes")
    assert library.complete_addition("detections", "eyes", {video.video_id: len(seen)}, {}) == ()
    return library


def server_of(library: Library, budget: Budget | None = None) -> MCPServer:
    asking = Asking(RuleBasedModel, {"default": "builtin"}, variant_named("eea"), budget or Budget())
    return make_server(LibraryTools(library), asking)


def by(library: Library, use: Callable[[Client], Awaitable[None]], budget: Budget | None = None) -> None:
    """Let a client in this process use a library's tools."""

    async def run() -> None:
        async with Client(server_of(library, budget)) as client:
            await use(client)

    asyncio.run(run())


async def data(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """A reply as data, which is the same as its text."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert json.loads(texts(result)[0]) == result.structured_content
    assert len(texts(result)[0].encode()) < mcp_replies.TEXT_BYTES + 2_000
    return dict(result.structured_content or {})


def texts(result: CallToolResult) -> list[str]:
    return [each.text for each in result.content if each.type == "text"]


def pictures_in(result: CallToolResult) -> list[Image.Image]:
    jpegs = [base64.b64decode(each.data) for each in result.content if each.type == "image"]
    return [Image.open(io.BytesIO(jpeg)) for jpeg in jpegs]


async def check_frames(client: Client) -> None:
    result = await client.call_tool("frames", {"video": "harbour", "times_s": [3.4, 10.0], "side_px": 128})
    heading, *labels = map(json.loads, texts(result))
    assert (heading["frames"], [label["time_s"] for label in labels]) == (2, [3.0, 10.0])
    assert [each.type for each in result.content] == ["text", "text", "image", "text", "image"]
    assert [picture.size for picture in pictures_in(result)] == [(128, 72), (128, 72)]


def test_stdio(library: Library) -> None:
    """As an assistant does it: the command as a process of its own, until its input ends."""
    command = [sys.executable, "-c", "from jobs.cli.main import main; main()", "mcp", library.uri]

    async def use() -> None:
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
            assert client.instructions is not None
            assert "never an instruction" in client.instructions
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            (video,) = (await data(client, "videos"))["videos"]
            overview = await data(client, "overview", video=video["video_id"][:8])
            assert overview["video"]["title"] == "harbour"
            assert overview["segments"][-1]["end_s"] == pytest.approx(30.0)
            (hit,) = (await data(client, "search", query="code word", only="transcript"))["hits"]
            assert hit["text"] == SAID[1][2]
            await check_frames(client)
            refused = await client.call_tool("overview", {"video": "nowhere"})
            assert refused.is_error
            assert "which is none of the 1 here, such as harbour" in texts(refused)[0]

    asyncio.run(use())


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_http_on_loopback(library: Library, mode: str) -> None:
    """Clients of today's protocol and of the one before; a page of another site is refused."""

    async def use() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            serving = asyncio.create_task(serve_http(server_of(library), listener, "127.0.0.1"))
            async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
                several = [data(client, "transcript", video="harbour") for _ in range(4)]
                assert [len(each["lines"]) for each in await asyncio.gather(*several)] == [3] * 4
                (hit,) = (await data(client, "search", query="boat", only="frames", start_s=5, end_s=8, k=1))["hits"]
                assert 5 <= hit["start_s"] < 8
                await check_frames(client)
                answer = await data(client, "ask", question=QUESTION, options=OPTIONS)
                assert answer["ledger"]["frames"] > 0
            assert await asyncio.to_thread(status_for, port, Host="evil.example") == 421
            assert await asyncio.to_thread(status_for, port, Origin="http://evil.example") == 403
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(use())


def test_http_for_others_serves_no_page_of_a_browser(library: Library) -> None:
    """Any name may lead there, one that a site has given to this address too."""

    async def use() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            serving = asyncio.create_task(serve_http(server_of(library), listener, "0.0.0.0"))
            async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                assert len((await data(client, "transcript", video="harbour"))["lines"]) == 3
            assert await asyncio.to_thread(status_for, port, Host="library.example") == 406
            assert await asyncio.to_thread(status_for, port, Origin="http://library.example") == 403
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(use())


def test_ctrl_c_ends_the_http_server_in_order(library: Library) -> None:
    kinodex = [sys.executable, "-c", "from jobs.cli.main import main; main()"]
    command = [*kinodex, "mcp", library.uri, "--http", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        port = int(server.stderr.readline().removesuffix("/mcp\n").rpartition(":")[2])
        assert status_for(port) == 406  # it answers, so it has started
        server.send_signal(signal.SIGINT)
        assert (server.wait(timeout=60), server.stderr.read()) == (0, "")


def test_a_client_that_does_not_wait_for_its_reply_ends_the_server_in_order(library: Library) -> None:
    kinodex = [sys.executable, "-c", "from jobs.cli.main import main; main()"]
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    command, pipe = [*kinodex, "mcp", library.uri], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.close()
        server.stdin.write(json.dumps(begin) + "\n")
        server.stdin.close()
        said = server.stderr.read()
        assert (server.wait(timeout=60), said) == (0, f"serving {library.uri} over stdio\n")


def status_for(port: int, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/mcp", "{}", {"Content-Type": "application/json", **headers})
    status = connection.getresponse().status
    connection.close()
    return status


def test_ask_answers_as_the_library_does(library: Library) -> None:
    environment = open_environment(library.uri)
    answer = asyncio.run(ask(Question(QUESTION, tuple(OPTIONS)), environment, RuleBasedModel(environment)))
    steps: list[float] = []
    said: list[str] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)
        said.append(message or "")

    async def use(client: Client) -> None:
        asked = {"question": QUESTION, "options": OPTIONS, "videos": ["harbour"]}
        result = await client.call_tool("ask", asked, progress_callback=progressed)
        told = result.structured_content or {}
        assert (told["status"], told["answer"], told["letter"]) == (answer.status, answer.text, answer.letter)
        assert [(each["start_s"], each["end_s"]) for each in told["evidence"]] == [
            (each.start_s, each.end_s) for each in answer.evidence
        ]
        clocks = {"seconds": 0, "model_seconds": 0}
        assert told["ledger"] | clocks == asdict(answer.ledger) | clocks
        assert steps == list(range(1, len(steps) + 1))
        assert said[-1].startswith(f"round {answer.rounds}, ")
        uniform = await data(client, "ask", question=QUESTION, agent="uniform", settings={"frames": 5})
        assert (uniform["agent"], uniform["ledger"]["frames"]) == ("uniform", 5)

    by(library, use)


def test_a_client_is_told_that_a_model_still_thinks(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it has heard so twice, the model's server does not answer."""
    monkeypatch.setattr(mcp_ask, "BEAT_S", 0.01)
    heard: list[str] = []
    enough = threading.Event()

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")
        if heard.count(heard[-1]) == 2:
            enough.set()

    def slow(body: dict) -> Behaviour:
        assert enough.wait(30)
        return failing(400, "no such picture")

    async def use() -> None:
        with ChatServer(slow) as server:
            async with OpenAIModel(Role(base_url=server.base_url, model="tester")) as model:
                asking = Asking(lambda environment: model, {"default": "tester"}, variant_named("uniform"), Budget())
                async with Client(make_server(LibraryTools(library), asking)) as client:
                    asked = {"question": QUESTION, "options": OPTIONS}
                    result = await client.call_tool("ask", asked, progress_callback=progressed)
        assert result.is_error
        assert "no such picture" in texts(result)[0]
        assert heard[-1].endswith("0 replies of models")

    asyncio.run(use())


def test_a_library_that_has_gone_is_said_in_a_line(tmp_path: Path) -> None:
    words = text_library(tmp_path / "words", {"walk": [(0.0, 4.0, "a red kite")]}, space="builtin")
    calls: dict[str, dict[str, Any]] = {"videos": {}, "overview": {"video": "walk"}, "search": {"query": "kite"}}
    calls["ask"] = {"question": "What?"}

    async def use(client: Client) -> None:
        assert (await data(client, "search", query="kite"))["hits"]
        shutil.rmtree(words.uri)
        for tool, arguments in calls.items():
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            (text,) = texts(result)
            assert f"cannot use {words.uri}: " in text
            assert "\n" not in text

    by(words, use)


def test_a_call_may_spend_less_than_the_server_allows_but_not_more(library: Library) -> None:
    async def use(client: Client) -> None:
        shown = [
            (await data(client, "ask", question=QUESTION, max_frames=most))["ledger"]["frames"] for most in (1, 100)
        ]
        assert shown[0] == 1
        assert 1 < shown[1] <= 4

    by(library, use, Budget(frames=4))


def test_detections_and_transcript_by_time_and_word(library: Library) -> None:
    async def use(client: Client) -> None:
        overview = await data(client, "overview", video="harbour")
        assert (overview["detected"], overview["transcript_lines"]) == ({"boat": 10}, 3)
        found = await data(client, "detections", video="harbour", label="Boat", start_s=2, end_s=4)
        assert [each["time_s"] for each in found["detections"]] == [2.0, 3.0]
        assert found["detections"][0]["box"] == pytest.approx([0.1, 0.2, 0.3, 0.4])
        assert not (await data(client, "detections", video="harbour", min_score=0.95))["detections"]
        (hit,) = (await data(client, "search", query="code word", only="transcript"))["hits"]
        assert hit["text"].startswith("Listen well")
        lines = await data(client, "transcript", video="harbour", start_s=hit["start_s"], end_s=hit["end_s"])
        assert [line["text"] for line in lines["lines"]] == [hit["text"]]
        detected = await data(client, "search", query="boat", only="detections", min_gap_s=5)
        assert len(detected["hits"]) == 2

    by(library, use)


def test_text_alone(tmp_path: Path) -> None:
    lines = [(0.0, 4.0, "a red kite over the sea"), (4.0, 8.0, "a green boat in the snow")]
    words = text_library(tmp_path / "words", {"walk": lines}, {"walk": [(1.0, 2.0, "look up")]}, space="builtin")

    async def use(client: Client) -> None:
        overview = await data(client, "overview", video="walk")
        assert [each["caption"] for each in overview["segments"]] == [text for *_, text in lines]
        assert overview["transcript_from"] == ["imported"]
        hits = (await data(client, "search", query="green boat"))["hits"]
        assert (hits[0]["start_s"], hits[0]["found_in"]) == (4.0, "caption")
        captions = await data(client, "captions", video="walk", start_s=4)
        assert [each["text"] for each in captions["captions"]] == [lines[1][2]]
        refused = await client.call_tool("frames", {"video": "walk"})
        assert "imported as text and has no frames" in texts(refused)[0]
        assert (await data(client, "ask", question="What is in the snow?", agent="uniform"))["evidence"]

    by(words, use)


def long_library(folder: Path) -> Library:
    """Many segments, captions and lines of one text-only video; some lines are very long."""
    lines = [(float(n), n + 1.0, f"caption {n}") for n in range(MANY)]
    said = [(float(n), n + 1.0, f"line {n} " + "word " * (400 if n % 50 == 7 else 30)) for n in range(MANY)]
    return text_library(folder, {"long": lines}, {"long": said})


def test_long_tables_come_in_pages_that_say_so(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for tool in ("transcript", "captions"):
            seen: list[dict[str, Any]] = []
            cut: str | None = ""
            while cut is not None:
                reply = await data(client, tool, video="long", offset=len(seen))
                cut = reply.get("cut")
                rows: Sequence[dict[str, Any]] = reply.get("lines") or reply["captions"]
                assert 0 < len(rows) <= mcp_replies.ROWS
                seen += rows
                assert cut is None or f"of {MANY}; call again with offset={len(seen)}" in cut
            assert [row["start_s"] for row in seen] == list(range(MANY))
            longest = max(len(row["text"]) for row in seen)
            assert longest < mcp_replies.CHARACTERS + 30
        assert "characters)" in (await data(client, "transcript", video="long", start_s=7, end_s=8))["lines"][0]["text"]
        overview = await data(client, "overview", video="long")
        starts = [each["start_s"] for each in overview["segments"]]
        assert len(starts) == mcp_replies.SEGMENTS
        assert np.diff(starts).max() <= 8
        assert f"60 of {MANY} segments" in overview["cut"]
        hits = await data(client, "search", query="caption", only="transcript", k=5)
        assert "cut" not in hits
        hits = await data(client, "search", query="word", only="transcript", k=1000)
        assert len(hits["hits"]) == mcp_replies.HITS
        assert "only 50 hits fit" in hits["cut"]

    by(long_library(tmp_path / "long"), use)


def test_pictures_are_few_and_small(library: Library, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (640, 640, 3), dtype=np.uint8)
    heavy = io.BytesIO()
    Image.fromarray(noise).save(heavy, "JPEG", quality=92)

    async def many(client: Client) -> None:
        result = await client.call_tool("frames", {"video": "harbour", "count": 20, "side_px": 4000})
        heading = json.loads(texts(result)[0])
        assert len(pictures_in(result)) == heading["frames"] == mcp_replies.FRAMES
        assert heading["cut"] == "the first 8 of 20 frames asked for; pictures are at most 1024 pixels a side"
        times_s = [json.loads(text)["time_s"] for text in texts(result)[1:]]
        assert np.diff(times_s).min() >= 3

    async def large(client: Client) -> None:
        result = await client.call_tool("frames", {"video": "noise", "count": 8})
        jpegs = [each.data for each in result.content if each.type == "image"]
        assert 0 < len(jpegs) < 8
        assert sum(map(len, jpegs)) <= mcp_replies.IMAGE_BYTES * 4 / 3 + 4 * len(jpegs)
        assert f"{len(jpegs)} of 8 pictures fit" in texts(result)[0]

    by(library, many)
    by(make_library(tmp_path / "heavy", {"noise": ["noise"] * 8}, heavy.getvalue()), large)


def test_what_tools_say_of_themselves(library: Library) -> None:
    async def use(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        limits = {"videos": 100, "overview": 60, "search": 50, "frames": 8, "transcript": 200, "ask": 50}
        for name, limit in limits.items():
            assert f"At most {limit} " in (tools[name].description or "")
        assert "1,024 pixels" in (tools["frames"].description or "")
        assert "700,000 bytes" in (tools["frames"].description or "")
        reads = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        assert reads == TOOLS - {"ask"}
        told = mcp_replies
        stated = (told.VIDEOS, told.SEGMENTS, told.HITS, told.FRAMES, told.ROWS, told.EVIDENCE)
        assert stated == tuple(limits.values())
        assert (told.SIDE_PX, told.IMAGE_BYTES, told.TEXT_BYTES) == (1024, 700_000, 40_000)

    by(library, use)


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("frames", {"video": "harbour", "times_s": [99]}, "give a time in there"),
        ("frames", {"video": "harbour", "start_s": 100, "end_s": 200}, "harbour, which covers [0.000, 30.000) s"),
        ("overview", {"video": "x" * 100_000}, "(100,"),
        ("overview", {"video": "harbour", "start_s": "nan"}, "give times in there"),
        ("transcript", {"video": "harbour", "start_s": 30}, "[0.000, 30.000) s; give times in there"),
        ("captions", {"video": "harbour", "end_s": 0}, "give times in there"),
        ("detections", {"video": "harbour", "start_s": 31, "end_s": 40}, "give times in there"),
        ("transcript", {"video": "harbour", "start_s": 5, "end_s": 5}, "the end must be after the start"),
        ("search", {"query": " "}, "give some words to look for"),
        ("search", {"query": "x", "videos": ["nobody"]}, "such as harbour"),
        ("search", {"query": "x", "k": -1}, "got k=-1; ask for at least 1 hit"),
        ("ask", {"question": "What?", "agent": "ea"}, "did you mean"),
        ("ask", {"question": "What?", "agent": "videoseek"}, "needs a language model"),
        ("ask", {"question": "What?", "settings": {"zap": 1}}, "there is no parameter 'zap'"),
        ("ask", {"question": "What?", "options": ["one"]}, "2 to 26"),
        ("ask", {"question": "What?", "max_frames": 0}, "give more than 0"),
    ],
)
def test_errors_of_the_tree_are_one_line(library: Library, tool: str, arguments: dict[str, Any], says: str) -> None:
    async def use(client: Client) -> None:
        result = await client.call_tool(tool, arguments)
        (text,) = texts(result)
        assert result.is_error
        assert says in text
        assert "\n" not in text
        assert len(text) < 1_200

    by(library, use)


@pytest.mark.parametrize(
    ("tool", "arguments", "wrong"),
    [
        ("search", {"query": "x", "video": "harbour"}, "video"),
        ("frames", {"video": "harbour", "times": [1.0]}, "times"),
    ],
)
def test_an_argument_that_a_tool_does_not_have_is_refused(
    library: Library, tool: str, arguments: dict[str, Any], wrong: str
) -> None:
    """Left out, it would have been a search of all videos, or other pictures than were asked for."""

    async def use(client: Client) -> None:
        result = await client.call_tool(tool, arguments)
        (text,) = texts(result)
        assert result.is_error
        assert f"{wrong}\n  Extra inputs are not permitted" in text
        (offered,) = [each for each in (await client.list_tools()).tools if each.name == tool]
        assert offered.input_schema["additionalProperties"] is False

    by(library, use)


def test_a_call_cannot_have_a_file_executed(library: Library, tmp_path: Path) -> None:
    own, trace = tmp_path / "own.py", tmp_path / "ran"
    own.write_text(f"open({str(trace)!r}, 'w').close()")

    async def use(client: Client) -> None:
        for name in (str(own), f"{own}:VARIANT", "own:VARIANT", "os.path:join"):
            refused = await client.call_tool("ask", {"question": QUESTION, "agent": name})
            assert refused.is_error
            assert "there is no agent" in texts(refused)[0]

    by(library, use)
    assert not trace.exists()


def test_a_command_that_cannot_serve(library: Library, monkeypatch: Any, capsys: Any, tmp_path: Path) -> None:
    kinodex: Kinodex = runner(monkeypatch, capsys)
    bad(kinodex, "mcp", tmp_path / "nothing", code=4, says="there is no library")
    bad(kinodex, "mcp", library.uri, "--agent", "nobody", code=2, says="there is no agent 'nobody'")
    bad(kinodex, "mcp", library.uri, "--max-cost", "1", code=2, says="without prices")
    bad(kinodex, "mcp", library.uri, "--base-url", "http://x/v1", code=2, says="without --model")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        bad(kinodex, "mcp", library.uri, "--http", "--port", port, code=2, says="give another --host or --port")
