"""Sentence models by transformers: identity, pooling, and errors."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import BadCheckpoint, WeightsMissing
from kinodex.index.spaces.sentence_model import ModelFacts, load_sentence_model
from tests.support.models.sentence_models import real_minilm, small_bert, write_facts

TEXTS = ["a red boat on a calm lake", "two dogs", "", "snow " * 300]


def copied(folder: Path, to: Path, **facts: Any) -> Path:
    shutil.copytree(folder, to)
    write_facts(to, **facts)
    return to


def test_vectors_are_of_unit_length_and_do_not_depend_on_the_batch(tmp_path):
    model = load_sentence_model(str(small_bert(tmp_path / "bert")))
    together = model.embed_texts(TEXTS)
    assert together.shape == (4, 32) and together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    alone = np.concatenate([model.embed_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert model.embed_texts([]).shape == (0, 32)


def test_the_same_model_at_another_place_is_the_same_space(tmp_path):
    first = load_sentence_model(str(small_bert(tmp_path / "one"))).space
    second = load_sentence_model(str(copied(tmp_path / "one", tmp_path / "two"))).space
    other = load_sentence_model(str(small_bert(tmp_path / "three", seed=1))).space
    prompted = load_sentence_model(str(copied(tmp_path / "one", tmp_path / "four", prompts={"query": "q: "}))).space
    assert first.digest == second.digest and first.name != second.name
    assert len({first.digest, other.digest, prompted.digest}) == 3
    assert ModelFacts.of(prompted).query_prompt == "q: "


def test_the_prompt_of_a_query_is_not_that_of_a_line(tmp_path):
    prompts = {"query": "two dogs ", "passage": "a boat "}
    plain = load_sentence_model(str(small_bert(tmp_path / "plain")))
    model = load_sentence_model(str(copied(tmp_path / "plain", tmp_path / "bert", prompts=prompts)))
    np.testing.assert_allclose(model.embed_texts(["snow"]), plain.embed_texts(["two dogs snow"]), atol=1e-6)
    np.testing.assert_allclose(model.embed_lines(["snow"]), plain.embed_lines(["a boat snow"]), atol=1e-6)


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


def test_a_folder_without_a_tokenizer_is_refused_and_embeds_nothing(tmp_path):
    for file in small_bert(tmp_path / "bert").glob("*token*"):
        file.unlink()
    with pytest.raises(WeightsMissing, match=r"without the words of its tokenizer; put tokenizer\.json"):
        load_sentence_model(str(tmp_path / "bert"))


@pytest.mark.slow
def test_the_real_model_knows_that_a_car_is_an_automobile():
    model = load_sentence_model(str(real_minilm()), "cpu")
    assert (model.space.dim, ModelFacts.of(model.space).max_length) == (384, 256)
    lines = model.embed_lines(["They sold the old automobile.", "She waters the flowers.", "Two dogs are barking."])
    cosines = (lines @ model.embed_texts(["car"]).T).ravel()
    assert cosines.argmax() == 0 and cosines[0] > 0.4 > 0.3 > cosines[1:].max()
