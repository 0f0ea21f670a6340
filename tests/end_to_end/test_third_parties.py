"""Servers that others wrote, on loopback: kinodex's requests are understood, and their refusals too."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.errors import ModelError
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol.question import Question
from kinodex.doctor.endpoint import check_endpoint
from kinodex.jobs.open import open_environment
from tests.support.models.real_models import real_model
from tests.support.runs.check_results import by_name
from tests.support.servers.rule_server import MODEL, Rules, RuleServer
from tests.support.servers.third_parties.processes import litellm_proxy, transformers_serve
from tests.support.servers.wire import discover, score

pytestmark = [pytest.mark.third_party, pytest.mark.slow, pytest.mark.timeout(900)]


def exchanged(base_url: str, model: str, request: Any, **settings: Any) -> Any:
    role = Role(base_url=base_url, model=model, timeout_s=240, attempts=1, **settings)

    async def once() -> Any:
        async with OpenAIModel(role) as opened:
            return await opened.ask(request)

    return asyncio.run(once())


def test_transformers_serve_with_a_real_language_model() -> None:
    folder = str(real_model("language"))
    with transformers_serve(Path(folder)) as base_url:
        exchange = exchanged(base_url, folder, discover(), max_tokens=40)
        with pytest.raises(ModelError, match="Server is pinned to"):
            exchanged(base_url, "another", discover(), max_tokens=8)
    assert exchange.usage.input_tokens > 100, "it counts tokens"
    assert exchange.usage.unknown_calls == 0
    assert exchange.raw.strip(), "it says something; nothing binds it to the schema"


def test_transformers_serve_with_a_tiny_model_that_sees(tiny_model: Callable[[str], Path]) -> None:
    folder = str(tiny_model("llava"))
    with transformers_serve(Path(folder)) as base_url:
        exchange = exchanged(base_url, folder, score(), max_tokens=12)
        found = by_name(check_endpoint(base_url, folder, None))
    assert exchange.invalid, "random weights talk nonsense"
    assert exchange.usage.input_tokens > 2 * 16, "both pictures were read"
    assert found["chat"].state == "ok"
    assert found["images"].said.startswith("says of a blue picture"), "the picture is taken, if not understood"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The base URLs of the rule server, and of LiteLLM's proxy before it."""
    key, folder = f"sk-{secrets.token_hex(32)}", tmp_path_factory.mktemp("litellm")
    with pytest.MonkeyPatch.context() as patch, RuleServer(Rules()) as server:
        patch.setenv("OPENAI_API_KEY", key)
        with litellm_proxy(server.base_url, folder, key) as base_url:
            yield server.base_url, base_url


@pytest.mark.parametrize("agent", ["eea", "videoseek"])
def test_litellms_proxy_changes_no_answer(library: Path, proxied: tuple[str, str], agent: str) -> None:
    environment = open_environment(str(library), ["film-01"])
    question = Question("What appears in the film?", ("a blue boat", "a pink elephant"))

    async def answer(base_url: str) -> Any:
        async with OpenAIModel(Role(base_url=base_url, model=MODEL)) as model:
            return await ask(question, environment, model, agent=agent)

    direct, through = (asyncio.run(answer(base_url)) for base_url in proxied)
    assert (through.status, through.option, through.evidence) == (direct.status, direct.option, direct.evidence)
    # The proxy does not say whether its model sees: a small picture is shown first.
    assert (through.ledger.calls - 1, through.ledger.unknown_calls) == (direct.ledger.calls, 0)
    assert through.ledger.invalid_replies == direct.ledger.invalid_replies


def test_litellms_refusals_are_understood(proxied: tuple[str, str]) -> None:
    with pytest.raises(ModelError) as caught:
        exchanged(proxied[1], "unheard-of", discover())
    assert "has no model 'unheard-of'" in str(caught.value)
    assert "rules" in str(caught.value)
