"""Tokenizers of each kind that transformers has, trained on a few texts: small, and of the right behaviour."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TRAINING_TEXTS = (
    "a red boat on a calm lake",
    "two dogs run along the beach at sunset",
    "Straße über den faulen Hund, un chien court après l'été",
    "красная лодка на озере",
    "平静的湖面上有一艘红色的船",
    "it's 1,000,000 dogs & 3.14159 cats!",
)
SPECIALS = ["<pad>", "</s>", "<bos>", "<unk>"]


def wordpiece() -> Tokenizer:
    """Like BERT's."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(TRAINING_TEXTS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=names))
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made


def unigram() -> Tokenizer:
    """Like T5's and XLM-R's."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("  ", " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=260, special_tokens=SPECIALS, unk_token="<unk>")
    made.train_from_iterator(TRAINING_TEXTS, trainer)
    made.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    return made


def byte_level() -> Tokenizer:
    """Like RoBERTa's."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIALS, initial_alphabet=alphabet)
    made.train_from_iterator(TRAINING_TEXTS, trainer)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.RobertaProcessing(("</s>", 1), ("<bos>", 2))
    return made


def byte_fallback() -> Tokenizer:
    """Like Gemma's, which SigLIP 2 has: pairs over whole texts, and bytes for letters that no word has."""
    whole = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    whole.normalizer = normalizers.Replace(" ", "▁")
    names = [*SPECIALS, *(f"<0x{number:02X}>" for number in range(256))]
    whole.train_from_iterator(TRAINING_TEXTS, trainers.BpeTrainer(vocab_size=420, special_tokens=names))
    file = json.loads(whole.to_str())
    file["added_tokens"] = file["added_tokens"][: len(SPECIALS)]
    made = Tokenizer.from_str(json.dumps(file))
    made.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    made.add_tokens([AddedToken("▁▁▁", normalized=True), AddedToken("catfish", normalized=False)])
    return made


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "wordpiece": wordpiece,
    "unigram": unigram,
    "byte_level": byte_level,
    "byte_fallback": byte_fallback,
}


def write_tokenizer(folder: Path, kind: str) -> None:
    """Write a tokenizer of one of `KINDS` to a folder, from which transformers' AutoTokenizer loads it."""
    folder.mkdir(parents=True, exist_ok=True)
    KINDS[kind]().save(str(folder / "tokenizer.json"))
    pad, unknown, end = ("[PAD]", "[UNK]", "[SEP]") if kind == "wordpiece" else ("<pad>", "<unk>", "</s>")
    names: dict[str, Any] = {"pad_token": pad, "unk_token": unknown, "sep_token": end}
    facts = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512} | names
    (folder / "tokenizer_config.json").write_text(json.dumps(facts))


def write_sentencepiece(folder: Path, tokenizer_class: str, kind: str) -> None:
    """Write a folder with a sentencepiece file alone, of `kind` "unigram" or "bpe", for a class of transformers."""
    import sentencepiece

    folder.mkdir(parents=True, exist_ok=True)
    names: dict[str, Any] = {"pad_piece": "<pad>", "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TRAINING_TEXTS * 20),
        model_prefix=str(folder / "spiece"),
        model_type=kind,
        vocab_size=430,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
        **names,
    )
    (folder / "spiece.vocab").unlink()
    facts = {"tokenizer_class": tokenizer_class, "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(facts))


def same_ids(ours: Sequence[Any], theirs: Sequence[Any], texts: Sequence[str]) -> list[str]:
    """List the texts of which the two have different ids."""
    return [text for text, a, b in zip(texts, ours, theirs, strict=True) if list(a) != list(b)]
