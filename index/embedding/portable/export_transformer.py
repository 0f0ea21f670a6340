"""Export of open_clip's text transformers: settings and weights, as read from the modules themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from index.embedding.portable.transformer import Activation, ClassKey, Pool, TransformerSettings
from index.errors import ExportRefused

Arrays = dict[str, NDArray[np.float32]]

COVERED = {
    "open_clip.transformer": (
        "TextTransformer Transformer ResidualAttentionBlock CustomResidualAttentionBlock Attention LayerNorm "
        "LayerNormFp32 LayerScale QuickGELU"
    ),
    "torch.nn.modules": (
        "ModuleList Sequential Identity Dropout Embedding Linear NonDynamicallyQuantizableLinear LayerNorm GELU "
        "MultiheadAttention"
    ),
}
"""Classes of modules that the numpy transformer computes, by the beginning of their module's name."""
FOREIGN = {
    "HFTextEncoder": "which runs a model of transformers",
    "MultimodalTransformer": "which looks at images too",
}
PARTS = {
    "token_embedding.weight": "token_embedding",
    "positional_embedding": "positions",
    "cls_emb": "class_embedding",
    "ln_final.": "final_norm.",
}
BLOCK_PARTS = {
    "ln_1.": "norm_1.",
    "ln_2.": "norm_2.",
    "ln_attn.": "attention_norm.",
    "ls_1.gamma": "scale_1",
    "ls_2.gamma": "scale_2",
    "attn.in_proj_": "attention.in.",
    "attn.out_proj.": "attention.out.",
    "attn.ln_q.": "attention.query_norm.",
    "attn.ln_k.": "attention.key_norm.",
    "attn.ln_inner.": "attention.inner_norm.",
    "attn.head_scale": "attention.head_scale",
    "mlp.c_fc.": "mlp.in.",
    "mlp.ln.": "mlp.norm.",
    "mlp.c_proj.": "mlp.out.",
}
"""Names of open_clip's weights, or their beginnings, and ours."""
POOLS: Mapping[str, Pool] = {each: each for each in get_args(Pool)}
BLOCK = re.compile(r"transformer\.resblocks\.(\d+)\.(.+)")


def export_transformer(model: Any) -> tuple[Arrays, TransformerSettings]:
    """Read the text transformer of an open_clip model, and its projection, as float32 arrays by our names.

    Raises ExportRefused if it has anything that the numpy transformer does not compute.
    """
    text, pool, eos_id = _text_module(model)
    modules = _text_modules(text)
    for module in modules.values():
        _check_class(module)
    arrays = dict(_projection(text.text_projection))
    for prefix, module in modules.items():
        for name, value in module.named_parameters(prefix=prefix):
            arrays[_our_name(name)] = _array(value)
    for name in ("positional_embedding", "cls_emb"):
        if getattr(text, name, None) is not None:
            arrays[PARTS[name]] = _array(getattr(text, name))
    return arrays, _settings(text, modules, pool, eos_id)


def _text_module(model: Any) -> tuple[Any, str, int]:
    """Find the module of an open_clip model that holds the text transformer, its pooling and its end token."""
    kind = type(model).__name__
    if kind == "CLIP":
        return model, model.text_pool_type, int(model.text_eos_id)
    if kind not in ("CustomTextCLIP", "CoCa"):
        raise ExportRefused(f"this model is a {kind}, whose text tower is not covered")
    text = model.text
    _check_class(text)
    return text, text.pool_type, int(text.eos_id)


def _text_modules(text: Any) -> dict[str, Any]:
    return {name: getattr(text, name) for name in ("token_embedding", "transformer", "ln_final")}


def _check_class(module: Any) -> None:
    """Raise ExportRefused if a module, or one of its own, is of a class or has a setting that is not covered."""
    for each in module.modules():
        kind = type(each)
        if not any(kind.__module__.startswith(of) and kind.__name__ in names.split() for of, names in COVERED.items()):
            why = FOREIGN.get(kind.__name__, "which the numpy tower does not compute")
            raise ExportRefused(f"this text tower has a {kind.__name__}, {why}")
        if kind.__name__ == "MultiheadAttention" and (each.bias_k is not None or each.add_zero_attn):
            raise ExportRefused("this text tower has a MultiheadAttention with keys of its own, which is not covered")
        if kind.__name__ == "Attention" and each.scaled_cosine:
            raise ExportRefused("this text tower has an Attention by scaled cosines, which is not covered")
        if kind.__name__ == "Embedding" and each.max_norm is not None:
            raise ExportRefused("this text tower has an Embedding with a greatest norm, which is not covered")


def _settings(text: Any, modules: Mapping[str, Any], pool: str, eos_id: int) -> TransformerSettings:
    blocks = list(modules["transformer"].resblocks)
    has_class = getattr(text, "cls_emb", None) is not None
    pooled = POOLS.get("last" if has_class else pool)
    if pooled is None:
        raise ExportRefused(f"this text tower pools by {pool!r}, which is not covered")
    norms = [each for module in modules.values() for each in module.modules() if hasattr(each, "normalized_shape")]
    (heads,) = _one("heads", {block.attn.num_heads for block in blocks})
    (norm_eps,) = _one("eps of its norms", {norm.eps for norm in norms})
    (activation,) = _one("activations", {_activation(block.mlp.gelu) for block in blocks})
    class_key: ClassKey = "none" if not has_class else "last" if text.correct_cls_mask else "first"
    return TransformerSettings(
        layers=len(blocks),
        heads=heads,
        norm_eps=norm_eps,
        activation=activation,
        causal=_is_causal(text.attn_mask),
        pool=pooled,
        eos_id=eos_id,
        pad_id=int(getattr(text, "pad_id", 0)),
        hides_padding=has_class or bool(getattr(text, "use_pad_mask", False)),
        class_key=class_key,
    )


def _one(what: str, values: set[Any]) -> set[Any]:
    if len(values) != 1:
        raise ExportRefused(f"this text tower has blocks that differ in {what}: {sorted(map(str, values))}")
    return values


def _activation(module: Any) -> Activation:
    if type(module).__name__ == "QuickGELU":
        return "quick_gelu"
    if type(module).__name__ != "GELU":
        raise ExportRefused(f"this text tower has the activation {type(module).__name__}, which is not covered")
    return "gelu_tanh" if module.approximate == "tanh" else "gelu"


def _is_causal(mask: Any) -> bool:
    if mask is None:
        return False
    numbers = _array(mask)
    expected = np.where(np.tri(*numbers.shape) > 0, np.float32(0), np.float32(-np.inf))
    if numbers.ndim != 2 or not np.array_equal(numbers, expected):
        raise ExportRefused("this text tower has an attention mask that is neither none nor causal")
    return True


def _projection(projection: Any) -> Arrays:
    if projection is None:
        return {}
    if not hasattr(projection, "weight"):
        return {"projection.weight": np.ascontiguousarray(_array(projection).T)}
    _check_class(projection)
    bias = {} if projection.bias is None else {"projection.bias": _array(projection.bias)}
    return {"projection.weight": _array(projection.weight)} | bias


def _our_name(name: str) -> str:
    block = BLOCK.fullmatch(name)
    rest, names, prefix = (block[2], BLOCK_PARTS, f"blocks.{block[1]}.") if block else (name, PARTS, "")
    for theirs, ours in names.items():
        if rest.startswith(theirs):
            return prefix + ours + rest.removeprefix(theirs)
    raise ExportRefused(f"this text tower has weights {name}, which the numpy tower does not compute with")


def _array(value: Any) -> NDArray[np.float32]:
    numbers: NDArray[np.float32] = value.detach().cpu().float().numpy()
    return numbers
