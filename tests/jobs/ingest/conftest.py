"""A corpus of small films and its library, made once for the tests of ingest, which only read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.index.library import Library
from tests.support.house.once import made_once
from tests.support.libraries.corpus import ingest, make_corpus


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sketch films, one of them twice, and one film that breaks off."""
    return made_once(tmp_path_factory, "corpus", lambda folder: make_corpus(folder, 6, None, doubles=1, poison=1))


@pytest.fixture(scope="session")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The corpus in a library: one worker, one video after the other, nothing split."""
    place = made_once(tmp_path_factory, "whole", lambda folder: ingest(corpus, folder, workers=1, bundle=1, cut_s=0.0))
    return Library.open(str(place))
