"""Pages of videos, and searches in the space that was chosen."""

from __future__ import annotations

import pytest

from kinodex.index.rows import Scope
from kinodex.jobs.add.run import add
from kinodex.jobs.add.vectors import Vectors
from kinodex.web.inputs import ViewerApi, classify_inputs
from kinodex.web.search import SearchRequest
from tests.support.libraries.viewer_library import SEEN, hits_of
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.models.tiny_models import TINY, write_model


def test_pictures_are_searched_in_that_space_and_captions_by_their_words(two_spaces) -> None:
    own, other = two_spaces.spaces()
    inputs = classify_inputs([two_spaces.uri])
    for named, space in ((None, own), (other.name, other), (other.digest, other)):
        vector = two_spaces.load_space(space.name, "text").embed_text(["a boat"])[0]
        best = two_spaces.search.frames(vector, Scope(), 24, 2.0, space.digest)
        api = ViewerApi(inputs, named)
        found = hits_of(api.search(0, SearchRequest("a boat", "frames", most=24)))
        assert [(each["start_s"], each["score"]) for each in found] == [
            (each.time_s, pytest.approx(each.score, abs=1e-3)) for each in best
        ]
        assert api.library(0)["searched"] == space.name
    for kind in ("captions", "together"):
        assert SEEN in [each["text"] for each in hits_of(api.search(0, SearchRequest(SEEN, kind)))]
    assert api.search(0, SearchRequest("zebra", "captions")) == {"count": 0, "groups": []}


def test_what_is_said_is_found_where_the_model_of_the_space_is_gone(tmp_path) -> None:
    library = library_of(tmp_path / "library", [tiny_film(tmp_path / "pier.mp4", 6, 2)])
    folder = write_model(tmp_path / "gone", TINY)
    assert add(library, Vectors(folder, text_tower=False)).added == 1
    space = library.spaces()[1].digest
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    api = ViewerApi(classify_inputs([library.uri]), space)
    for kind in ("transcript", "detections"):
        assert api.search(0, SearchRequest("boat", kind))["groups"] == []
    with pytest.raises(Exception, match="gone"):
        api.search(0, SearchRequest("boat", "frames"))
