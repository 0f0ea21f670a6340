"""A causal language model in this process: how it answers requests, and what it refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from kinodex.agent.errors import ModelRejected, ModelUnknown
from kinodex.agent.models.local import conversation, load_local_model
from kinodex.agent.protocol import Question, ShownFrame, Turn, Video
from kinodex.agent.requests.answer import AnswerFrames, Guess
from kinodex.agent.variants.longvideoagent_requests import ChooseAction, Clip
from kinodex.jobs.models import ModelChoice, chosen_models

QUESTION, VIDEO = Question("What is it?", ("a kite", "a crow")), Video("0" * 32, "film", 0.0, 60.0)


def choose(*turns: Turn, **more) -> ChooseAction:
    return ChooseAction(question=QUESTION, videos=(VIDEO,), clips=(), steps=5, turns=turns, **more)


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


def test_long_words_are_shortened_to_what_the_model_holds(model):
    clips = tuple(Clip(number, VIDEO.video_id, 0.0, 60.0, "it is " * 200, "transcript") for number in range(1, 41))
    located = Turn("assistant", "a"), Turn("user", "it " * 4096)
    for turns in ((), located):
        exchange = asyncio.run(model.ask(replace(choose(*turns), clips=clips)))
        assert 2_000 < exchange.usage.input_tokens <= 4096 - model.generator.max_new_tokens
        assert exchange.usage.output_tokens


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
