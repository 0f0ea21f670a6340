"""Export of tokenizers of every kind: the same ids as open_clip's for all texts of the check, or a refusal."""

from __future__ import annotations

import pytest

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.export_text import CHECK_TEXTS, export_tokenizer
from kinodex.index.spaces.space import import_open_clip
from kinodex.index.spaces.tokenizer import Tokenizer
from tests.support.models.text_tokenizers import KINDS, same_ids, write_sentencepiece, write_tokenizer

open_clip = import_open_clip()
TEXTS = [*CHECK_TEXTS, "catfish", "a catfish and catfish.", "catfishcatfish ▁▁▁ dog▁▁▁▁", "x   y    z"]


def differing(original, folder) -> list[str]:
    ours = Tokenizer(folder, export_tokenizer(original, folder))
    together = same_ids(ours(TEXTS).tolist(), original(TEXTS).tolist(), TEXTS)
    alone = [text for text in TEXTS[::5] if ours([text]).tolist() != original([text]).tolist()]
    return together + alone


@pytest.mark.parametrize(("clean", "length"), [("lower", 77), ("whitespace", 16), ("canonicalize", 24)])
def test_ids_of_open_clips_own_tokenizer(tmp_path, clean, length):
    original = open_clip.tokenizer.SimpleTokenizer(context_length=length, clean=clean)
    assert differing(original, tmp_path) == []


@pytest.mark.parametrize("clean", ["whitespace", "canonicalize"])
@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_transformers_tokenizers(tmp_path, kind, clean):
    write_tokenizer(tmp_path / "given", kind)
    original = open_clip.tokenizer.HFTokenizer(str(tmp_path / "given"), context_length=24, clean=clean)
    assert differing(original, tmp_path) == []


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_ids_where_there_is_a_sentencepiece_file_alone(tmp_path, kind):
    write_sentencepiece(tmp_path / "given", "T5Tokenizer", kind)
    original = open_clip.tokenizer.HFTokenizer(str(tmp_path / "given"), context_length=24, clean="canonicalize")
    assert sorted(each.name for each in (tmp_path / "given").iterdir()) == ["spiece.model", "tokenizer_config.json"]
    assert differing(original, tmp_path) == []
    assert len({*original(["a red boat"])[0].tolist()}) > 3  # it knows words


def test_sentencepiece_in_python_is_refused(tmp_path):
    write_sentencepiece(tmp_path / "given", "SiglipTokenizer", "unigram")
    original = open_clip.tokenizer.HFTokenizer(str(tmp_path / "given"), context_length=24)
    with pytest.raises(ExportRefused, match="a SiglipTokenizer, which transformers computes in Python") as error:
        export_tokenizer(original, tmp_path)
    assert "\n" not in str(error.value)


def test_a_stripped_separator(tmp_path):
    write_tokenizer(tmp_path / "given", "wordpiece")
    original = open_clip.tokenizer.HFTokenizer(str(tmp_path / "given"), context_length=20, strip_sep_token=True)
    assert differing(original, tmp_path) == []
    ids = Tokenizer(tmp_path, export_tokenizer(original, tmp_path))(["a dog"])[0].tolist()
    assert original.tokenizer.sep_token_id == 3
    assert ids[0] == 2
    assert 3 not in ids


def test_more_special_words(tmp_path):
    words = ["<mask_word>", "<other>"]
    original = open_clip.tokenizer.SimpleTokenizer(additional_special_tokens=words, context_length=20)
    texts = ["a <mask_word> b", "<other>", "x!<other>y", "<OTHER> <mask_word><other>"]
    ours = Tokenizer(tmp_path, export_tokenizer(original, tmp_path))
    assert same_ids(ours(texts).tolist(), original(texts).tolist(), texts) == []


def test_tokenizers_that_are_refused(tmp_path):
    at_random = open_clip.tokenizer.SimpleTokenizer(reduction_mask="random")
    with pytest.raises(ExportRefused, match="at random"):
        export_tokenizer(at_random, tmp_path)
    with pytest.raises(ExportRefused, match="a dict, which is not covered"):
        export_tokenizer({}, tmp_path)
    write_tokenizer(tmp_path / "given", "wordpiece")
    of_mode = open_clip.tokenizer.HFTokenizer(str(tmp_path / "given"), tokenizer_mode="clips")
    with pytest.raises(ExportRefused, match="the mode 'clips'"):
        export_tokenizer(of_mode, tmp_path)
    other = open_clip.tokenizer.SimpleTokenizer()
    other.clean_fn = str.upper
    with pytest.raises(ExportRefused, match="cleans texts by upper"):
        export_tokenizer(other, tmp_path)
