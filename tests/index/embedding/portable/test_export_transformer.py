"""Export of text transformers with every option of open_clip: the vectors of torch, or a refusal by name."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.array_file import ArrayFile, write_arrays
from kinodex.index.spaces.export_text import export_transformer
from kinodex.index.spaces.space import import_open_clip
from kinodex.index.spaces.text_tower import text_features

open_clip = import_open_clip()

VISION = {"image_size": 32, "layers": 1, "width": 32, "patch_size": 32, "head_width": 32}
TEXT = {"context_length": 12, "vocab_size": 90, "width": 32, "heads": 4, "layers": 2}
ALL_NORMS = {"qk_norm": True, "scale_heads": True, "scale_attn_inner": True, "scale_attn": True, "scale_fc": True}
TWO_WAYS = {"no_causal_mask": True, "pool_type": "last", "proj_bias": True}
KINDS: dict[str, dict[str, Any]] = {
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
        model = kind(32, dict(VISION), TEXT | options, quick_gelu=quick).eval()
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


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_those_of_torch(tmp_path, kind):
    model, ids = model_of(**KINDS[kind]), token_ids()
    arrays, settings = export_transformer(model)
    write_arrays(tmp_path / "weights", arrays)
    with torch.inference_mode():
        expected = model.encode_text(torch.from_numpy(ids)).numpy()
    with ArrayFile(tmp_path / "weights").reader() as reader:
        together = text_features(reader, settings, ids)
        alone = np.concatenate([text_features(reader, settings, row[None]) for row in ids])
    np.testing.assert_allclose(together, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(alone, expected, rtol=1e-4, atol=1e-4)


def test_cocas_text_tower(tmp_path):
    vision = VISION | {"attentional_pool": True, "attn_pooler_heads": 2, "output_tokens": True}
    decoder = {"context_length": 12, "vocab_size": 90, "width": 32, "heads": 4, "layers": 1}
    text = TEXT | {"embed_cls": True, "output_tokens": True}
    model = open_clip.coca_model.CoCa(32, multimodal_cfg=decoder, text_cfg=text, vision_cfg=vision).eval()
    ids = token_ids()
    arrays, settings = export_transformer(model)
    write_arrays(tmp_path / "weights", arrays)
    with torch.inference_mode():
        expected = model.encode_text(torch.from_numpy(ids), normalize=False).numpy()
    with ArrayFile(tmp_path / "weights").reader() as reader:
        np.testing.assert_allclose(text_features(reader, settings, ids), expected, rtol=1e-4, atol=1e-4)


def with_other_module(model: Any) -> Any:
    model.transformer.resblocks[1].ln_2 = torch.nn.RMSNorm(32)
    return model


def with_other_mask(model: Any) -> Any:
    model.attn_mask[2, 1] = float("-inf")
    return model


def with_other_weights(model: Any) -> Any:
    model.transformer.resblocks[0].extra = torch.nn.Linear(2, 2)
    return model


def with_two_activations(model: Any) -> Any:
    model.transformer.resblocks[0].mlp.gelu = torch.nn.GELU("tanh")
    return model


def with_other_attention(model: Any) -> Any:
    model.transformer.resblocks[0].attn.add_zero_attn = True
    return model


def with_bounded_words(model: Any) -> Any:
    model.token_embedding.max_norm = 1.0
    return model


def with_other_activation(model: Any) -> Any:
    model.transformer.resblocks[0].mlp.gelu = torch.nn.Identity()
    return model


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (with_other_module, "has a RMSNorm, which the numpy tower does not compute"),
        (with_other_mask, "an attention mask that is neither none nor causal"),
        (with_other_weights, "has weights transformer.resblocks.0.extra.weight"),
        (with_two_activations, "blocks that differ in activations: .*gelu"),
        (with_other_attention, "a MultiheadAttention with keys of its own"),
        (with_bounded_words, "an Embedding with a greatest norm"),
        (with_other_activation, "the activation Identity"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(change, says):
    with pytest.raises(ExportRefused, match=says):
        export_transformer(change(model_of()))


def test_options_that_are_refused():
    with pytest.raises(ExportRefused, match="pools by 'none'"):
        export_transformer(model_of(pool_type="none"))
    with pytest.raises(ExportRefused, match="by scaled cosines"):
        export_transformer(model_of(scaled_cosine_attn=True))
    with pytest.raises(ExportRefused, match="this model is a Linear"):
        export_transformer(torch.nn.Linear(2, 2))
