"""A model with random weights, as fast as a trained one: `python -m tests.bench.random_space FOLDER`."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from kinodex.jobs.errors import UsageError
from kinodex.output import say

SPECIALS = ("<pad>", "<eos>", "<bos>", "<unk>")
MARK = "▁"
LETTERS = (*(f"<0x{number:02X}>" for number in range(256)), MARK, *string.ascii_lowercase)
"""A word for each byte, for what has no letter here, and the letters."""
LONGEST_WORD = 5


def make_random_space(directory: Path, model: str) -> str:
    """Write an open_clip model with random weights to a folder; returns the name of the space.

    It is as fast as a trained one, and useless for a search. Where the architecture takes a tokenizer from a hub, it
    comes with one of made-up words. Raises UsageError if open_clip has no architecture of that name.
    """
    import torch

    from kinodex.index.spaces.import_torch import import_open_clip, silent_root_logger

    open_clip = import_open_clip()
    config = open_clip.get_model_config(model)
    if config is None:
        raise UsageError(f"got --model {model}; open_clip has {', '.join(open_clip.list_models())}")
    from safetensors.torch import save_model

    with torch.random.fork_rng(devices=[]), silent_root_logger():  # which warns that the weights are random
        torch.manual_seed(0)
        created = open_clip.create_model(model)
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"model_cfg": config, "preprocess_cfg": created.visual.preprocess_cfg}, indent=2)
    (directory / "open_clip_config.json").write_text(text, encoding="utf-8")
    save_model(created, str(directory / "open_clip_model.safetensors"))
    if config["text_cfg"].get("hf_tokenizer_name"):
        write_random_tokenizer(directory, int(config["text_cfg"]["vocab_size"]))
    return f"local-dir:{directory}"


def write_random_tokenizer(folder: Path, words: int) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` of exactly this many words; raises UsageError for too few."""
    import tokenizers

    singles = (*SPECIALS, *LETTERS)
    if words < len(singles):
        raise UsageError(f"got a model with a table of {words} words; letters and marks alone are {len(singles)}")
    merges = list(islice(_merges(), words - len(singles)))
    vocabulary = {word: number for number, word in enumerate((*singles, *("".join(pair) for pair in merges)))}
    model = tokenizers.models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.Replace(" ", MARK)
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("$A <eos>", special_tokens=[("<eos>", 1)])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    named = dict(zip(("pad_token", "eos_token", "bos_token", "unk_token"), SPECIALS, strict=True))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **named}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def _merges() -> Iterator[tuple[str, str]]:
    """Join each word to each letter, the words of two letters first: the order in which the pairs are joined later."""
    letters = (MARK, *string.ascii_lowercase)
    words: tuple[str, ...] = letters
    for _ in range(LONGEST_WORD - 1):
        yield from ((word, letter) for word in words for letter in string.ascii_lowercase)
        words = tuple(word + letter for word in words for letter in string.ascii_lowercase)


def main(
    directory: Annotated[Path, typer.Argument(help="Folder for the model.")],
    model: Annotated[str, typer.Option(help="An architecture of open_clip.")] = "ViT-B-32",
) -> None:
    """Write a model with random weights, to measure speed with where no hub can be reached."""
    say(make_random_space(directory, model))


if __name__ == "__main__":
    typer.run(main)
