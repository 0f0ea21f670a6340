"""The text tower of a folder: its vectors, several threads, and damage."""

from __future__ import annotations

import json
import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import BadCheckpoint, TowersDamaged
from kinodex.index.spaces.export_text import CHECK_TEXTS, export_tokenizer
from kinodex.index.spaces.space import import_open_clip
from kinodex.index.spaces.text_tower import (
    TEXT_BATCH,
    TextTower,
    Tokenizer,
    TokenizerSettings,
    TransformerSettings,
    Vocabulary,
    Word,
    activate,
    clean,
    erf,
    settings_from_json,
    small_model,
    text_features,
    text_hash,
    words_of,
    write_vocabulary,
)
from kinodex.index.spaces.towers import (
    BUILTIN_TOWERS,
    TOWER_JSON,
    ArrayFile,
    ArrayReader,
    one_blas_thread,
    thread_pools,
    write_arrays,
)
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


def test_weights_stay_in_memory_from_the_second_call_on_and_no_thread_spins_beside(copied):
    tower = TextTower.open(copied)
    first = tower.embed_text(["a red boat"])
    second = tower.embed_text(["two dogs"])
    (copied / "text.safetensors").write_bytes(b"")  # whose words alone are read from it now
    assert tower._weights._kept.keys() >= {"blocks.0.mlp.in.weight", "projection.weight"}
    np.testing.assert_allclose(TextTower.open(BUILTIN_TOWERS).embed_text(["two dogs"]), second, atol=1e-5)
    assert first.shape == second.shape

    def threads() -> set[int]:
        return {each["num_threads"] for each in thread_pools().info() if each["user_api"] == "blas"}

    before = threads()
    with one_blas_thread.held(), one_blas_thread.held():
        assert threads() == {1}
    assert threads() == before


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
    for part, marks, found in (
        ("ab", {}, {"a", "b", "ab"}),
        ("xaby", {}, {"a", "b", "ab"}),
        ("ab", {"prefix": "##"}, {"a", "b", "ab", "##b"}),
        ("ab", {"suffix": "</w>"}, {"a", "b", "ab", "b</w>", "ab</w>"}),
        ("白雪", {}, {"雪"}),
        ("👍🏽👍", {}, {"👍🏽"}),
        ("zzz", {}, set()),
        ("", {}, set()),
    ):
        assert texts(vocabulary.words_in(part, **marks)) == found, (part, marks)
    (word,) = vocabulary.find(["ab</w>"])
    assert word == Word("ab</w>", 16, -3.0, ((1, "a", "b</w>"), (7, "ab", "</w>")))
    assert vocabulary.find(["nothing"]) == []


def test_the_error_function_is_right_and_gelu_by_it_to_1e7():
    numbers = np.concatenate([np.linspace(-7, 7, 40_001), [0.0, -0.0, 1e-30, 80.0, -1e30]]).astype(np.float32)
    expected = np.array([math.erf(number) for number in numbers])
    with np.errstate(over="ignore"):
        wrong = np.abs(erf(numbers) - expected)
    assert wrong.max() < 4e-7
    assert (wrong * np.abs(numbers) / 2).max() < 1e-7


class WatchedReader(ArrayReader):
    """Reader that notes of which positions the states are asked for."""

    def rows(self, name, numbers):
        if name == "positions":
            self.positions = numbers.tolist()
        return super().rows(name, numbers)


@pytest.fixture
def block(tmp_path) -> WatchedReader:
    """Weights for one block of width 4."""
    numbers = np.random.default_rng(1)
    shapes = {"attention.in": (12, 4), "attention.out": (4, 4), "mlp.in": (8, 4), "mlp.out": (4, 8)}
    drawn = {f"blocks.0.{name}.weight": shape for name, shape in shapes.items()}
    drawn |= {"token_embedding": (9, 4), "positions": (6, 4)}
    arrays = {name: numbers.standard_normal(shape).astype(np.float32) for name, shape in drawn.items()}
    norms = ("blocks.0.norm_1", "blocks.0.norm_2", "final_norm")
    write_arrays(tmp_path / "block", arrays | {f"{name}.weight": np.ones(4, np.float32) for name in norms})
    file = ArrayFile(tmp_path / "block")
    return WatchedReader((tmp_path / "block").open("rb", buffering=0), file._places)


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({"causal": True, "pool": "argmax"}, [0, 1, 2]),
        ({"causal": True, "pool": "eos", "eos_id": 5}, [0, 1]),
        ({"causal": True, "pool": "last"}, [0, 1, 2, 3, 4, 5]),
        ({"causal": False, "pool": "last"}, [0, 1, 2, 3, 4, 5]),
        ({"causal": False, "pool": "last", "hides_padding": True}, [0, 1, 2, 5]),
        ({"causal": True, "pool": "first"}, [0]),
    ],
)
def test_positions_without_influence_are_left_out(block, changes, read):
    facts = {"layers": 1, "heads": 2, "norm_eps": 1e-5, "activation": "gelu"} | changes
    ids = np.array([[3, 5, 8, 0, 0, 0]])
    with block:
        features = text_features(block, TransformerSettings(**facts), ids)
        assert block.positions == read
        both = text_features(block, TransformerSettings(**facts), np.array([[3, 5, 8, 0, 0, 0], [1, 2, 3, 4, 6, 8]]))
    if facts["pool"] != "eos":  # of the second text, which has none, the first position counts
        np.testing.assert_allclose(both[0], features[0], rtol=1e-4)
    assert both.shape == (2, 4)


@pytest.mark.parametrize("cleaning", ["lower", "whitespace", "canonicalize"])
def test_cleaning_is_open_clips_own(cleaning):
    theirs = open_clip.tokenizer.get_clean_fn(cleaning)
    assert [clean(text, cleaning) for text in CHECK_TEXTS] == [theirs(text) for text in CHECK_TEXTS]


@pytest.mark.slow
def test_a_text_over_the_limit_keeps_its_end(folder):
    tokenizer = Tokenizer(folder, TokenizerSettings(16, "lower", ("!", "<start_of_text>", "<end_of_text>")))
    ids = tokenizer(["dog " * 40, "dog", ""])
    assert ids.shape == (3, 16)
    assert ids[:, 0].tolist() == [49406] * 3
    assert ids[0].tolist().index(49407) == 15
    assert ids[2].tolist() == [49406, 49407] + [0] * 14
    assert tokenizer([]).shape == (0, 16)


def test_a_dropped_token_becomes_0(folder):
    found = {"context_length": 16, "cleaning": "lower", "always": ["!", "<start_of_text>", "<end_of_text>"]}
    settings = settings_from_json(json.loads(json.dumps(found | {"unknown": "", "dropped_id": 49407})))
    assert settings == TokenizerSettings(16, "lower", ("!", "<start_of_text>", "<end_of_text>"), "", 49407)
    assert Tokenizer(folder, settings)(["dog"]).tolist() == [[49406, 1929] + [0] * 14]


def test_small_models_hold_only_merges_of_their_words():
    words = [Word("a", 5), Word("b", 9), Word("ab", 7, merges=((3, "a", "b"), (1, "", "ab")))]
    assert small_model("BPE", words, "") == {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
    assert small_model("WordPiece", words[:1], "") == {"vocab": {"a": 0}}
    found = small_model("Unigram", [Word("x", 3, -1.0), Word("<unk>", 2)], "<unk>")
    assert found == {"vocab": [["x", -1.0], ["<unk>", 0.0]], "unk_id": 1}
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "abb": 3}, "merges": ["a b", ["ab", "b"]]}
    assert words_of(model)[2:] == [Word("ab", 2, 0, ((0, "a", "b"),)), Word("abb", 3, 0, ((1, "ab", "b"),))]
    assert words_of({"type": "Unigram", "vocab": [["x", -1.5]]}) == [Word("x", 0, -1.5)]


def test_a_damaged_file_has_a_clear_error(folder, tmp_path):
    (tmp_path / "vocabulary.safetensors").write_bytes((folder / "vocabulary.safetensors").read_bytes())
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(BadCheckpoint, match=r"cannot read .*json"):
        Tokenizer(tmp_path, TokenizerSettings(16, "lower"))


def test_every_word_of_random_texts_is_found(tmp_path):
    random = np.random.default_rng(2)
    words = sorted({"".join(random.choice(list("abcdé雪"), random.integers(1, 7))) for _ in range(800)})
    write_vocabulary(tmp_path / "words", [Word(text, number) for number, text in enumerate(words)])
    vocabulary = Vocabulary(tmp_path / "words")
    for _ in range(40):
        text = "".join(random.choice(list("abcdé雪x"), random.integers(1, 60)))
        assert texts(vocabulary.words_in(text)) == {word for word in words if word in text}
    with pytest.raises(ValueError, match="the same hash"):
        write_vocabulary(tmp_path / "doubled", [Word("a", 0), Word("a", 1)])
    assert text_hash("ab") != text_hash("ba")
