"""Export of whole text towers: half precision where it is near enough, and the check that guards it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.array_file import ArrayFile
from kinodex.index.spaces.export_text import CHECK_TEXTS, MIN_COSINE, export_text_tower
from kinodex.index.spaces.space import Space, import_open_clip, load_space
from kinodex.index.spaces.text_tower import TextSettings, TextTower
from kinodex.index.spaces.towers import BUILTIN_TOWERS, Fingerprint, SpaceTowers, TowerFacts, read_towers, write_towers
from tests.support.models.real_models import real_model
from tests.support.models.text_tokenizers import write_tokenizer

open_clip = import_open_clip()

VISION = {"image_size": 32, "layers": 1, "width": 32, "patch_size": 32, "head_width": 32}
TEXT = {"context_length": 24, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
SIGLIP_TEXT = {"vocab_size": 420, "no_causal_mask": True, "pool_type": "last", "proj_bias": True}


def space_of(tokenizer: Any = None, **options: Any) -> Space:
    """Make a space of a small model with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        model = open_clip.model.CLIP(32, dict(VISION), TEXT | options).eval()
    tokenizer = tokenizer or open_clip.tokenizer.SimpleTokenizer(context_length=24)
    return Space(Fingerprint("small", "", "", "", 32), model, None, tokenizer, torch.device("cpu"))


def opened(space: Space, facts: TowerFacts, folder: Path) -> TextTower:
    write_towers(folder, SpaceTowers(space.fingerprint, facts))
    return TextTower.open(folder)


def test_an_exported_tower_embeds_as_the_space_does(tmp_path):
    space = space_of()
    facts = export_text_tower(space, tmp_path)
    assert (facts.samples, sorted(facts.files)) == (
        200,
        ["text.safetensors", "tokenizer.json", "vocabulary.safetensors"],
    )
    assert facts.least_cosine >= MIN_COSINE
    assert ArrayFile(tmp_path / "text.safetensors").map("token_embedding").dtype == np.float16
    tower, texts = opened(space, facts, tmp_path), ["a red boat", *CHECK_TEXTS[40:90]]
    ours, theirs = tower.embed_text(texts), space.embed_text(texts)
    np.testing.assert_allclose((ours * theirs).sum(1), 1.0, atol=1e-5)
    assert tower.settings == TextSettings.from_json(json.loads(json.dumps(facts.settings)))


def test_a_tower_with_a_tokenizer_of_transformers(tmp_path):
    write_tokenizer(tmp_path / "given", "byte_fallback")
    tokenizer = open_clip.tokenizer.HFTokenizer(str(tmp_path / "given"), context_length=24, clean="canonicalize")
    space = space_of(tokenizer, **SIGLIP_TEXT)
    facts = export_text_tower(space, tmp_path)
    assert facts.least_cosine >= MIN_COSINE
    texts = ["two dogs run", "nothing like it: ☃ 龘"]
    ours = opened(space, facts, tmp_path).embed_text(texts)
    np.testing.assert_allclose((ours * space.embed_text(texts)).sum(1), 1.0, atol=1e-5)


def large(weights: torch.Tensor) -> None:
    weights[0, 0] = 1e6  # more than half precision holds


def nearly_equal(weights: torch.Tensor) -> None:
    weights += 300.0  # the norm takes it away again, and half precision loses what is left


@pytest.mark.parametrize("change", [large, nearly_equal])
def test_single_precision_where_half_is_not_near_enough(tmp_path, change):
    space = space_of()
    with torch.no_grad():
        change(space.text_parts()[0].token_embedding.weight)
    facts = export_text_tower(space, tmp_path)
    assert ArrayFile(tmp_path / "text.safetensors").map("token_embedding").dtype == np.float32
    assert facts.least_cosine >= MIN_COSINE


def test_a_tower_that_gives_other_vectors_is_refused_with_text_and_figure(tmp_path):
    space = space_of()
    space.text_parts()[0].ln_final.register_forward_hook(lambda _module, _given, states: states * states)
    with pytest.raises(ExportRefused, match=r"text tower of small .*its vector of '.*' has a cosine of -?0\.\d{5} to"):
        export_text_tower(space, tmp_path)


def test_a_tokenizer_that_gives_other_ids_is_refused_with_the_text(tmp_path):
    tokenizer = open_clip.tokenizer.SimpleTokenizer(context_length=24)
    tokenizer.encode = lambda text: [*type(tokenizer).encode(tokenizer, text), 10]
    with pytest.raises(ExportRefused, match=r"token 8 of 'a red boat on a calm lake' is \d+, and 10 for"):
        export_text_tower(space_of(tokenizer), tmp_path)


def test_the_built_in_tower_is_that_of_its_weights():
    space, tower = load_space("builtin", towers="text"), TextTower.open(BUILTIN_TOWERS)
    assert tower.fingerprint.digest == space.fingerprint.digest
    cosines = (tower.embed_text(CHECK_TEXTS) * space.embed_text(CHECK_TEXTS)).sum(1)
    assert cosines.min() >= MIN_COSINE
    towers = read_towers(BUILTIN_TOWERS)
    assert towers is not None
    assert towers.text is not None
    assert towers.text.least_cosine >= MIN_COSINE


@pytest.mark.slow
def test_a_text_encoder_of_transformers_is_refused_with_its_reason(tmp_path):
    space = load_space(f"local-dir:{real_model('photo')}", device="cpu", towers="text")
    with pytest.raises(ExportRefused, match="has a HFTextEncoder, which runs a model of transformers"):
        export_text_tower(space, tmp_path)
