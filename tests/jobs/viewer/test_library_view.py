"""`kinodex view --space`: what the page searches in another space of the library than its own."""

from __future__ import annotations

import pytest

from index.library import Library
from index.rows import Scope
from jobs.annotate.run import add
from jobs.annotate.vectors import Vectors
from jobs.errors import UsageError
from jobs.viewer.api import ViewerApi
from jobs.viewer.inputs import classify_inputs
from jobs.viewer.library_view import SearchRequest
from tests.support.command import bad, runner
from tests.support.stage_models import library_in_two_spaces, library_of, tiny_film
from tests.support.tiny_models import TINY, write_model
from tests.support.viewer_library import chromium, library_of_titles, served

SEEN = "a walrus plays chess"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """`harbour`, with a caption, in two spaces."""
    return library_in_two_spaces(tmp_path_factory.mktemp("spaces"), SEEN)


def test_pictures_are_searched_in_that_space_and_captions_by_their_words(library: Library) -> None:
    own, other = library.spaces()
    inputs = classify_inputs([library.uri])
    for named, space in ((None, own), (other.name, other), (other.digest, other)):
        vector = library.load_space(space.name, "text").embed_text(["a boat"])[0]
        best = library.search_frames(vector, Scope(), 24, 2.0, space.digest)
        api = ViewerApi(inputs, named)
        found = api.search(0, SearchRequest("a boat", "frames"))
        assert [(each["start_s"], each["score"]) for each in found] == [
            (each.time_s, pytest.approx(each.score, abs=1e-3)) for each in best
        ]
        assert api.library(0)["searched"] == space.name
    for kind in ("captions", "together"):
        assert SEEN in [each["text"] for each in api.search(0, SearchRequest(SEEN, kind))]
    assert api.search(0, SearchRequest("zebra", "captions")) == []


def test_what_is_said_is_found_where_the_model_of_the_space_is_gone(tmp_path) -> None:
    library = library_of(tmp_path / "library", [tiny_film(tmp_path / "pier.mp4", 6, 2)])
    folder = write_model(tmp_path / "gone", TINY)
    assert add(library, Vectors(folder)).added == 1
    space = library.spaces()[1].digest
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    api = ViewerApi(classify_inputs([library.uri]), space)
    for kind in ("transcript", "detections"):
        assert api.search(0, SearchRequest("boat", kind)) == []
    with pytest.raises(Exception, match="gone"):
        api.search(0, SearchRequest("boat", "frames"))


def test_the_page_says_which_space_is_searched_if_it_is_not_the_librarys_own(library: Library) -> None:
    other = library.spaces()[1].name
    with served(library.uri, space=other) as there, served(library.uri) as here, chromium() as browser:
        page = browser.new_page()
        page.goto(f"{there}/#/library/0/search/text=a+boat&kind=frames")
        page.locator(".hit").first.wait_for()
        assert page.get_by_text("Pictures are searched in the space").inner_text().endswith(f"{other}.")
        page.goto(f"{here}/#/library/0")
        page.locator("form").wait_for()
        assert page.get_by_text("Pictures are searched in the space").count() == 0


def test_a_space_that_a_library_lacks_and_one_for_a_file_that_cannot_search_are_refused(
    library, tmp_path, monkeypatch, capsys
):
    kinodex = runner(monkeypatch, capsys)
    bad(kinodex, "view", library.uri, "--space", "ViT-B-32/openai", code=2, says="ViT-B-32/openai")
    out = tmp_path / "x.html"
    bad(kinodex, "view", library.uri, "--space", "builtin", "--out", out, code=2, says="leave one of them out")
    assert not out.exists()
    lacking = library_of_titles(tmp_path / "lacking", 1)
    with pytest.raises(UsageError, match="lacking"):
        ViewerApi(classify_inputs([library.uri, lacking.uri]), library.spaces()[1].name)
