"""The tool `ask` answers as the library does, within the limits of the server."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import asdict
from pathlib import Path

from mcp import Client

from kinodex.agent.ask import ask, variant_named
from kinodex.agent.limits import Budget
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import Role
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.protocol import Question
from kinodex.index.library import Library
from kinodex.jobs.open import open_environment
from kinodex.mcp.server import AskOptions, LibraryTools, make_server
from tests.support.servers.chat_server import Behaviour, ChatServer, failing
from tests.support.servers.mcp_client import OPTIONS, QUESTION, call, texts, use_tools


def test_ask_answers_as_the_library_does(mcp_library: Library) -> None:
    environment = open_environment(mcp_library.uri)
    answer = asyncio.run(ask(Question(QUESTION, tuple(OPTIONS)), environment, RuleBasedModel(environment)))
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
                uniform = variant_named("uniform")
                options = AskOptions(lambda environment: model, {"default": "tester"}, uniform, Budget(), beat_s=0.01)
                async with Client(make_server(LibraryTools(mcp_library), options)) as client:
                    asked = {"question": QUESTION, "options": OPTIONS}
                    result = await client.call_tool("ask", asked, progress_callback=progressed)
        assert result.is_error
        assert "no such picture" in texts(result)[0]
        assert messages[-1].endswith("0 replies of models")

    asyncio.run(use())


def test_a_call_may_spend_less_than_the_server_allows_but_not_more(mcp_library: Library) -> None:
    async def use(client: Client) -> None:
        shown = [
            (await call(client, "ask", question=QUESTION, max_frames=most))["ledger"]["frames"] for most in (1, 100)
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
