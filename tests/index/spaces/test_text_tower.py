"""The text tower of a folder: its vectors, several threads, and damage."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import BadCheckpoint, TowersDamaged
from kinodex.index.spaces.export_text import export_tokenizer
from kinodex.index.spaces.space import import_open_clip
from kinodex.index.spaces.text_tower import (
    TEXT_BATCH,
    TextTower,
    Vocabulary,
    Word,
    activate,
    write_vocabulary,
)
from kinodex.index.spaces.towers import BUILTIN_TOWERS, TOWER_JSON
from tests.support.late import late

open_clip, torch = late(import_open_clip), late("torch")


@pytest.fixture(scope="module")
def tower() -> TextTower:
    return TextTower.open(BUILTIN_TOWERS)


@pytest.fixture
def copied(tmp_path) -> Path:
    return Path(shutil.copytree(BUILTIN_TOWERS, tmp_path / "towers"))


def test_a_text_has_one_vector_in_whatever_company_and_thread(tower):
    texts = [f"{'dog ' * (number % 11)}{number}" for number in range(2 * TEXT_BATCH + 3)]
    together = tower.embed_text(texts)
    for number in (0, 10, 20, len(texts) - 1):
        np.testing.assert_allclose(tower.embed_text([texts[number]])[0], together[number], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    assert (together.dtype.name, tower.name, tower.dim, tower.embed_text([]).shape) == (
        "float32",
        "builtin",
        256,
        (0, 256),
    )
    several = [["a red boat", "two dogs"], ["snow on a roof"]] * 8
    with ThreadPoolExecutor(8) as pool:
        for vectors, asked in zip(pool.map(tower.embed_text, several), several, strict=True):
            np.testing.assert_array_equal(vectors, tower.embed_text(asked))


def test_a_folder_without_a_text_tower(tmp_path, copied):
    with pytest.raises(TowersDamaged, match="holds no text tower"):
        TextTower.open(tmp_path)
    facts = json.loads((copied / TOWER_JSON).read_text())
    later = json.loads(json.dumps(facts))
    later["text"]["settings"]["transformer"]["rotary"] = True
    (copied / TOWER_JSON).write_text(json.dumps(later))
    with pytest.raises(TowersDamaged, match=r"the settings of the text tower .* are not known here: .*rotary"):
        TextTower.open(copied)
    (copied / TOWER_JSON).write_text(json.dumps(facts | {"text": None}))
    with pytest.raises(TowersDamaged, match="holds no text tower"):
        TextTower.open(copied)


@pytest.mark.parametrize("name", ["text.safetensors", "tokenizer.json", "vocabulary.safetensors"])
def test_damaged_files_are_refused(copied, name):
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[:-3])
    with pytest.raises(TowersDamaged, match=name.replace(".", r"\.")):
        TextTower.open(copied)
    (copied / name).write_bytes(bytes(len(content)))
    with pytest.raises(BadCheckpoint, match="make the text tower again"):
        TextTower.open(copied)


# Arithmetic of the numpy transformer that numpy does not have; the whole is tested where towers are exported.

ORIGINALS: dict[str, Any] = {
    "gelu": lambda x: torch.nn.GELU()(x),
    "gelu_tanh": lambda x: torch.nn.GELU("tanh")(x),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_activations_are_those_of_torch(name):
    numbers = np.concatenate([np.linspace(-12, 12, 10_001), [-1e4, 1e4]]).astype(np.float32)
    expected = ORIGINALS[name](torch.from_numpy(numbers)).numpy()
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(activate(name, numbers), expected, atol=2e-6)


# Cleaning of texts, and tokenizers of which only the words of a text are read.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tokenizer")
    export_tokenizer(open_clip.tokenizer.SimpleTokenizer(context_length=16), made)
    return made


# Vocabularies in a file: the parts of a text that are words, and nothing read that is not asked for.

WORDS = ["a", "b", "ab", "ba", "##b", "b</w>", "ab</w>", "雪", "👍🏽", "abc", "<unk>", "é"]


@pytest.fixture
def vocabulary(tmp_path) -> Vocabulary:
    merges = {"ab": ((0, "a", "b"),), "ab</w>": ((1, "a", "b</w>"), (7, "ab", "</w>"))}
    path = tmp_path / "words.safetensors"
    write_vocabulary(path, [Word(text, 10 + n, -0.5 * n, merges.get(text, ())) for n, text in enumerate(WORDS)])
    return Vocabulary(path)


def texts(words: list[Word]) -> set[str]:
    return {word.text for word in words}


def test_words_that_are_parts_of_texts(vocabulary):
    for parts, marks, found in (
        (["ab"], {}, {"a", "b", "ab"}),
        (["xaby"], {}, {"a", "b", "ab"}),
        (["ab"], {"prefix": "##"}, {"a", "b", "ab", "##b"}),
        (["ab"], {"suffix": "</w>"}, {"a", "b", "ab", "b</w>", "ab</w>"}),
        (["白雪", "👍🏽👍"], {}, {"雪", "👍🏽"}),
        (["", "zzz"], {}, set()),
        ([], {}, set()),
    ):
        assert texts(vocabulary.words_in(parts, **marks)) == found, (parts, marks)
    (word,) = vocabulary.find(["ab</w>"])
    assert word == Word("ab</w>", 16, -3.0, ((1, "a", "b</w>"), (7, "ab", "</w>")))
    assert vocabulary.find(["nothing"]) == []
