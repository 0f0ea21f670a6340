"""A causal language model in this process: how it answers requests, and what it refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.errors import ModelRejected, ModelUnknown
from kinodex.agent.local.grammar import TokenMasks, bound
from kinodex.agent.local.model import LocalModel, conversation, load_local_model
from kinodex.agent.local.tokens import conversation_tokens, first_tokens, message_tokens, opens_thinking
from kinodex.agent.prompts.messages import Message
from kinodex.agent.protocol.exchange import Exchange
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Turn
from kinodex.agent.protocol.videos import Video
from kinodex.agent.requests.answer import AnswerFrames, Guess
from kinodex.agent.requests.tree import DiscoverQueries
from kinodex.agent.variants.longvideoagent.clips import Clip
from kinodex.agent.variants.longvideoagent.requests import AnswerNow, ChooseAction
from kinodex.jobs.models import ModelChoice, chosen_models
from tests.support.models.training_model import TEMPLATE, letters_model, tiny_master, words_tokenizer

QUESTION, VIDEO = Question("What is it?", ("a kite", "a crow")), Video("0" * 32, "film", 0.0, 60.0)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return words_tokenizer(["user: assistant: what is it a kite here now"] * 9, words=9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    """The folder of the model, as `save_pretrained` writes it."""
    return tiny_master(tmp_path_factory.mktemp("local") / "model", tokenizer)


@pytest.fixture
def model(folder: Path) -> LocalModel:
    return load_local_model(str(folder), max_new_tokens=5)


def choose(*turns: Turn, **more) -> ChooseAction:
    return ChooseAction(question=QUESTION, videos=(VIDEO,), clips=(), steps=5, turns=turns, **more)


@pytest.mark.slow
def test_requests_are_answered_or_the_reply_is_invalid(model):
    async def many():
        return await asyncio.gather(*(model.ask(choose()) for _ in range(40)))

    exchanges = asyncio.run(many())
    assert {each.reply is None for each in exchanges} == {True, False}
    assert all((each.reply is None) == bool(each.invalid) for each in exchanges)
    assert all(each.usage.output_tokens <= 5 < each.usage.input_tokens for each in exchanges)


def test_json_is_asked_for_and_not_made_up(model):
    asked = Guess(question=QUESTION, videos=(VIDEO,), attempt=1, complaint="empty", bad_reply="what")
    messages = conversation(asked)
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert "JSON schema" in str(messages[0]["content"]) and "cannot be used: empty" in str(messages[2]["content"])
    exchange = asyncio.run(model.ask(asked))
    assert exchange.reply is None and exchange.invalid


def test_what_it_cannot_read_is_said(model, tokenizer, tmp_path):
    frame = ShownFrame("0" * 32, 0, 0.0, 8, 8, b"")
    with pytest.raises(ModelRejected, match="reads text only"):
        asyncio.run(model.ask(AnswerFrames(question=QUESTION, videos=(VIDEO,), frames=(frame,))))
    with pytest.raises(ModelRejected, match="more than the 4096"):
        asyncio.run(model.ask(Guess(question=Question("it " * 4096), videos=(VIDEO,))))
    with pytest.raises(ModelUnknown, match=r"holds no config\.json"):
        load_local_model(str(tmp_path))


def test_a_role_may_be_a_folder(folder, tmp_path):
    roles = tmp_path / "roles.toml"
    roles.write_text(
        f'[policy]\nmodel = "local:{folder}"\nmax_tokens = 3\ntemperature = 0.0\n'
        '[vision]\nmodel = "seer"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )

    async def opened():
        async with chosen_models(ModelChoice(roles_file=roles, cache=False)) as models:
            nowhere: Any = None  # endpoints and folders do not ask what the environment is
            chosen: Any = models(nowhere)
            said = [await chosen["policy"].ask(choose()) for _ in range(2)]
            return {role: model.name for role, model in chosen.items()}, said

    names, said = asyncio.run(opened())
    assert names == {"policy": f"local:{folder}", "vision": "seer"}
    assert said[0].raw == said[1].raw
    assert said[0].usage.output_tokens <= 3


# Generation by a causal language model: batches, ends, stops, limits.


def test_a_batch_says_what_each_would_alone(model, tokenizer):
    prompts = [first_tokens(tokenizer, text) for text in ("what", "what is it", "a kite here now is it")]

    async def both():
        together = await asyncio.gather(*(model.generator.generate(prompt, 0.0) for prompt in prompts))
        return together, [await model.generator.generate(prompt, 0.0) for prompt in prompts]

    batch, single = asyncio.run(both())
    assert batch == single and all(1 <= len(said) <= 5 for said in batch)


# Constrained decoding: a model with random weights, which knows nothing at all, gives replies that can be used.


CLIPS = (Clip(1, VIDEO.video_id, 0.0, 30.0, "a kite"), Clip(2, VIDEO.video_id, 30.0, 60.0, "a crow"))
MASTER: dict[str, Any] = {"question": QUESTION, "videos": (VIDEO,), "clips": CLIPS, "steps": 3}


@pytest.fixture(scope="module")
def bound_model(tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    letters = letters_model(tmp_path_factory.mktemp("letters") / "model")
    return load_local_model(str(letters), max_new_tokens=1000, constrained=True)


@pytest.mark.slow
def test_random_weights_give_valid_replies(bound_model: LocalModel) -> None:
    """No schema says that an answer needs what declining does not: that alone may be wrong."""
    guess = Guess(question=QUESTION, videos=(VIDEO,))
    asked: list[Any] = [guess, guess, ChooseAction(**MASTER), AnswerNow(**MASTER, notes=())]

    async def run() -> list[Exchange[Any]]:
        return await asyncio.gather(*(bound_model.ask(each) for each in asked))

    said = asyncio.run(run())
    assert {each.invalid for each in said} <= {None, "None names no option; give a letter from A to B"}
    assert said[0].raw != said[1].raw
    texts = bound(DiscoverQueries(question=QUESTION).schema())["properties"]["queries"]
    assert (texts["maxItems"], texts["items"]["minLength"], texts["items"]["maxLength"]) == (5, 1, 100)


def test_a_grammar_that_cannot_be_followed_is_refused_with_what_to_do(bound_model: LocalModel) -> None:
    masks = TokenMasks(bound_model.generator.tokenizer, 300, [0])
    with pytest.raises(ModelRejected, match="use local:FOLDER"):
        masks.processor(["no grammar"], 1)


def test_a_conversation_is_written_piece_by_piece_as_the_template_writes_the_whole(tokenizer):
    first = first_tokens(tokenizer, "what is it")
    assert tokenizer.decode(first) == "user: what is it <|end|> assistant:"
    said = [*first, *tokenizer("a kite")["input_ids"]]
    told = message_tokens(tokenizer, "here now", said)
    assert tokenizer.decode(told) == "<|end|> user: here now <|end|> assistant:"
    ended = [*said, tokenizer.eos_token_id]
    assert tokenizer.decode(message_tokens(tokenizer, "here now", ended)) == "user: here now <|end|> assistant:"
    whole = [("user", "what is it"), ("assistant", "a kite"), ("user", "here now")]
    messages: list[Message] = [{"role": speaker, "content": text} for speaker, text in whole]
    assert conversation_tokens(tokenizer, messages) == [*said, *told]
    for end, opens in [("<think>\n", True), ("", False), ("<think>\n\n</think>\n\n", False)]:
        template = TEMPLATE.replace("assistant: {% endif %}", "assistant: " + end + "{% endif %}")
        assert opens_thinking(words_tokenizer(["it is"], words=2, template=template)) == opens, "the thinking"
