"""Spaces of a library by name, and environments in them."""

from __future__ import annotations

import pytest

from kinodex.index.errors import SpaceMismatch
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.open import find_filled_space, find_space, load_text_tower, open_environment
from tests.support.models.stage_models import library_in_two_spaces, library_of, tiny_film


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """`harbour` in two spaces, `later` in the library's own alone."""
    folder = tmp_path_factory.mktemp("open")
    library_in_two_spaces(folder, "a walrus plays chess")
    return library_of(folder / "library", [tiny_film(folder / "later.mp4", 6, 1)])


def test_a_space_by_name_and_digest(library: Library) -> None:
    own, other = library.spaces()
    assert find_space(library, None) == own
    assert find_space(library, other.name) == find_space(library, other.digest) == other
    with pytest.raises(UsageError, match="nowhere"):
        find_space(library, "nowhere")


def test_a_tower_embeds_in_its_space(library: Library) -> None:
    (_, other) = library.spaces()
    assert load_text_tower(library, other.name).embed_text(["a boat"]).shape == (1, other.dim)
    with pytest.raises(UsageError, match="nowhere"):
        load_text_tower(library, "nowhere")


def test_videos_without_vectors_in_a_space_are_named(library: Library) -> None:
    own, other = library.spaces()
    assert find_filled_space(library, None, library.videos()) == own
    assert find_filled_space(library, other.name, [library.video("harbour")]) == other
    with pytest.raises(SpaceMismatch, match="1 of the 2 videos asked about, such as later, have no vectors yet"):
        find_filled_space(library, other.name, library.videos())
    with pytest.raises(UsageError, match="nowhere"):
        find_filled_space(library, "nowhere", library.videos())


def test_an_environment_of_all_videos_or_of_some(library: Library) -> None:
    assert {video.title for video in open_environment(library.uri).videos} == {"harbour", "later"}
    assert [video.title for video in open_environment(library.uri, ["later"]).videos] == ["later"]
    with pytest.raises(UsageError, match="nowhere"):
        open_environment(library.uri, space="nowhere")
