"""A model that takes no pictures is told apart before the first call of an agent that looks at frames."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask, spent_until
from kinodex.agent.catalogue import find_variant
from kinodex.agent.errors import ModelError, TakesNoPictures
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.response_cache import ResponseCache
from kinodex.agent.models.roles import Role
from kinodex.agent.models.sight import listed_sight
from kinodex.agent.videos.environment import Environment
from kinodex.jobs.costs import sight_tries
from kinodex.jobs.models import ModelChoice
from tests.support.runs.kite_runs import QUESTION
from tests.support.servers.chat_server import ChatServer, failing, in_turn

UNSAID: dict[str, object] = {"architecture": None}
BLIND = failing(400, "facebook/opt-125m is not a multimodal model None")


def answer(
    kites: Environment, server: ChatServer, cache: ResponseCache | None = None, agent: str = "eea", **own: Any
) -> Answer:
    async def once() -> Answer:
        role = Role(base_url=server.base_url, model=server.models[0], attempts=1, **own)
        async with OpenAIModel(role, cache=cache) as model:
            return await ask(QUESTION, kites, model, agent=agent)

    return asyncio.run(once())


def tries(server: ChatServer) -> int:
    """Count the pictures that were shown to find out if the model sees, and forget what was asked."""
    count = sum("Which colour is this picture" in each.text for each in server.seen)
    server.seen.clear()
    return count


def test_a_model_without_sight_is_refused_before_any_question(kites: Environment, tmp_path: Path) -> None:
    cases: list[tuple[Any, dict[str, object], int, str]] = [
        (BLIND, UNSAID, 1, "not a multimodal model"),
        ("I cannot see pictures.", UNSAID, 1, "it says of a blue one: I cannot see pictures."),
        ("", {"architecture": {"input_modalities": ["text"]}}, 0, "its server lists it without"),
        ("", {**UNSAID, "capabilities": {"vision": False}}, 0, "its server lists it without"),
    ]
    for said, facts, shown, says in cases:
        with ChatServer(in_turn(said)) as server:
            server.model_facts = facts
            with ResponseCache(tmp_path / "replies.sqlite") as cache:
                for _ in range(2):  # it is looked at again: it may have been served with its vision since
                    with pytest.raises(TakesNoPictures, match=says) as caught:
                        answer(kites, server, cache)
                    assert (len(server.seen), tries(server)) == (shown, shown), says
            assert spent_until(caught.value).calls == int(shown and said is not BLIND), "what it said has its price"
            message = str(caught.value)
            assert "and the agent eea looks at frames; name a model with vision" in message
            assert message.endswith(
                "works from captions, of which only the captioner has to see: videoagent, videotree"
            )
            with suppress(ModelError):
                answer(kites, server, agent="uniform")
            assert server.seen and not tries(server), "an agent that can read is not held up"


def test_one_that_sees_is_shown_one_picture_once(kites: Environment, tmp_path: Path) -> None:
    with ChatServer(lambda _: "blue") as server, ResponseCache(tmp_path / "replies.sqlite") as cache:
        plain = answer(kites, server).ledger.calls
        assert tries(server) == 0, "its server says so"
        server.model_facts = UNSAID
        choice = ModelChoice(server.models[0], server.base_url, cache_path=cache.path)
        variant = find_variant("eea")
        assert sight_tries(choice, variant.needs_pictures) == 1 and sight_tries(choice, needs_pictures=False) == 0
        assert answer(kites, server, cache).ledger.calls == plain + 1
        assert tries(server) == 1
        assert sight_tries(choice, variant.needs_pictures) == 0
        answer(kites, server, cache, max_tokens=9999)
        answer(kites, server, images=4)
        assert tries(server) == 0, "kept by address and model; a role may say it"


def test_lists_of_models_as_servers_write_them() -> None:
    for facts, sees in (
        ({"architecture": {"input_modalities": ["text", "image"]}}, True),
        ({"architecture": {"input_modalities": ["text"]}}, False),
        ({"architecture": {"modality": "text->text"}, "input_modalities": ["image"]}, None),
        ({"input_modalities": ["text", "image"]}, True),
        ({"capabilities": {"vision": True}}, True),
        ({"capabilities": {"vision": False}}, False),
        ({"capabilities": {"completion_chat": True}}, None),
        ({"capabilities": ["completion", "vision"]}, True),
        ({"capabilities": ["completion", "multimodal"]}, True),
        ({"capabilities": ["completion"]}, None),
        ({"max_model_len": 4096}, None),
    ):
        assert listed_sight([{"id": "other"}, {"id": "m", **facts}], "m") is sees, facts
    assert listed_sight(None, "m") is None
    assert listed_sight([{"id": "other", "capabilities": {"vision": False}}], "m") is None
