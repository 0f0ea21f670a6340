"""Every agent against servers that fail once, or from then on, at each of its requests: in the words of each provider.

The cells are agent x dialect x fault x request. A fault that comes once costs a look at most: the question ends in an
answer. One that stays ends in the best answer so far or an honest "invalid" that says why. A question on which money
was spent is never lost, but to a server that answers nothing any more: then one line names the cause.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.catalogue import VARIANTS
from kinodex.agent.errors import AgentError
from kinodex.agent.limits.budget import Budget
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.protocol.question import Question
from kinodex.agent.variants.base import Variant
from kinodex.agent.videos.environment import Environment
from kinodex.index.rows import SpeechRow
from tests.support.libraries.agent_library import environment_of, film, make_library
from tests.support.servers.chat_server import Behaviour, ChatServer, cut_off, failing, rate_limited, refusing
from tests.support.servers.rule_server import Rules
from tests.support.servers.rules_sight import Unseeing
from tests.support.servers.wire import frame, role

REFUSALS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data/server_refusals.json").read_text())
ASKED = [variant for variant in VARIANTS if variant.roles and variant.sees_video]
QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
BUDGET = Budget(rounds=2)
MOST_STEPS = 4
"""Requests from the first one on, and so many before the last: in between an agent captions frame by frame."""
AT_ONCE = 12
"""Cells: most of their time is waits before a second attempt."""
ENDED = {"answered", "insufficient_evidence", "budget_exhausted", "invalid"}
Fault = Callable[[Any], Behaviour]
"""What is sent in the place of the right reply."""


def recorded(server: str, objects_to: str) -> Behaviour:
    """A refusal as a real server sent it, to be tried again at once."""
    found = next(each for each in REFUSALS if each["server"] == server and each["objects_to"] == objects_to)
    return Behaviour(status=found["status"], headers={"Retry-After": "0.01"}, body=found["body"])


def text_of(right: Any) -> str:
    if isinstance(right, Behaviour):
        return right.content or json.dumps([*right.calls])
    return right if isinstance(right, str) else json.dumps(right)


def half(right: Any) -> Behaviour:
    """The first half of the right reply, where the tokens ended."""
    text = text_of(right)
    return cut_off(text[: len(text) // 2])


def thoughts_alone(**message: str) -> Fault:
    """Thoughts that took all tokens, in the field of a dialect, or in the text."""
    body = {"role": "assistant", "content": message.pop("content", None), **message}
    choice = {"index": 0, "finish_reason": "length", "message": body}
    usage = {"prompt_tokens": 900, "completion_tokens": 4096, "completion_tokens_details": {"reasoning_tokens": 4096}}
    return lambda right: Behaviour(body={"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage})


def always(behaviour: Behaviour) -> Fault:
    return lambda right: behaviour


MUSING = "First the desert, then the kite, then the desert once more. " * 20
BUSY = Behaviour(status=503, headers={"Retry-After": "0.01"}, body={"error": "server busy, please try again"})
LOADING = failing(503, "Loading model", headers={"Retry-After": "0.01"}, type="unavailable_error")
EXHAUSTED = failing(429, "Resource has been exhausted.", headers={"Retry-After": "0.01"}, code="RESOURCE_EXHAUSTED")
OVERLOADED = failing(529, "Overloaded", headers={"Retry-After": "0.01"}, type="overloaded_error")
FILTERED = Behaviour(content="", finish_reason="content_filter")
POLITE = "I'm sorry, but I can't help with that."
DIALECTS: dict[str, dict[str, Fault]] = {
    "OpenAI": {
        "refuses": always(refusing(POLITE)),
        "truncates": half,
        "filters": always(recorded("Azure OpenAI", "filter")),
        "rate-limits": always(rate_limited("0.01")),
    },
    "OpenAI, reasoning": {
        "refuses": always(refusing(POLITE)),
        "filters": always(recorded("OpenAI, of reasoning models", "filter")),
        "over-thinks": thoughts_alone(),
    },
    "vLLM": {
        "refuses": lambda right: Behaviour(content=POLITE),
        "truncates": half,
        "over-thinks": thoughts_alone(reasoning_content=MUSING),
    },
    "llama.cpp": {
        "refuses": lambda right: Behaviour(content=POLITE),
        "truncates": half,
        "rate-limits": always(LOADING),
        "over-thinks": thoughts_alone(content=f"<think>{MUSING}"),
    },
    "Ollama": {
        "truncates": half,
        "rate-limits": always(BUSY),
        "over-thinks": thoughts_alone(content="", reasoning=MUSING),
    },
    "Anthropic": {
        "refuses": lambda right: Behaviour(content=POLITE),
        "truncates": half,
        "rate-limits": always(OVERLOADED),
    },
    "Gemini": {
        "filters": always(FILTERED),
        "truncates": half,
        "rate-limits": always(EXHAUSTED),
        "over-thinks": thoughts_alone(content=""),
    },
}
CELLS = [(dialect, fault) for dialect, faults in DIALECTS.items() for fault in faults]


@dataclass
class FailingServer:
    """Replies by rules, but to request number `at`, or from it on, by a fault; counts the requests."""

    rules: Rules
    fault: Fault | None = None
    at: int = 0
    stays: bool = False
    requests: int = 0

    def __call__(self, body: dict) -> Any:
        number, self.requests = self.requests, self.requests + 1
        right = self.rules(body)
        fails = number >= self.at if self.stays else number == self.at
        return self.fault(right) if self.fault is not None and fails else right


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A minute of film in which somebody says one line."""
    library = make_library(tmp_path_factory.mktemp("dialects"), {"film": film(1, 60)}, frame(1, size=(16, 12)).jpeg)
    video_id = library.video("film").video_id
    library.writer.add_speech({video_id: [SpeechRow(video_id, 5.0, 8.0, "Good morning.", "sidecar")]})
    return environment_of(library)


async def outcome(variant: Variant, environment: Environment, replies: FailingServer) -> Answer | AgentError:
    settings: Mapping[str, Any] = {"images": 64, "attempts": 2, "give_up_after_s": 4.0}
    with ChatServer(replies) as server:
        async with OpenAIModel(role(server, **settings)) as model:
            try:
                fresh = environment.without_shared_captions()
                return await ask(QUESTION, fresh, model, agent=variant.name, budget=BUDGET)
            except AgentError as error:
                return error


@pytest.mark.slow
@pytest.mark.parametrize("variant", ASKED, ids=lambda variant: variant.name)
def test_every_cell_ends_in_an_answer_or_in_one_line(variant: Variant, environment: Environment) -> None:
    right = FailingServer(Rules(Unseeing("fog")))
    assert isinstance(asyncio.run(outcome(variant, environment, right)), Answer)
    at_once = asyncio.Semaphore(AT_ONCE)

    async def try_cell(dialect: str, name: str, at: int, stays: bool) -> None:
        async with at_once:
            replies = FailingServer(Rules(Unseeing("fog")), DIALECTS[dialect][name], at, stays)
            ended = await outcome(variant, environment, replies)
        cell = (variant.name, dialect, name, at, "stays" if stays else "once")
        check(ended, cell, stays=stays, name=name)

    async def try_all() -> None:
        last = right.requests - 1
        steps = sorted({*range(min(MOST_STEPS, last + 1)), *range(max(0, last - MOST_STEPS), last + 1)})
        cells = itertools.product(CELLS, steps, (False, True))
        await asyncio.gather(*(try_cell(*cell, at, stays) for cell, at, stays in cells))

    asyncio.run(try_all())


def check(ended: Answer | AgentError, cell: tuple[Any, ...], *, stays: bool, name: str) -> None:
    if isinstance(ended, AgentError):
        assert stays and name == "rate-limits", (cell, ended)
        assert str(ended).strip() and "\n" not in str(ended), cell
        return
    assert ended.status in ENDED, cell
    if not stays:
        assert ended.status != "invalid", (cell, ended.reason)
    if ended.status == "invalid":
        assert ended.reason and "\n" not in ended.reason, cell
