"""Generation by a causal language model: batches, ends, stops, limits."""

from __future__ import annotations

import asyncio

import pytest

from kinodex.agent.errors import ModelRejected
from kinodex.agent.models.local import first_tokens
from tests.support.models.training_model import END


def test_a_batch_says_what_each_would_alone(model, tokenizer):
    prompts = [first_tokens(tokenizer, text) for text in ("what", "what is it", "a kite here now is it")]

    async def together():
        return await asyncio.gather(*(model.generator.generate(prompt, 0.0) for prompt in prompts))

    async def alone():
        return [await model.generator.generate(prompt, 0.0) for prompt in prompts]

    async def both():
        return await together(), await alone()

    batch, single = asyncio.run(both())
    assert batch == single
    assert all(1 <= len(said) <= 5 for said in batch)


def test_it_stops_where_it_is_told_to(model, tokenizer):
    async def many():
        prompt = first_tokens(tokenizer, "what is it")
        return await asyncio.gather(*(model.generator.generate(prompt, 1.0, ("</answer>",)) for _ in range(40)))

    said = [tokenizer.decode(tokens) for tokens in asyncio.run(many())]
    assert any("</answer>" in text for text in said)
    assert all(text.partition("</answer>")[2] == "" and text.count(END) == text.endswith(END) for text in said)


def test_one_that_is_cancelled_leaves_the_others_their_turn(model, tokenizer):
    async def two():
        prompt = first_tokens(tokenizer, "what is it")
        first = asyncio.create_task(model.generator.generate(prompt, 0.0))
        second = asyncio.create_task(model.generator.generate(prompt, 0.0))
        await asyncio.sleep(0)
        first.cancel()
        return await second, await asyncio.gather(first, return_exceptions=True)

    said, (cancelled,) = asyncio.run(two())
    assert said and isinstance(cancelled, asyncio.CancelledError)


def test_the_limit_counts_new_tokens_too(model, tokenizer):
    with pytest.raises(ModelRejected, match="4092 tokens and 5 new ones"):
        asyncio.run(model.generator.generate([tokenizer.eos_token_id] * 4092, 1.0))
