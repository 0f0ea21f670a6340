"""A tokenizer of made-up words, as open_clip loads it beside a model and as a library carries it."""

from __future__ import annotations

import pytest

from kinodex.bench.random_space import write_random_tokenizer
from kinodex.index.spaces.export_text import export_tokenizer
from kinodex.index.spaces.space import import_open_clip
from kinodex.index.spaces.tokenizer import Tokenizer
from kinodex.jobs.errors import UsageError

WORDS = 3_000
TEXTS = ["a red boat", "", "Ein Boot, 2 Anker!", "лодка", "sea " * 40]


def test_it_has_as_many_words_as_the_table_and_is_exported(tmp_path):
    write_random_tokenizer(tmp_path / "model", WORDS)
    theirs = import_open_clip().tokenizer.HFTokenizer(str(tmp_path / "model"), context_length=16, clean="canonicalize")
    assert len(theirs.tokenizer) == WORDS
    ids = theirs(TEXTS).numpy()
    assert ids.shape == (len(TEXTS), 16)
    assert (ids[0, 0], ids[1, 0], ids[1, 1]) != (3, 3, 3)  # nothing is unknown
    assert ids[1].tolist() == [1] + 15 * [0]  # the end, then padding
    assert ids.max() > len("abc") + 290  # pairs are joined
    (tmp_path / "exported").mkdir()
    settings = export_tokenizer(theirs, tmp_path / "exported")
    assert Tokenizer(tmp_path / "exported", settings)(TEXTS).tolist() == ids.tolist()


def test_a_table_without_room_for_letters_is_refused(tmp_path):
    with pytest.raises(UsageError, match="got a model with a table of 100 words"):
        write_random_tokenizer(tmp_path, 100)
