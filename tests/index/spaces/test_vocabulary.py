"""Vocabularies in a file: the parts of a text that are words, and nothing read that is not asked for."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.spaces.vocabulary import Vocabulary, Word, text_hash, words_of, write_vocabulary

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


def test_the_words_of_a_model_of_the_package_tokenizers():
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "abb": 3}, "merges": ["a b", ["ab", "b"]]}
    assert words_of(model)[2:] == [Word("ab", 2, 0, ((0, "a", "b"),)), Word("abb", 3, 0, ((1, "ab", "b"),))]
    assert words_of({"type": "Unigram", "vocab": [["x", -1.5]]}) == [Word("x", 0, -1.5)]
