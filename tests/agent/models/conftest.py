"""A tiny causal language model with random weights, for the tests of models in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.models.local import LocalModel, load_local_model
from tests.support.models.training_model import tiny_master, words_tokenizer

WORDS = "user: assistant: what is it a kite here now"


@pytest.fixture(scope="session")
def words() -> list[str]:
    """The texts that the tokenizer is made of."""
    return [WORDS] * 9


@pytest.fixture(scope="session")
def tokenizer(words: list[str]) -> Any:
    return words_tokenizer(words, words=9)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    """The folder of the model, as `save_pretrained` writes it."""
    return tiny_master(tmp_path_factory.mktemp("local") / "model", tokenizer)


@pytest.fixture
def model(folder: Path) -> LocalModel:
    return load_local_model(str(folder), max_new_tokens=5)
