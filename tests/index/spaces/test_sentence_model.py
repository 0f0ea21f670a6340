"""Sentence models by transformers: identity, pooling, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import BadCheckpoint, ExportRefused, WeightsMissing
from kinodex.index.spaces.export_sentences import export_sentence_model
from kinodex.index.spaces.export_text import CHECK_TEXTS, VECTOR_TEXTS
from kinodex.index.spaces.sentence_facts import ModelFacts, read_facts
from kinodex.index.spaces.sentence_model import SentenceModel, load_sentence_model
from kinodex.index.spaces.sentence_tower import SentenceTower
from kinodex.index.spaces.towers import SpaceTowers, write_towers
from tests.index.spaces.test_export_text import squared_but_in_a_trace
from tests.support.models.sentence_models import real_minilm, small_bert, small_modernbert, small_mpnet, small_roberta

TEXTS = ["a red boat on a calm lake", "two dogs", "", "snow " * 300]


@pytest.mark.slow
def test_vectors_are_of_unit_length_and_do_not_depend_on_the_batch(tmp_path):
    model = load_sentence_model(str(small_bert(tmp_path / "bert")))
    together = model.embed_texts(TEXTS)
    assert together.shape == (4, 32) and together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    alone = np.concatenate([model.embed_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert model.embed_texts([]).shape == (0, 32)


def test_a_folder_without_weights_or_with_half_of_them(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(WeightsMissing, match="folder without config"):
        load_sentence_model(str(tmp_path / "empty"))
    from safetensors.torch import load_file, save_file

    weights = small_bert(tmp_path / "bert") / "model.safetensors"
    kept = {name: each for name, each in load_file(weights).items() if "layer.1" not in name}
    save_file(kept, weights, {"format": "pt"})
    with pytest.raises(BadCheckpoint, match=r"whose weights lack encoder\.layer\.1"):
        load_sentence_model(str(tmp_path / "bert"))
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(BadCheckpoint, match="cannot load the sentence model"):
        load_sentence_model(str(tmp_path / "bert"))
    for file in small_bert(tmp_path / "wordless").glob("*token*"):
        file.unlink()
    with pytest.raises(WeightsMissing, match=r"without the words of its tokenizer; put tokenizer\.json"):
        load_sentence_model(str(tmp_path / "wordless"))


@pytest.mark.slow
def test_the_real_model_knows_that_a_car_is_an_automobile():
    model = load_sentence_model(str(real_minilm()), "cpu")
    assert (model.space.dim, ModelFacts.of(model.space).max_length) == (384, 256)
    lines = model.embed_lines(["They sold the old automobile.", "She waters the flowers.", "Two dogs are barking."])
    cosines = (lines @ model.embed_texts(["car"]).T).ravel()
    assert cosines.argmax() == 0 and cosines[0] > 0.4 > 0.3 > cosines[1:].max()


# Sentence models without torch: the exported tower embeds as the original does, or is refused.

AGREED_TEXTS = ["a red boat", "two dogs run along the beach at sunset", "", *CHECK_TEXTS[-24:]]


def exported(model: SentenceModel, folder: Path) -> SentenceTower:
    folder.mkdir()
    facts = export_sentence_model(model, folder)
    assert facts.least_cosine >= 0.9999 and facts.samples == len(VECTOR_TEXTS)
    write_towers(folder, SpaceTowers(model.space, facts))
    return SentenceTower.open(folder)


def check_agreement(model: SentenceModel, tower: SentenceTower) -> None:
    assert tower.space == model.space
    for ours, theirs in ((tower.embed_texts, model.embed_texts), (tower.embed_lines, model.embed_lines)):
        np.testing.assert_allclose((ours(AGREED_TEXTS) * theirs(AGREED_TEXTS)).sum(1), 1.0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pooling", [{"pooling_mode_mean_tokens": True}, {"pooling_mode_cls_token": True}, {"pooling_mode": "lasttoken"}]
)
def test_a_bert_of_each_pooling(tmp_path, pooling):
    prompts = {"query": "a boat ", "passage": "snow "}
    model = load_sentence_model(str(small_bert(tmp_path / "bert", pooling=pooling, prompts=prompts, longest=24)), "cpu")
    check_agreement(model, exported(model, tmp_path / "tower"))


@pytest.mark.slow
def test_a_roberta_whose_first_positions_are_those_of_padding(tmp_path):
    model = load_sentence_model(str(small_roberta(tmp_path / "roberta")), "cpu")
    assert model.facts.max_length == 39
    check_agreement(model, exported(model, tmp_path / "tower"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [small_mpnet, small_modernbert])
def test_transformers_of_other_kinds(tmp_path, kind):
    model = load_sentence_model(str(kind(tmp_path / "model", longest=24)), "cpu")
    check_agreement(model, exported(model, tmp_path / "tower"))


def test_a_model_whose_trace_has_other_vectors_is_refused(tmp_path):
    model = load_sentence_model(str(small_bert(tmp_path / "bert")), "cpu")
    model.model.embeddings.register_forward_hook(squared_but_in_a_trace)
    with pytest.raises(ExportRefused, match="cosine of 0"):
        export_sentence_model(model, tmp_path)


# Facts of sentence models, from the files beside the weights.

E5 = {"prompts": {"query": "query: ", "passage": "passage: "}}


def facts_of(files: dict[str, Any], longest: int = 512) -> ModelFacts:
    return read_facts("some/model", files.get, "[PAD]", longest)


def modules(*kinds: str) -> list[dict[str, str]]:
    return [{"type": f"sentence_transformers.models.{kind}", "path": f"{at}_{kind}"} for at, kind in enumerate(kinds)]


def test_pooling_prompts_and_length():
    assert facts_of({}) == ModelFacts("mean", 512, "", "", "[PAD]")
    for config, pooling in (
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode": "lasttoken"}, "lasttoken"),
        ({"pooling_mode": ["mean"]}, "mean"),
    ):
        old = {"modules.json": modules("Transformer", "Pooling"), "1_Pooling/config.json": config}
        listed = {"modules.json": modules("Transformer", "Normalize", "Pooling"), "2_Pooling/config.json": config}
        assert facts_of(old).pooling == facts_of(listed).pooling == pooling, config
    assert facts_of({}).query("a [PAD] b[PAD]") == "a   b", "the word for padding is no word of a text"
    facts = facts_of({"config_sentence_transformers.json": E5, "sentence_bert_config.json": {"max_seq_length": 128}})
    assert (facts.query("a dog"), facts.line(" a dog\n"), facts.max_length) == ("query: a dog", "passage: a dog", 128)
    only_query = facts_of({"config_sentence_transformers.json": {"prompts": {"query": "Find: ", "document": ""}}})
    assert (only_query.query("x"), only_query.line("x")) == ("Find: x", "x")
    default = facts_of({"config_sentence_transformers.json": {"prompts": {"all": ">"}, "default_prompt_name": "all"}})
    assert (default.query("x"), default.line("x")) == (">x", ">x")
    assert facts_of({"sentence_bert_config.json": {"max_seq_length": 512}}, longest=77).max_length == 77


def test_a_model_that_computes_more_is_refused():
    both = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"modules.json": modules("Transformer", "Pooling", "Dense")}, "has a Dense"),
        ({"1_Pooling/config.json": {"pooling_mode": "max"}}, "pools by max; give one that pools by mean, cls"),
        ({"1_Pooling/config.json": both}, "pools by cls and mean"),
        (
            {"1_Pooling/config.json": {"include_prompt": False}, "config_sentence_transformers.json": E5},
            "leaves its prompts out",
        ),
    ]
    for files, message in cases:
        with pytest.raises(BadCheckpoint, match=message):
            facts_of(files)
