"""Facts of sentence models, from the files beside the weights."""

from __future__ import annotations

from typing import Any

import pytest

from kinodex.index.errors import BadCheckpoint
from kinodex.index.spaces.sentence_model import ModelFacts, read_facts

E5 = {"prompts": {"query": "query: ", "passage": "passage: "}}


def facts_of(files: dict[str, Any], longest: int = 512) -> ModelFacts:
    return read_facts("some/model", files.get, "[PAD]", longest)


def modules(*kinds: str) -> list[dict[str, str]]:
    return [{"type": f"sentence_transformers.models.{kind}", "path": f"{at}_{kind}"} for at, kind in enumerate(kinds)]


def test_a_plain_transformer_is_the_mean_of_its_tokens():
    assert facts_of({}) == ModelFacts("mean", 512, "", "", "[PAD]")


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode": "lasttoken"}, "lasttoken"),
        ({"pooling_mode": ["mean"]}, "mean"),
    ],
)
def test_pooling_of_old_and_new_files(pooling, expected):
    assert facts_of({"modules.json": modules("Transformer", "Pooling"), "1_Pooling/config.json": pooling}).pooling == (
        expected
    )


def test_the_pooling_of_the_module_that_is_listed():
    files = {
        "modules.json": modules("Transformer", "Normalize", "Pooling"),
        "2_Pooling/config.json": {"pooling_mode": "cls"},
    }
    assert facts_of(files).pooling == "cls"


def test_prompts_and_length():
    facts = facts_of({"config_sentence_transformers.json": E5, "sentence_bert_config.json": {"max_seq_length": 128}})
    assert (facts.query("a dog"), facts.line(" a dog\n"), facts.max_length) == ("query: a dog", "passage: a dog", 128)
    only_query = facts_of({"config_sentence_transformers.json": {"prompts": {"query": "Find: ", "document": ""}}})
    assert (only_query.query("x"), only_query.line("x")) == ("Find: x", "x")
    default = facts_of({"config_sentence_transformers.json": {"prompts": {"all": ">"}, "default_prompt_name": "all"}})
    assert (default.query("x"), default.line("x")) == (">x", ">x")
    assert facts_of({"sentence_bert_config.json": {"max_seq_length": 512}}, longest=77).max_length == 77


def test_the_word_for_padding_is_no_word_of_a_text():
    assert facts_of({}).query("a [PAD] b[PAD]") == "a   b"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"modules.json": modules("Transformer", "Pooling", "Dense")}, "has a Dense"),
        ({"1_Pooling/config.json": {"pooling_mode": "max"}}, "pools by max; give one that pools by mean, cls"),
        (
            {"1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}},
            "pools by cls and mean",
        ),
        (
            {"1_Pooling/config.json": {"include_prompt": False}, "config_sentence_transformers.json": E5},
            "leaves its prompts out",
        ),
    ],
)
def test_a_model_that_computes_more_is_refused(files, message):
    with pytest.raises(BadCheckpoint, match=message):
        facts_of(files)
