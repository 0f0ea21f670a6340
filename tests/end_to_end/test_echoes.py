"""A model that sends back what it was sent answers nothing, and nothing of what it says is kept in a library."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import VARIANTS, ask
from kinodex.agent.environment import Environment
from kinodex.agent.limits import Budget
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.protocol import AnswerRules, Question
from kinodex.agent.variants.base import Variant
from kinodex.index.library import Library
from tests.support.command import Kinodex
from tests.support.libraries.agent_library import environment_of
from tests.support.servers.chat_server import ChatServer, Seen
from tests.support.servers.wire import role

QUESTIONS = (Question("What colour is the kite?", ("red", "blue", "green")), Question("What happens to the kite?"))
NOTHING = {"invalid", "insufficient_evidence", "budget_exhausted"}


def form_of(text: str) -> str:
    """The form of a reply that a prompt shows: JSON, or one tag after the other where replies are tags."""
    lines = [line for line in text.splitlines() if '{"' in line]
    tags = re.findall(r"<(?:answer|visual_query|request_grounding)>[^<]+</\w+>", text)
    return lines[-1][lines[-1].index('{"') :] if lines else tags[-1] if tags else text


ECHOES: dict[str, Callable[[str], str]] = {
    "form": form_of,
    "prompt": lambda text: text,
    "keys": lambda text: json.dumps(dict(re.findall(r'- "(\w+)": ([^\n;]+)', text))),
}


def echo(kind: str) -> Callable[[dict], str]:
    return lambda body: ECHOES[kind](Seen(0.0, {}, body, ()).text)


@pytest.fixture(scope="module")
def copied(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(library, tmp_path_factory.mktemp("echoes") / "library"))


@pytest.fixture(scope="module")
def environment(copied: Path) -> Environment:
    opened = Library.open(str(copied))
    return environment_of(opened, opened.videos()[0].title)


def answer_of(environment: Environment, agent: Variant, question: Question, kind: str, *, force: bool) -> Answer:
    async def whole(server: ChatServer) -> Answer:
        async with OpenAIModel(role(server)) as model:
            rules = AnswerRules(force_choice=force)
            return await ask(question, environment, model, agent=agent, budget=Budget(rounds=2), rules=rules)

    with ChatServer(echo(kind)) as server:
        answer = asyncio.run(whole(server))
    assert server.problems == []
    return answer


@pytest.mark.parametrize("agent", [each for each in VARIANTS if each.name != "random"], ids=lambda agent: agent.name)
def test_an_echo_is_no_reply(agent: Variant, environment: Environment) -> None:
    for kind, question in (
        ("form", QUESTIONS[0]),
        ("form", QUESTIONS[1]),
        ("prompt", QUESTIONS[1]),
        ("keys", QUESTIONS[1]),
    ):
        answer = answer_of(environment, agent, question, kind, force=kind == "form")
        assert (answer.text, answer.option) == (None, None), (kind, answer)
        assert answer.status in NOTHING, (kind, answer)
        assert answer.ledger.invalid_replies > 0, (kind, answer)


def test_an_echo_is_no_caption(copied: Path, kinodex: Kinodex) -> None:
    for kind in ECHOES:
        with ChatServer(echo(kind), models=[kind]) as server:
            ran = kinodex("add", "captions", copied, "--model", kind, "--base-url", server.base_url)
            assert server.seen, ran
    opened = Library.open(str(copied))
    assert [opened.captions(video.video_id) for video in opened.videos()] == [[], [], []]
