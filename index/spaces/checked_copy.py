"""A copy of an open_clip model that holds only what is known to be data: open_clip opens this, never the original.

A folder or a repository of the hub may say by its configuration what code, files and other models open_clip and
transformers load with it. Here its `open_clip_config.json` is read against a list of keys, its tokenizer is
`tokenizer.json` with the plain settings beside it, and its weights are a file of safetensors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from kinodex.index.errors import BadCheckpoint, WeightsMissing

CONFIG, WEIGHTS, TOKENIZER = "open_clip_config.json", "open_clip_model.safetensors", "tokenizer.json"
WEIGHT_NAMES = (WEIGHTS, "open_clip_pytorch_model.safetensors", "model.safetensors")
WEIGHT_SUFFIX = ".safetensors"
LARGEST_CONFIG_BYTES = 1 << 20

# fmt: off
_BLOCK_KEYS = frozenset([
    "layers", "width", "mlp_ratio", "ls_init_value", "final_ln_after_pool", "pool_type", "output_tokens",
    "act_kwargs", "norm_kwargs", "block_type", "qk_norm", "scaled_cosine_attn", "scale_heads", "scale_attn_inner",
    "scale_attn", "scale_fc",
])
_TEXT_KEYS = _BLOCK_KEYS | frozenset([
    "context_length", "vocab_size", "hf_tokenizer_name", "tokenizer_mode", "tokenizer_kwargs", "heads", "embed_cls",
    "pad_id", "eos_id", "no_causal_mask", "proj_bias", "proj_type", "hf_model_name", "hf_model_pretrained",
    "hf_proj_type", "hf_pooler_type",
])
_VISION_KEYS = _BLOCK_KEYS | frozenset([
    "head_width", "patch_size", "image_size", "patch_dropout", "attentional_pool", "attn_pooler_queries",
    "attn_pooler_heads", "no_ln_pre", "pos_embed_type", "timm_model_name", "timm_model_pretrained", "timm_pool",
    "timm_proj", "timm_proj_bias", "timm_drop", "timm_drop_path",
])
_MODEL_KEYS = frozenset([
    "embed_dim", "vision_cfg", "text_cfg", "multimodal_cfg", "custom_text", "quick_gelu", "init_logit_scale",
    "init_logit_bias", "nonscalar_logit_scale",
])
TOKENIZER_KEYS = frozenset([
    "tokenizer_class", "model_max_length", "padding_side", "truncation_side", "bos_token", "eos_token", "unk_token",
    "sep_token", "pad_token", "cls_token", "mask_token", "additional_special_tokens", "extra_special_tokens",
    "added_tokens_decoder", "add_bos_token", "add_eos_token", "add_prefix_space", "clean_up_tokenization_spaces",
    "do_lower_case", "strip_accents", "tokenize_chinese_chars", "trim_offsets", "extra_ids", "legacy",
    "split_special_tokens", "spaces_between_special_tokens", "model_input_names", "errors", "src_lang", "tgt_lang",
    "language_codes", "use_default_system_prompt", "sp_model_kwargs", "backend",
])
"""Keys of `tokenizer_config.json` that are copied: none names code, a file or another model."""
# fmt: on
KNOWN_KEYS: Mapping[str, frozenset[str]] = {
    "model_cfg": _MODEL_KEYS,
    "vision_cfg": _VISION_KEYS,
    "text_cfg": _TEXT_KEYS,
    "multimodal_cfg": _TEXT_KEYS | {"dim_head", "n_queries", "attn_pooler_heads"},
    "preprocess_cfg": frozenset({"size", "mode", "mean", "std", "interpolation", "resize_mode", "fill_color"}),
    "tokenizer_kwargs": frozenset({"clean", "strip_sep_token", "language", "reduction_mask"}),
    "act_kwargs": frozenset({"approximate", "negative_slope", "inplace"}),
    "norm_kwargs": frozenset({"eps", "elementwise_affine", "bias"}),
}
"""Keys of a configuration by the name of the object that holds them; no other is read."""
HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")

Find = Callable[[str], Path | None]
"""Where a file of a model lies on this machine, or None if it has none of that name."""


def copy_config(open_clip: ModuleType, name: str, find: Find, to: Path) -> dict[str, Any]:
    """Copy the configuration of the model called `name` into the folder `to`; return the part about the model.

    Raises BadCheckpoint for a configuration that asks for more than is known.
    """
    config = _read_config(name, find(CONFIG))
    model: dict[str, Any] = _checked("model_cfg", config.get("model_cfg"), name)
    preprocess = _checked("preprocess_cfg", config.get("preprocess_cfg", {}), name)
    given: dict[str, Any] = json.loads(json.dumps(model))
    if own := _own_text_model(model, find):
        known = {key: value for key, value in _read_json(name, own).items() if key != "auto_map"}
        (to / "config.json").write_text(json.dumps(known), encoding="utf-8")
        model["text_cfg"]["hf_model_name"] = str(to)
    _check_parts(open_clip, model, name, to)
    (to / CONFIG).write_text(json.dumps({"model_cfg": model, "preprocess_cfg": preprocess}), encoding="utf-8")
    return given


def link_weights(name: str, find: Find, to: Path) -> None:
    """Link the weights of a model, which are a file of safetensors; raises WeightsMissing without one."""
    weights = next(filter(None, map(find, WEIGHT_NAMES)), None)
    if weights is None:
        raise WeightsMissing(
            f"{name} has no weights of the kind safetensors ({', '.join(WEIGHT_NAMES)}); files of other kinds may "
            "hold code: convert them by safetensors.torch.save_file"
        )
    (to / WEIGHTS).symlink_to(weights.absolute())


def copy_tokenizer(name: str, find: Find, to: Path) -> None:
    """Copy `tokenizer.json`, and of the settings beside it those that name no code; raises WeightsMissing without."""
    file = find(TOKENIZER)
    if file is None:
        raise WeightsMissing(
            f"{name} has no {TOKENIZER}, the one kind of tokenizer that is read here; where the model is trusted, "
            "`AutoTokenizer.from_pretrained(...).save_pretrained(...)` of transformers writes one"
        )
    (to / TOKENIZER).symlink_to(file.absolute())
    for settings, keys in (("tokenizer_config.json", TOKENIZER_KEYS), ("config.json", frozenset({"model_type"}))):
        if (found := find(settings)) is not None and not (to / settings).exists():
            known = {key: value for key, value in _read_json(name, found).items() if key in keys}
            (to / settings).write_text(json.dumps(known), encoding="utf-8")


def in_folder(folder: Path) -> Find:
    """Find the files of a model in a folder; weights by another name than the usual count where they are the only."""

    def find(name: str) -> Path | None:
        if (folder / name).is_file():
            return folder / name
        others = sorted(file for file in folder.iterdir() if file.suffix == WEIGHT_SUFFIX)
        usual = any((folder / usual).is_file() for usual in WEIGHT_NAMES)
        return others[0] if name == WEIGHTS and others and not usual else None

    return find


def in_hub(repository: str) -> Find:
    """Find the files of a model on the hub, fetched into its cache; raises OSError where the hub does not answer."""
    if not HUB_ID.fullmatch(repository):
        raise BadCheckpoint(f"got {repository!r} for a model on the hub; such names are ORGANISATION/MODEL")

    def find(name: str) -> Path | None:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError

        try:
            return Path(hf_hub_download(repository, name))
        except EntryNotFoundError:
            return None

    return find


def _read_config(name: str, file: Path | None) -> Mapping[str, Any]:
    if file is None:
        raise WeightsMissing(f"{name} has no {CONFIG}; give a model of open_clip")
    return _read_json(name, file)


def _read_json(name: str, file: Path) -> Mapping[str, Any]:
    try:
        if file.stat().st_size > LARGEST_CONFIG_BYTES:
            raise ValueError(f"it has more than {LARGEST_CONFIG_BYTES:,} bytes")
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadCheckpoint(f"cannot load {name}: {file.name} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise BadCheckpoint(f"cannot load {name}: {file.name} is no object")
    return found


def _checked(key: str, value: Any, name: str) -> Any:
    """Return a value of a configuration, all of whose keys are known; raises BadCheckpoint for another."""
    if isinstance(value, dict) and key in KNOWN_KEYS:
        strange = sorted(map(str, value.keys() - KNOWN_KEYS[key]))
        if strange:
            raise _refused(name, f"{key}.{strange[0]}", "a setting that is not known here")
        return {each: _checked(each, inner, name) for each, inner in value.items()}
    plain = value if isinstance(value, list) else [value]
    if key.endswith("_cfg") or any(isinstance(each, dict | list) for each in plain):
        raise _refused(name, key, "no plain value")
    return value


def _own_text_model(model: Mapping[str, Any], find: Find) -> Path | None:
    """Return the configuration of a text model of transformers that lies in the model's own folder, as its path
    says.
    """
    own, named = find("config.json"), model.get("text_cfg", {}).get("hf_model_name")
    return own if own is not None and named is not None and Path(named) == own.parent else None


def _check_parts(open_clip: ModuleType, model: Mapping[str, Any], name: str, to: Path) -> None:
    """Raise BadCheckpoint where a configuration takes parts of other models than those that open_clip itself names."""
    timm = model.get("vision_cfg", {}).get("timm_model_name")
    if timm is not None and not re.fullmatch(r"[\w.]+", str(timm)):
        raise _refused(name, "vision_cfg.timm_model_name", f"{timm!r}, which is no name of timm's own")
    for part in ("text_cfg", "multimodal_cfg"):
        other = (model.get(part) or {}).get("hf_model_name")
        if other is not None and other != str(to) and other not in _text_models(open_clip):
            raise _refused(name, f"{part}.hf_model_name", f"{other!r}, a model that open_clip does not name")


def _text_models(open_clip: ModuleType) -> set[str]:
    configs: Iterable[Mapping[str, Any]] = (open_clip.get_model_config(each) for each in open_clip.list_models())
    return {config["text_cfg"].get("hf_model_name") for config in configs} - {None}


def _refused(name: str, key: str, what: str) -> BadCheckpoint:
    return BadCheckpoint(f"cannot load {name}: its {CONFIG} gives {key}, {what}; take it out if the model does without")
