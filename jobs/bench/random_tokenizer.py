"""Write a tokenizer of made-up words for a model with random weights, where the real one lies on a hub.

It has as many words as the model's table, so that it costs what the real one does: byte pairs that join letters to all
words of two, three and four letters, in the order of the alphabet, as far as the table goes.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from jobs.errors import UsageError

SPECIALS = ("<pad>", "<eos>", "<bos>", "<unk>")
SPACE = "▁"
LETTERS = (*(f"<0x{number:02X}>" for number in range(256)), SPACE, *string.ascii_lowercase)
"""A word for each byte, for what has no letter here, and the letters."""
LONGEST_WORD = 5


def write_random_tokenizer(folder: Path, words: int) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json`, which transformers reads, of exactly so many words.

    Raises UsageError for a number that is too small for letters and marks.
    """
    import tokenizers

    singles = (*SPECIALS, *LETTERS)
    if words < len(singles):
        raise UsageError(f"got a model with a table of {words} words; letters and marks alone are {len(singles)}")
    merges = list(islice(_merges(), words - len(singles)))
    vocabulary = {word: number for number, word in enumerate((*singles, *("".join(pair) for pair in merges)))}
    model = tokenizers.models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.Replace(" ", SPACE)
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("$A <eos>", special_tokens=[("<eos>", 1)])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    named = dict(zip(("pad_token", "eos_token", "bos_token", "unk_token"), SPECIALS, strict=True))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **named}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def _merges() -> Iterator[tuple[str, str]]:
    """Join each word to each letter, the words of two letters first: the order in which the pairs are joined later."""
    letters = (SPACE, *string.ascii_lowercase)
    words: tuple[str, ...] = letters
    for _ in range(LONGEST_WORD - 1):
        yield from ((word, letter) for word in words for letter in string.ascii_lowercase)
        words = tuple(word + letter for word in words for letter in string.ascii_lowercase)
