"""A corpus of small films and its library, made once for the tests of ingest."""

from __future__ import annotations

from pathlib import Path

import pytest

from index.library import Library
from tests.support.libraries.corpus import ingest, make_corpus


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sketch films, one of them twice, and one film that breaks off."""
    return make_corpus(tmp_path_factory.mktemp("corpus") / "films", 6, None, doubles=1, poison=1)


@pytest.fixture(scope="session")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The corpus in a library: one worker, one video after the other, nothing split."""
    place = tmp_path_factory.mktemp("whole") / "library"
    ingest(corpus, place, workers=1, bundle=1, cut_s=0.0)
    return Library.open(str(place))
