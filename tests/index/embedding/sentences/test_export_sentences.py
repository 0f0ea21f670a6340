"""Sentence models without torch: the exported tower embeds as the original does, or is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.export_text import CHECK_TEXTS
from kinodex.index.spaces.sentence_model import SentenceModel, SentenceTower, export_sentence_model, load_sentence_model
from kinodex.index.spaces.towers import SpaceTowers, write_towers
from tests.support.models.sentence_models import small_bert, small_roberta

TEXTS = ["a red boat", "two dogs run along the beach at sunset", "", *CHECK_TEXTS[-24:]]


def exported(model: SentenceModel, folder: Path) -> SentenceTower:
    folder.mkdir()
    facts = export_sentence_model(model, folder)
    assert facts.least_cosine >= 0.9999 and facts.samples == len(CHECK_TEXTS)
    write_towers(folder, SpaceTowers(model.space, facts))
    return SentenceTower.open(folder)


def check_agreement(model: SentenceModel, tower: SentenceTower) -> None:
    assert tower.space == model.space
    for ours, theirs in ((tower.embed_texts, model.embed_texts), (tower.embed_lines, model.embed_lines)):
        np.testing.assert_allclose((ours(TEXTS) * theirs(TEXTS)).sum(1), 1.0, atol=1e-4)


@pytest.mark.parametrize(
    "pooling", [{"pooling_mode_mean_tokens": True}, {"pooling_mode_cls_token": True}, {"pooling_mode": "lasttoken"}]
)
def test_a_bert_of_each_pooling(tmp_path, pooling):
    prompts = {"query": "a boat ", "passage": "snow "}
    model = load_sentence_model(str(small_bert(tmp_path / "bert", pooling=pooling, prompts=prompts, longest=24)), "cpu")
    check_agreement(model, exported(model, tmp_path / "tower"))


def test_a_roberta_whose_first_positions_are_those_of_padding(tmp_path):
    model = load_sentence_model(str(small_roberta(tmp_path / "roberta")), "cpu")
    assert model.facts.max_length == 39
    check_agreement(model, exported(model, tmp_path / "tower"))


def test_what_is_not_covered_is_refused(tmp_path):
    model = load_sentence_model(str(small_bert(tmp_path / "bert")), "cpu")
    model.model.config.hidden_act = "relu"
    with pytest.raises(ExportRefused, match="activation relu"):
        export_sentence_model(model, tmp_path)
    model.model.config.model_type = "modernbert"
    with pytest.raises(ExportRefused, match="kind modernbert"):
        export_sentence_model(model, tmp_path)


def test_a_tower_that_differs_is_refused(tmp_path):
    model = load_sentence_model(str(small_bert(tmp_path / "bert")), "cpu")
    model.model.config.layer_norm_eps = 0.5  # the modules have read theirs before
    with pytest.raises(ExportRefused, match="cosine of 0"):
        export_sentence_model(model, tmp_path)
