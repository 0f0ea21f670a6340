"""Agents that work with text alone, end to end with real weights: SmolLM2-135M-Instruct, bound to each reply's schema.

Its answers are poor, near chance; what is measured is that its replies can be used. docs/measured.md has the figures.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.limits.budget import Budget
from kinodex.agent.local.model import LocalModel, load_local_model
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.question import Question
from kinodex.agent.traces.events import Event, Exchanged
from kinodex.agent.videos.environment import Environment
from tests.support.libraries.agent_library import environment_of
from tests.support.libraries.text_library import text_library
from tests.support.models.real_models import real_model
from tests.world.sketch.questions import write_questions
from tests.world.sketch.script import write_script

pytestmark = [pytest.mark.third_party, pytest.mark.slow, pytest.mark.timeout(900)]

TEXT_AGENTS = ("blind", "longvideoagent", "videoagent", "videotree", "videoagent2")
QUESTION = Question("What colour is the kite?", ("blue", "red", "green"))
CHAPTERS = ("a dog runs on a beach", "a red kite flies in the sky", "a boat in a harbour", "a woman paints a fence")
MAX_TOKENS = 224
VALID_SHARE = 0.9


@pytest.fixture(scope="module")
def model() -> LocalModel:
    return load_local_model(str(real_model("language")), temperature=0.0, max_new_tokens=MAX_TOKENS, constrained=True)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    lines = [(15.0 * at, 15.0 * at + 15.0, text) for at, text in enumerate(CHAPTERS)]
    return environment_of(text_library(tmp_path_factory.mktemp("scenes") / "library", {"film": lines}, {"film": lines}))


def run(environment: Environment, model: LocalModel, agent: str, question: Question) -> tuple[Any, list[Exchanged]]:
    """The answer, and the exchanges that led to it."""
    events: list[Event] = []
    model.generator.close()  # the loop of the run before is gone
    asked = ask(question, environment, model, agent=agent, budget=Budget(rounds=3), on_event=events.append)
    answer = asyncio.run(asked)
    return answer, [event for event in events if isinstance(event, Exchanged)]


def test_every_agent_of_text_gets_valid_replies_from_a_real_model_that_is_bound(
    environment: Environment, model: LocalModel
) -> None:
    replies: dict[str, list[bool]] = {}
    for agent in TEXT_AGENTS:
        answer, exchanges = run(environment, model, agent, QUESTION)
        assert answer.status in ("answered", "insufficient_evidence", "budget_exhausted"), (agent, answer)
        replies[agent] = [event.exchange.reply is not None for event in exchanges]
    shares = {agent: sum(valid) / len(valid) for agent, valid in replies.items()}
    total = [each for valid in replies.values() for each in valid]
    assert sum(total) / len(total) >= VALID_SHARE, (shares, {agent: len(valid) for agent, valid in replies.items()})


def echoed(event: Exchanged) -> bool:
    """True if a text of the reply is one that its prompt shows as an example, or in the place of a reply."""
    prompt, raw = render(event.request), event.exchange.raw
    shown = re.findall(r">([^<>]+)</", prompt)
    for line in [each for each in prompt.splitlines() if '{"' in each][-1:]:
        shown += re.findall(r'": "([^"]+)"', line[line.index('{"') :])
    written = re.findall(r">([^<>]+)</", raw) + re.findall(r'": "([^"]+)"', raw)
    return any(each in shown for each in written if not re.fullmatch("[A-Z]|answer|explore|caption", each))


def letter_once_shown(question: Question) -> str:
    """The letter that examples of an answer to this question showed up to November 2026."""
    return question.lettered[zlib.crc32(question.text.encode()) % len(question.options)][0]


def measure(folder: str, *, constrained: bool, count: int = 3) -> None:
    """Print for each agent and question about a sketch film how many replies were valid, echoed an example or chose its
    letter, for docs/measured.md.

    The film's captions are its script's: python -m tests.end_to_end.test_real_language_model FOLDER [free]
    """
    script = write_script("harbour", 45.0, 5, spoken=True)
    captions = {"harbour": [(shot.start_s, shot.end_s, shot.description) for shot in script.shots]}
    said = {"harbour": [(line.start_s, line.end_s, line.text) for line in script.lines]}
    scenes = environment_of(text_library(Path(tempfile.mkdtemp()) / "library", captions, said))
    loaded = load_local_model(folder, temperature=0.0, max_new_tokens=MAX_TOKENS, constrained=constrained)
    for known in write_questions(script, "harbour", 5, count):
        question = Question(known.question, known.options)
        for agent in TEXT_AGENTS:
            answer, exchanges = run(scenes, loaded, agent, question)
            valid = [event for event in exchanges if event.exchange.reply is not None]
            letters = [getattr(event.exchange.reply, "option", None) for event in valid]
            same = sum(each == letter_once_shown(question) for each in letters)
            right = "right" if answer.option == known.answer else "wrong"
            counts = f"{len(valid)} of {len(exchanges)} valid", f"{sum(map(echoed, exchanges))} echoed"
            chosen = f"{same} of {sum(each is not None for each in letters)} the example's letter"
            print(agent, *counts, chosen, answer.status, right, flush=True)


if __name__ == "__main__":
    measure(sys.argv[1], constrained="free" not in sys.argv)
