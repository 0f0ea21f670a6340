"""Export of tokenizers of open_clip and transformers to the format of the package tokenizers, the vocabulary apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.tokenizer import TOKENIZER_JSON, VOCABULARY, Cleaning, TokenizerSettings
from kinodex.index.spaces.vocabulary import Word, words_of, write_vocabulary

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
