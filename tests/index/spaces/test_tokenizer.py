"""Cleaning of texts, and tokenizers of which only the words of a text are read."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kinodex.index.errors import BadCheckpoint
from kinodex.index.spaces.export_text import CHECK_TEXTS, export_tokenizer
from kinodex.index.spaces.space import import_open_clip
from kinodex.index.spaces.text_tower import (
    Tokenizer,
    TokenizerSettings,
    Vocabulary,
    Word,
    clean,
    settings_from_json,
    small_model,
    text_hash,
    words_of,
    write_vocabulary,
)

open_clip = import_open_clip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tokenizer")
    export_tokenizer(open_clip.tokenizer.SimpleTokenizer(context_length=16), made)
    return made


@pytest.mark.parametrize("cleaning", ["lower", "whitespace", "canonicalize"])
def test_cleaning_is_open_clips_own(cleaning):
    theirs = open_clip.tokenizer.get_clean_fn(cleaning)
    assert [clean(text, cleaning) for text in CHECK_TEXTS] == [theirs(text) for text in CHECK_TEXTS]


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


def test_a_damaged_file_has_a_clear_error(folder, tmp_path):
    (tmp_path / "vocabulary.safetensors").write_bytes((folder / "vocabulary.safetensors").read_bytes())
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(BadCheckpoint, match=r"cannot read .*json"):
        Tokenizer(tmp_path, TokenizerSettings(16, "lower"))


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


def test_a_word_keeps_its_number_score_and_merges(vocabulary):
    (word,) = vocabulary.find(["ab</w>"])
    assert word == Word("ab</w>", 16, -3.0, ((1, "a", "b</w>"), (7, "ab", "</w>")))
    assert vocabulary.find(["nothing"]) == []


def test_every_word_of_random_texts_is_found(tmp_path):
    random = np.random.default_rng(2)
    words = sorted({"".join(random.choice(list("abcdé雪"), random.integers(1, 7))) for _ in range(800)})
    write_vocabulary(tmp_path / "words", [Word(text, number) for number, text in enumerate(words)])
    vocabulary = Vocabulary(tmp_path / "words")
    for _ in range(40):
        text = "".join(random.choice(list("abcdé雪x"), random.integers(1, 60)))
        assert texts(vocabulary.words_in([text])) == {word for word in words if word in text}


def test_words_of_a_model_know_what_merges_into_them():
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "abb": 3}, "merges": ["a b", ["ab", "b"]]}
    assert words_of(model)[2:] == [Word("ab", 2, 0, ((0, "a", "b"),)), Word("abb", 3, 0, ((1, "ab", "b"),))]
    assert words_of({"type": "Unigram", "vocab": [["x", -1.5]]}) == [Word("x", 0, -1.5)]


def test_two_words_of_one_hash_are_refused(tmp_path):
    with pytest.raises(ValueError, match="the same hash"):
        write_vocabulary(tmp_path / "words", [Word("a", 0), Word("a", 1)])
    assert text_hash("ab") != text_hash("ba")
