"""A causal language model of a few thousand random weights, which plays a master by chance alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.models.stage_models import seeded

END, PAD, UNKNOWN = "<|end|>", "<|pad|>", "<unk>"
ACTIONS = (
    "<request_grounding></request_grounding>",
    "<visual_query>balloon</visual_query>",
    *(f"<answer>{letter}</answer>" for letter in "ABCD"),
)
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }} <|end|> {% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def words_tokenizer(texts: Sequence[str], words: int, template: str | None = TEMPLATE) -> Any:
    """Words of the texts, and whole actions as words of their own; every other word is unknown to it."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordLevelTrainer(
        vocab_size=words + 3 + len(ACTIONS), special_tokens=[END, PAD, UNKNOWN], show_progress=False
    )
    tokenizer.train_from_iterator([*texts, *(" ".join(ACTIONS) for _ in range(1000))], trainer)
    named = {"eos_token": END, "pad_token": PAD, "unk_token": UNKNOWN}
    fast = seeded(0).PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)
    fast.chat_template = template
    return fast


def tiny_master(folder: Path, tokenizer: Any, seed: int = 0, context_tokens: int = 4096) -> Path:
    """A Llama of two layers with random weights, and its tokenizer, as `save_pretrained` writes them."""
    transformers = seeded(seed)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=context_tokens,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def letters_model(folder: Path) -> Path:
    """A tiny master whose tokens are single bytes: it can write anything, and writes at random."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([END, PAD, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.add_special_tokens([END, PAD])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = seeded(0).PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=PAD)
    fast.chat_template = TEMPLATE
    return tiny_master(folder, fast, context_tokens=16384)
