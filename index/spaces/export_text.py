"""Export of a space's text tower, and its check: the numpy tower must give the vectors of torch's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.text_tower import (
    TOKENIZER_JSON,
    VOCABULARY,
    WEIGHTS,
    Activation,
    ClassKey,
    Cleaning,
    Pool,
    TextSettings,
    TextTower,
    Tokenizer,
    TokenizerSettings,
    TransformerSettings,
    Word,
    words_of,
    write_vocabulary,
)
from kinodex.index.spaces.towers import Fingerprint, TowerFacts, tower_facts, write_arrays

if TYPE_CHECKING:
    from kinodex.index.spaces.space import Space

Arrays = dict[str, NDArray[np.float32]]
MIN_COSINE = 0.9999
LARGEST_HALF = 65504.0
CHECK_BATCH = 32
CHECKS = json.loads((Path(__file__).parent / "check_texts.json").read_text(encoding="utf-8"))
CHECK_TEXTS: tuple[str, ...] = tuple(CHECKS["towers"])
"""Texts on which an exported tower must agree with the original: many scripts, lengths, and what goes wrong."""
VECTOR_TEXTS = CHECK_TEXTS[::16]
"""Those whose vectors are compared: all 200 took ViT-B-32 26 CPU s, torch's transformer 18 of them."""


def export_text_tower(space: Space, folder: Path) -> TowerFacts:
    """Write the text tower of a loaded space to `folder`, in half precision where that is near enough.

    Raises ExportRefused with the reason if the tower is of a kind that is not covered, if one of the check's texts has
    other token ids, or one of every sixteenth of them a vector with a cosine below 0.9999.
    """
    model, tokenizer = space.text_parts()
    arrays, transformer = export_transformer(model)
    settings = TextSettings(transformer, export_tokenizer(tokenizer, folder))
    _check_ids(space.name, Tokenizer(folder, settings.tokenizer), tokenizer)
    what = f"the text tower of {space.name}"
    expected = space.embed_text(VECTOR_TEXTS)
    embed = partial(TextTower.embed_text, texts=VECTOR_TEXTS)
    return write_tower(folder, what, space.fingerprint, arrays, settings, VECTOR_TEXTS, expected, embed)


def write_tower(
    folder: Path,
    what: str,
    space: Fingerprint,
    arrays: Arrays,
    settings: TextSettings,
    texts: Sequence[str],
    expected: NDArray[np.float32],
    embed: Callable[[TextTower], NDArray[np.float32]],
) -> TowerFacts:
    """Write weights in the least precision that gives the texts' `expected` vectors; raises ExportRefused."""
    fits_half = all(np.abs(each).max(initial=0) <= LARGEST_HALF for each in arrays.values())
    least, worst = -1.0, ""
    for floats in ("F16", "F32") if fits_half else ("F32",):
        write_arrays(folder / WEIGHTS, arrays, floats)
        vectors = embed(TextTower(folder, space, settings))
        cosines = np.nan_to_num((vectors.astype(np.float64) * expected).sum(1), nan=-1.0)
        least, worst = float(cosines.min()), texts[int(cosines.argmin())]
        if least >= MIN_COSINE:
            names = (WEIGHTS, TOKENIZER_JSON, VOCABULARY)
            return tower_facts(folder, names, asdict(settings), len(texts), round(least, 7))
    why = f"its vector of {worst[:60]!r} has a cosine of {least:.5f} to torch's, and {MIN_COSINE} is needed"
    raise ExportRefused(f"{what} cannot be exported: {why}")


def _check_ids(space_name: str, exported: Tokenizer, tokenizer: Any) -> None:
    for batch in _batches():
        for text, ours, theirs in zip(batch, exported(batch), tokenizer(batch).numpy(), strict=True):
            if not np.array_equal(ours, theirs):
                place = int((ours != theirs).argmax())
                what = f"token {place} of {text[:60]!r} is {ours[place]}, and {theirs[place]} for open_clip"
                raise ExportRefused(f"the tokenizer of {space_name} cannot be exported: {what}")


def _batches() -> Iterator[list[str]]:
    for first in range(0, len(CHECK_TEXTS), CHECK_BATCH):
        yield list(CHECK_TEXTS[first : first + CHECK_BATCH])


# Export of open_clip's tokenizers to a file of the package tokenizers, with the vocabulary beside it.

SPLIT = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
MODELS = ("BPE", "Unigram", "WordPiece", "WordLevel")
CLEANINGS: Mapping[str, Cleaning] = {
    "_clean_lower": "lower",
    "_clean_whitespace": "whitespace",
    "_clean_canonicalize": "canonicalize",
}


def export_tokenizer(tokenizer: Any, folder: Path) -> TokenizerSettings:
    """Write the tokenizer of a space to `folder`; raises ExportRefused if it is of a kind that is not covered."""
    kind = type(tokenizer).__name__
    if kind == "SimpleTokenizer":
        if tokenizer.reduction_fn is not None:
            raise ExportRefused("its tokenizer drops words at random (reduction_mask), so it has no fixed vectors")
        return _write(_byte_pairs(tokenizer), folder, tokenizer.context_length, _cleaning(tokenizer), -1)
    if kind not in ("HFTokenizer", "SigLipTokenizer"):
        raise ExportRefused(f"its tokenizer is a {kind}, which is not covered")
    if getattr(tokenizer, "tokenizer_mode", ""):
        raise ExportRefused(f"its tokenizer has the mode {tokenizer.tokenizer_mode!r}, which is not covered")
    cleaning = _cleaning(tokenizer) if kind == "HFTokenizer" else "canonicalize"
    stripped = getattr(tokenizer, "strip_sep_token", False)
    dropped = int(tokenizer.tokenizer.sep_token_id) if stripped else -1
    file = _file_of(tokenizer.tokenizer, tokenizer.context_length)
    return _write(file, folder, tokenizer.context_length, cleaning, dropped)


def export_plain_tokenizer(tokenizer: Any, max_length: int, folder: Path) -> TokenizerSettings:
    """Write a tokenizer of transformers to `folder` that takes texts as they are; raises ExportRefused."""
    return _write(_file_of(tokenizer, max_length), folder, max_length, "none", -1)


def _cleaning(tokenizer: Any) -> Cleaning:
    name = tokenizer.clean_fn.__name__
    if name not in CLEANINGS:
        raise ExportRefused(f"its tokenizer cleans texts by {name}, which is not covered")
    return CLEANINGS[name]


def _file_of(tokenizer: Any, context_length: int) -> dict[str, Any]:
    """Describe a tokenizer of transformers in the format of the package tokenizers."""
    import tokenizers

    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:  # of transformers 5 those alone that compute in Python, and for which it has no converter
        raise ExportRefused(
            f"its tokenizer is a {type(tokenizer).__name__}, which transformers computes in Python, not by the package "
            "tokenizers; T5Tokenizer, LlamaTokenizer and others read the same sentencepiece file with it"
        )
    own = tokenizers.Tokenizer.from_str(backend.to_str())
    own.enable_truncation(context_length, direction=tokenizer.truncation_side)
    pad = {"pad_id": tokenizer.pad_token_id, "pad_token": tokenizer.pad_token}
    own.enable_padding(length=context_length, direction=tokenizer.padding_side, **pad)
    file: dict[str, Any] = json.loads(own.to_str())
    return file


def _byte_pairs(tokenizer: Any) -> dict[str, Any]:
    """Describe open_clip's own byte-pair tokenizer in the format of the package tokenizers."""
    import tokenizers

    ranks = sorted(tokenizer.bpe_ranks, key=tokenizer.bpe_ranks.get)
    vocabulary = dict(tokenizer.encoder)
    specials = [tokenizer.decoder[number] for number in tokenizer.all_special_ids]
    model = tokenizers.models.BPE(vocabulary, ranks, end_of_word_suffix="</w>")
    for special in specials:
        _merge_special(model, special, vocabulary, ranks)
    own = tokenizers.Tokenizer(tokenizers.models.BPE(end_of_word_suffix="</w>"))
    split = tokenizers.Regex("(?i)" + "|".join(specials) + "|" + SPLIT)
    own.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(split, "removed", invert=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    start, end = specials[:2]
    ends = [(start, tokenizer.sot_token_id), (end, tokenizer.eot_token_id)]
    own.post_processor = tokenizers.processors.TemplateProcessing(f"{start} $A {end}", special_tokens=ends)
    own.enable_truncation(tokenizer.context_length)
    own.enable_padding(length=tokenizer.context_length, pad_id=0, pad_token=tokenizer.decoder[0])
    file: dict[str, Any] = json.loads(own.to_str())
    return file | {"model": file["model"] | {"vocab": vocabulary, "merges": ranks}}


def _merge_special(model: Any, special: str, vocabulary: dict[str, int], ranks: list[tuple[str, str]]) -> None:
    """Add merges that make one token of a special word that stands in a text, as open_clip's tokenizer does."""
    parts = [token.value for token in model.tokenize(special)]
    number = vocabulary[special]
    for place in range(1, len(parts)):
        left, right = "".join(parts[:place]), parts[place]
        ranks.append((left, right))
        vocabulary.setdefault(left + right, number)


def _write(
    file: dict[str, Any], folder: Path, context_length: int, cleaning: Cleaning, dropped_id: int
) -> TokenizerSettings:
    model = file["model"]
    if model["type"] not in MODELS or (model["type"] == "BPE" and model.get("continuing_subword_prefix")):
        raise ExportRefused(f"its tokenizer has a {model['type']} model with marks that are not covered")
    if model.get("dropout"):
        raise ExportRefused("its tokenizer drops merges at random (dropout), so it has no fixed vectors")
    words = words_of(model)
    try:
        write_vocabulary(folder / VOCABULARY, words)
    except ValueError as error:
        raise ExportRefused(f"its tokenizer cannot be written: {error}") from error
    is_unigram, unknown = model["type"] == "Unigram", str(model.get("unk_token") or "")
    if is_unigram:
        unknown = "" if model["unk_id"] is None else str(model["vocab"][model["unk_id"]][0])
    empty: dict[str, Any] = {"vocab": [], "unk_id": None} if is_unigram else {"vocab": {}}
    empty |= {"merges": []} if model["type"] == "BPE" else {}
    text = json.dumps(file | {"model": model | empty}, ensure_ascii=False)
    (folder / TOKENIZER_JSON).write_text(text, encoding="utf-8")
    return TokenizerSettings(context_length, cleaning, _always(file, words, unknown), unknown, dropped_id)


def _always(file: Mapping[str, Any], words: list[Word], unknown: str) -> tuple[str, ...]:
    """List the words that any text may need, a unigram model's least likely, the measure of the unknown, too."""
    needed = {unknown, file["padding"]["pad_token"], *(token["content"] for token in file["added_tokens"])}
    if file["model"]["type"] == "Unigram":
        needed.add(min(words, key=lambda word: word.score).text)
    processor = file["post_processor"] or {}
    for each in (processor, *processor.get("processors", ())):
        needed |= set(each.get("special_tokens", {})) | {each[key][0] for key in ("sep", "cls") if key in each}
    return tuple(word.text for word in words if word.text in needed)


# Export of open_clip's text transformers: settings and weights, as read from the modules themselves.

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


def block_arrays(
    weights: Mapping[str, NDArray[np.float32]], block: re.Pattern[str], parts: Mapping[str, str], mixed: Sequence[str]
) -> tuple[Arrays, list[str]]:
    """Name the weights of a transformer's blocks as the numpy tower does; returns those of blocks that are left, too.

    `block` finds a block's number, the part and its kind in a name; `mixed` are the parts of queries, keys and values,
    which become one.
    """
    arrays: Arrays = {}
    others = []
    for name, value in weights.items():
        found = block.fullmatch(name)
        if found is None:
            continue
        number, part, kind = found.groups()
        if part in parts:
            arrays[f"blocks.{number}.{parts[part]}.{kind}"] = value
        elif part == mixed[0]:
            joined = [weights[name.replace(part, each)] for each in mixed]
            arrays[f"blocks.{number}.attention.in.{kind}"] = np.concatenate(joined)
        elif part not in mixed:
            others.append(name)
    return arrays, others


def export_transformer(model: Any) -> tuple[Arrays, TransformerSettings]:
    """Read an open_clip model's text transformer and projection by our names; raises ExportRefused."""
    text, pool, eos_id = _text_module(model)
    modules = {name: getattr(text, name) for name in ("token_embedding", "transformer", "ln_final")}
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
    class_key: ClassKey = "none" if not has_class else "last" if text.correct_cls_mask else "first"
    return TransformerSettings(
        layers=len(blocks),
        heads=_one("heads", {block.attn.num_heads for block in blocks}),
        norm_eps=_one("eps of its norms", {norm.eps for norm in norms}),
        activation=_one("activations", {_activation(block.mlp.gelu) for block in blocks}),
        causal=_is_causal(text.attn_mask),
        pool=pooled,
        eos_id=eos_id,
        pad_id=int(getattr(text, "pad_id", 0)),
        hides_padding=has_class or bool(getattr(text, "use_pad_mask", False)),
        class_key=class_key,
    )


def _one(what: str, values: set[Any]) -> Any:
    if len(values) != 1:
        raise ExportRefused(f"this text tower has blocks that differ in {what}: {sorted(map(str, values))}")
    return values.pop()


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
