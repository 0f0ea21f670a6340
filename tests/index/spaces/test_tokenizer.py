"""Cleaning of texts, and tokenizers of which only the words of a text are read."""

from __future__ import annotations

import json

import pytest

from kinodex.index.errors import BadCheckpoint
from kinodex.index.spaces.export_text import CHECK_TEXTS
from kinodex.index.spaces.export_tokenizer import export_tokenizer
from kinodex.index.spaces.import_torch import import_open_clip
from kinodex.index.spaces.tokenizer import Tokenizer, TokenizerSettings, clean, settings_from_json, small_model
from kinodex.index.spaces.vocabulary import Word
from tests.support.late import late

open_clip = late(import_open_clip)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tokenizer")
    export_tokenizer(open_clip.tokenizer.SimpleTokenizer(context_length=16), made)
    return made


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


@pytest.mark.parametrize("length", [0, 15, 10**9])
def test_texts_of_another_length_than_the_settings_say(folder, length):
    with pytest.raises(BadCheckpoint, match=f"got 16 tokens of a text of {length}; make the text tower again"):
        Tokenizer(folder, TokenizerSettings(length, "lower", ("!", "<start_of_text>", "<end_of_text>")))(["dog"])


def test_a_damaged_file_has_a_clear_error(folder, tmp_path):
    (tmp_path / "vocabulary.safetensors").write_bytes((folder / "vocabulary.safetensors").read_bytes())
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(BadCheckpoint, match=r"cannot read .*json"):
        Tokenizer(tmp_path, TokenizerSettings(16, "lower"))
