"""The finder: vectors of texts, pictures and both, places, and refusals."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kinodex.errors import KinodexError
from kinodex.index.errors import SpaceMismatch
from kinodex.index.kinds import PLACES
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.open import find_filled_space, find_space, load_text_tower, open_environment
from kinodex.requests import Find
from kinodex.search.finder import Finder
from kinodex.search.pictures import Picture, unit_vector, upright_pixels
from kinodex.search.places import ground_place, known_place
from kinodex.search.vectors import Floats, QueryVectors, plain_query
from kinodex.web.openai.picture_search import read_picture
from tests.support.libraries.random_library import SETTINGS, empty_library

ORIENTATION = 0x0112


@pytest.fixture(scope="module")
def finder(library: Path) -> Finder:
    return Finder(Library.open(str(library)))


def test_texts_pictures_and_both_are_unit_vectors_of_one_space(finder: Finder) -> None:
    picture = Image.new("RGB", (64, 36), (200, 30, 30))
    text, seen = finder.embed("a red boat"), finder.embed(picture=picture)
    both = finder.embed("a red boat", picture)
    for vector in (text, seen, both):
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-4)
    np.testing.assert_allclose(seen, finder.embed(picture=np.asarray(picture)), atol=1e-5)
    np.testing.assert_allclose(both, (text + seen) / np.linalg.norm(text + seen), atol=1e-5)
    assert unit_vector(np.array([3.0, 4.0])).tolist() == pytest.approx([0.6, 0.8])


def test_a_query_is_embedded_once_however_it_is_written(library: Path, finder: Finder) -> None:
    vector = finder.embed("a black bird at sea")
    asked, meant = list[str](), list[str]()

    def embed(text: str) -> Floats:
        asked.append(text)
        return vector

    vectors = QueryVectors(most=8)
    first, second = (
        Finder(Library.open(str(library)), vectors=vectors, embed_text=embed, meaning_of=meant.append) for _ in range(2)
    )
    hits = first.find(Find(query=" a  purple bird", k=3))
    assert hits == finder.find(Find(query="a black bird at sea", k=3)) and hits[0].part("frames")
    assert second.find(Find(query="a purple bird ", k=3)) == hits
    assert (asked, meant) == (["a purple bird"], [" a  purple bird", "a purple bird "])
    assert plain_query(" a cafe\u0301") == "a caf\u00e9"  # also where its accent is a mark of its own
    kept = first.embed("a purple bird")
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 0.0
    picture = np.random.default_rng(5).integers(0, 256, (36, 64, 3), np.uint8)
    assert first.embed(picture=picture) is second.embed(picture=picture)
    assert first.embed(picture=picture.reshape(64, 36, 3)) is not first.embed(picture=picture)
    others = first.embed_texts(["a purple bird", "a red kite", "a  red kite"])
    np.testing.assert_array_equal(others[1], others[2])
    np.testing.assert_array_equal(others[0], vector)
    for number in range(8):
        first.embed(f"word {number}")
    assert vectors.get(finder.library.fingerprint.digest, "a purple bird") is None


def test_a_vector_of_words_serves_the_library_whose_tower_made_it(library: Path, tmp_path: Path) -> None:
    """Two libraries may say that they are of one space: one of them may lie."""
    space = replace(Library.open(str(library)).fingerprint, weights_sha256="1" * 64)
    honest, other = (empty_library(tmp_path / each, SETTINGS, space) for each in ("honest", "other"))
    by_other = Finder(other, embed_text=lambda text: np.full(space.dim, -1, np.float32)).embed("a red kite")
    by_own = Finder(honest, embed_text=lambda text: np.full(space.dim, 1, np.float32)).embed("a red kite")
    assert (by_other[0], by_own[0]) == (-1, 1)


def test_a_photograph_is_turned_as_its_camera_was_held(tmp_path: Path) -> None:
    turned = Image.fromarray(np.random.default_rng(3).integers(0, 256, (32, 64, 3), np.uint8))
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    path = tmp_path / "photograph.png"
    turned.save(path, exif=exif)
    upright = np.asarray(turned.transpose(Image.Transpose.ROTATE_270))
    url = f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
    with Image.open(path) as photograph:
        for pixels in (*map(upright_pixels, (path, path.read_bytes(), photograph, upright)), read_picture(url)):
            assert (pixels == upright).all()


def test_places_are_known_by_one_name() -> None:
    assert [known_place(name) for name in PLACES] == [*PLACES]
    assert [ground_place(name) for name in ("all", "frames", "words")] == ["all", "frames", "words"]
    for name in ("screen-text", "pictures", "transcript", "text"):
        with pytest.raises(UsageError, match="it is one of all, frames, clips, speech, screen_text"):
            known_place(name)


def test_a_query_that_makes_no_sense_is_refused(finder: Finder) -> None:
    cases: tuple[tuple[Find, Picture | None, str], ...] = (
        (Find(query="  "), None, "got an empty query"),
        (Find(query="a bird", in_="sounds"), None, "it is one of all, frames, clips, speech, screen_text"),
        (Find(query="a bird", like="film-01"), None, "give a video and seconds, such as film-01@12.5"),
        (Find(query="a bird", like="film-01@3"), b"GIF", "give one of them"),
        (Find(), np.zeros(4), "a vector of length 0"),
        (Find(), np.full(4, np.nan), "NaN or infinity"),
        (Find(), np.zeros((4, 4), np.uint8), r"got an array of uint8 \[4, 4\]"),
        (Find(), np.zeros((4, 4, 3)), r"got an array of float64 \[4, 4, 3\]"),
        (Find(in_="speech"), np.zeros((4, 4, 3), np.uint8), "are looked for in all, frames, clips"),
        (Find(query="a bird", in_="captions"), np.zeros(4), "are looked for in all, frames, clips"),
        (Find(), b"GIF89a, or so it says", "cannot read the picture"),
        (Find(), Path("none.png"), "cannot read the picture none.png"),
    )
    for request, picture, says in cases:
        with pytest.raises(UsageError, match=says):
            finder.find(request, picture)


def test_frames_like_one_leave_that_one_out(finder: Finder) -> None:
    hits = finder.find(Find(like="film-01@14.0", k=5))
    assert len(hits) == 5 and {hit.found_in for hit in hits} == {"frames"}
    assert all(hit.title != "film-01" or abs(hit.time_s - 14.0) >= 2.0 for hit in hits)


def test_what_was_never_added_is_named(finder: Finder) -> None:
    missing = [place for place in PLACES if finder.missing(place) == place]
    assert missing == ["clips", "screen_text", "captions", "chapters", "detections"]


def test_a_space_is_known_by_name_and_digest_and_has_to_be_filled(described: Path) -> None:
    library = Library.open(str(described))
    own, other = library.spaces()
    assert find_space(library, None) == own == find_filled_space(library, None, library.videos())
    assert find_space(library, other.name) == find_space(library, other.digest) == other
    assert load_text_tower(library, other.name).embed_text(["a boat"]).shape == (1, other.dim)
    assert find_filled_space(library, other.name, [library.video("film-02")]) == other
    with pytest.raises(SpaceMismatch, match="2 of the 3 videos asked about, such as film-01, have no vectors yet"):
        find_filled_space(library, other.name, library.videos())
    assert [video.title for video in open_environment(library.uri, ["film-03"]).videos] == ["film-03"]
    for refused in (
        lambda: find_space(library, "nowhere"),
        lambda: load_text_tower(library, "nowhere"),
        lambda: find_filled_space(library, "nowhere", library.videos()),
        lambda: open_environment(library.uri, space="nowhere"),
        lambda: open_environment(library.uri, ["nowhere"]),
    ):
        with pytest.raises(KinodexError, match="nowhere"):
            refused()
