"""Constrained decoding: a model with random weights, which knows nothing at all, gives replies that can be used."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.errors import ModelRejected
from kinodex.agent.models.local import MAX_CHARACTERS, LocalModel, TokenMasks, bound, load_local_model, reply_grammar
from kinodex.agent.protocol import Exchange, Question, Video
from kinodex.agent.requests.answer import Guess
from kinodex.agent.requests.tree import DiscoverQueries
from kinodex.agent.variants.longvideoagent_requests import AnswerNow, ChooseAction, Clip
from tests.support.models.training_model import letters_model

QUESTION, VIDEO = Question("What is it?", ("a kite", "a crow")), Video("0" * 32, "film", 0.0, 60.0)
CLIPS = (Clip(1, VIDEO.video_id, 0.0, 30.0, "a kite"), Clip(2, VIDEO.video_id, 30.0, 60.0, "a crow"))
MASTER: dict[str, Any] = {"question": QUESTION, "videos": (VIDEO,), "clips": CLIPS, "steps": 3}
REQUESTS: dict[str, Any] = {
    "guess": Guess(question=QUESTION, videos=(VIDEO,)),
    "queries": DiscoverQueries(question=QUESTION),
    "master": ChooseAction(**MASTER),
    "last word": AnswerNow(**MASTER, notes=()),
}

TIMES = 2
NO_OPTION = "None names no option; give a letter from A to B"
"""No schema says that an answer needs what declining does not."""


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return letters_model(tmp_path_factory.mktemp("letters") / "model")


@pytest.fixture(scope="module")
def bound_model(letters: Path) -> LocalModel:
    return load_local_model(str(letters), max_new_tokens=1000, constrained=True)


@pytest.fixture(scope="module")
def exchanges(bound_model: LocalModel) -> dict[str, list[Exchange[Any]]]:
    """The exchanges of each request, sent a few times; requests of one temperature make one batch."""

    async def run() -> list[Exchange[Any]]:
        return await asyncio.gather(*(bound_model.ask(each) for each in REQUESTS.values() for _ in range(TIMES)))

    came = asyncio.run(run())
    return {name: came[TIMES * at : TIMES * (at + 1)] for at, name in enumerate(REQUESTS)}


@pytest.mark.parametrize("name", REQUESTS)
def test_random_weights_give_valid_replies(exchanges: dict[str, list[Exchange[Any]]], name: str) -> None:
    assert {each.invalid for each in exchanges[name]} <= {None, NO_OPTION}
    assert len({each.raw for each in exchanges[name]}) > 1 or name == "last word"


def test_without_the_bound_they_give_none(letters: Path, bound_model: LocalModel) -> None:
    free = load_local_model(str(letters), max_new_tokens=50)
    assert asyncio.run(free.ask(REQUESTS["guess"])).reply is None
    assert (free.name, bound_model.name) == (f"local:{letters}", f"constrained:{letters}")


def test_texts_and_lists_get_a_limit_and_keep_their_own() -> None:
    text: dict[str, Any] = {"type": "string"}
    schema = {"type": "object", "properties": {"a": text, "b": {"type": "array", "items": {**text, "maxLength": 3}}}}
    bounded = bound({**schema, "anyOf": [{"type": "string", "enum": ["x"]}, {"type": "array", "minItems": 20}]})
    assert bounded["properties"]["a"] == {"type": "string", "maxLength": MAX_CHARACTERS}
    assert bounded["properties"]["b"] == {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 8}
    assert bounded["anyOf"] == [{"type": "string", "enum": ["x"]}, {"type": "array", "minItems": 20, "maxItems": 20}]


class AnyText(ChooseAction):
    """A request that any text answers."""

    def pattern(self) -> str:
        return ""


def test_a_text_of_any_form_is_not_bound() -> None:
    assert reply_grammar(AnyText(**MASTER)) == ""


def test_a_grammar_that_cannot_be_followed_is_refused_with_what_to_do(bound_model: LocalModel) -> None:
    masks = TokenMasks(bound_model.generator.tokenizer, 300, [0])
    with pytest.raises(ModelRejected, match="use local:FOLDER"):
        masks.processor(["no grammar"], 1)
