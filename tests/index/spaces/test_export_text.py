"""Export of whole text towers: half precision where it is near enough, and the check that guards it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.export_text import (
    CHECK_TEXTS,
    MIN_COSINE,
    VECTOR_TEXTS,
    export_text_tower,
    export_tokenizer,
    export_transformer,
)
from kinodex.index.spaces.space import Space, import_open_clip, load_space
from kinodex.index.spaces.text_tower import TextSettings, TextTower, Tokenizer, text_features
from kinodex.index.spaces.towers import (
    ArrayFile,
    Fingerprint,
    SpaceTowers,
    TowerFacts,
    write_arrays,
    write_towers,
)
from tests.support.late import late
from tests.support.models.real_models import real_model
from tests.support.models.text_tokenizers import KINDS, same_ids, write_sentencepiece, write_tokenizer

open_clip, torch = late(import_open_clip), late("torch")
VISION = {"image_size": 32, "layers": 1, "width": 32, "patch_size": 32, "head_width": 32}
TEXT = {"context_length": 24, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}


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


@pytest.mark.slow
def test_an_exported_tower_embeds_as_the_space_does(tmp_path):
    space = space_of()
    facts = export_text_tower(space, tmp_path)
    assert (facts.samples, sorted(facts.files)) == (
        len(VECTOR_TEXTS),
        ["text.safetensors", "tokenizer.json", "vocabulary.safetensors"],
    )
    assert facts.least_cosine >= MIN_COSINE
    assert ArrayFile(tmp_path / "text.safetensors").map("token_embedding").dtype == np.float16
    tower, texts = opened(space, facts, tmp_path), ["a red boat", *CHECK_TEXTS[40:90]]
    ours, theirs = tower.embed_text(texts), space.embed_text(texts)
    np.testing.assert_allclose((ours * theirs).sum(1), 1.0, atol=1e-5)
    assert tower.settings == TextSettings.from_json(json.loads(json.dumps(facts.settings)))


@pytest.mark.slow
def test_a_tower_that_gives_other_vectors_is_refused_with_text_and_figure(tmp_path):
    space = space_of()
    space.text_parts()[0].ln_final.register_forward_hook(lambda _module, _given, states: states * states)
    with pytest.raises(ExportRefused, match=r"text tower of small .*its vector of '.*' has a cosine of -?0\.\d{5} to"):
        export_text_tower(space, tmp_path)


@pytest.mark.slow
def test_a_text_encoder_of_transformers_is_refused_with_its_reason(tmp_path):
    space = load_space(f"local-dir:{real_model('photo')}", device="cpu", towers="text")
    with pytest.raises(ExportRefused, match="has a HFTextEncoder, which runs a model of transformers"):
        export_text_tower(space, tmp_path)


# Export of tokenizers of every kind: the same ids as open_clip's for all texts of the check, or a refusal.

TEXTS = [*CHECK_TEXTS, "catfish", "a catfish and catfish.", "catfishcatfish ▁▁▁ dog▁▁▁▁", "x   y    z"]


def differing(original, folder) -> list[str]:
    ours = Tokenizer(folder, export_tokenizer(original, folder))
    together = same_ids(ours(TEXTS).tolist(), original(TEXTS).tolist(), TEXTS)
    alone = [text for text in TEXTS[::5] if ours([text]).tolist() != original([text]).tolist()]
    return together + alone


@pytest.mark.slow
@pytest.mark.parametrize("clean", ["whitespace", "canonicalize"])
@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_transformers_tokenizers(tmp_path, kind, clean):
    write_tokenizer(tmp_path / "given", kind)
    original = open_clip.tokenizer.HFTokenizer(str(tmp_path / "given"), context_length=24, clean=clean)
    assert differing(original, tmp_path) == []


def test_tokenizers_that_are_refused(tmp_path):
    write_tokenizer(tmp_path / "given", "wordpiece")
    write_sentencepiece(tmp_path / "python", "SiglipTokenizer", "unigram")
    of_transformers = open_clip.tokenizer.HFTokenizer
    other = open_clip.tokenizer.SimpleTokenizer()
    other.clean_fn = str.upper
    refused: dict[str, Any] = {
        "at random": open_clip.tokenizer.SimpleTokenizer(reduction_mask="random"),
        "a dict, which is not covered": {},
        "the mode 'clips'": of_transformers(str(tmp_path / "given"), tokenizer_mode="clips"),
        "cleans texts by upper": other,
        "a SiglipTokenizer, which transformers computes in Python": of_transformers(
            str(tmp_path / "python"), context_length=24
        ),
    }
    for says, tokenizer in refused.items():
        with pytest.raises(ExportRefused, match=says) as error:
            export_tokenizer(tokenizer, tmp_path)
        assert "\n" not in str(error.value)


# Export of text transformers with every option of open_clip: the vectors of torch, or a refusal by name.

SHORT_TEXT = {"context_length": 12, "vocab_size": 90, "width": 32, "heads": 4, "layers": 2}
ALL_NORMS = {"qk_norm": True, "scale_heads": True, "scale_attn_inner": True, "scale_attn": True, "scale_fc": True}
TWO_WAYS = {"no_causal_mask": True, "pool_type": "last", "proj_bias": True}
OPTIONS: dict[str, dict[str, Any]] = {
    "as CLIP": {},
    "quick gelu": {"quick_gelu": True},
    "as SigLIP": TWO_WAYS | {"act_kwargs": {"approximate": "tanh"}, "norm_kwargs": {"eps": 1e-3}},
    "pooled at the end token": {"pool_type": "eos", "eos_id": 89},
    "pooled at the first": {"no_causal_mask": True, "pool_type": "first", "custom": True},
    "no projection": {"proj_type": "none", "layers": 1},
    "layer scale": {"ls_init_value": 0.3, "mlp_ratio": 2.5},
    "all norms": ALL_NORMS | {"custom": True},
    "class token": {"embed_cls": True, "custom": True},
    "class token, both ways": {"embed_cls": True, "custom": True, "no_causal_mask": True},
    "class token, right mask": {"embed_cls": True, "custom": True, "attributes": {"correct_cls_mask": True}},
    "padding hidden": TWO_WAYS | {"custom": True, "pool_type": "first", "attributes": {"use_pad_mask": True}},
}


def model_of(**options: Any) -> Any:
    """Make a model with random weights, none of them 0 or 1, of which the text tower has these options."""
    options = copy.deepcopy(options)
    kind = open_clip.model.CustomTextCLIP if options.pop("custom", False) else open_clip.model.CLIP
    quick, attributes = options.pop("quick_gelu", False), options.pop("attributes", {})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = kind(32, dict(VISION), SHORT_TEXT | options, quick_gelu=quick).eval()
        for weight in model.parameters():
            weight.data += 0.2 * torch.randn_like(weight)
    for name, value in attributes.items():
        setattr(model.text, name, value)
    return model


def token_ids() -> np.ndarray:
    """Make texts of several lengths: an end token, the highest id, then padding; the last text has no padding."""
    ids = np.random.default_rng(5).integers(1, 88, (6, 12))
    for row, length in zip(ids, (1, 2, 5, 8, 11, 12), strict=True):
        row[length - 1] = 89
        row[length:] = 0
    return ids


@pytest.mark.parametrize("kind", OPTIONS)
def test_vectors_are_those_of_torch(tmp_path, kind):
    model, ids = model_of(**OPTIONS[kind]), token_ids()
    arrays, settings = export_transformer(model)
    write_arrays(tmp_path / "weights", arrays)
    with torch.inference_mode():
        expected = model.encode_text(torch.from_numpy(ids)).numpy()
    with ArrayFile(tmp_path / "weights").reader() as reader:
        together = text_features(reader, settings, ids)
        alone = np.concatenate([text_features(reader, settings, row[None]) for row in ids])
    np.testing.assert_allclose(together, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(alone, expected, rtol=1e-4, atol=1e-4)


def blocks(model: Any) -> Any:
    return model.transformer.resblocks


CHANGES: dict[str, Callable[[Any], Any]] = {
    "has a RMSNorm, which the numpy tower does not compute": lambda m: setattr(
        blocks(m)[1], "ln_2", torch.nn.RMSNorm(32)
    ),
    "an attention mask that is neither none nor causal": lambda m: m.attn_mask[2, 1].fill_(float("-inf")),
    "has weights transformer.resblocks.0.extra.weight": lambda m: setattr(blocks(m)[0], "extra", torch.nn.Linear(2, 2)),
    "blocks that differ in activations: .*gelu": lambda m: setattr(blocks(m)[0].mlp, "gelu", torch.nn.GELU("tanh")),
    "a MultiheadAttention with keys of its own": lambda m: setattr(blocks(m)[0].attn, "add_zero_attn", True),
    "an Embedding with a greatest norm": lambda m: setattr(m.token_embedding, "max_norm", 1.0),
    "the activation Identity": lambda m: setattr(blocks(m)[0].mlp, "gelu", torch.nn.Identity()),
}


def test_what_is_not_covered_is_refused_by_name():
    for says, change in CHANGES.items():
        model = model_of()
        change(model)
        with pytest.raises(ExportRefused, match=says):
            export_transformer(model)
    others: list[tuple[str, dict[str, Any]]] = [
        ("pools by 'none'", {"pool_type": "none"}),
        ("by scaled cosines", {"scaled_cosine_attn": True}),
    ]
    for says, options in others:
        with pytest.raises(ExportRefused, match=says):
            export_transformer(model_of(**options))
    with pytest.raises(ExportRefused, match="this model is a Linear"):
        export_transformer(torch.nn.Linear(2, 2))
