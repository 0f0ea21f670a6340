"""Complete videos are looked up by id, by name and in a space, and again whenever the tables change."""

from __future__ import annotations

import pytest

from kinodex.index.errors import LibraryError, QueryError, SpaceMismatch, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.videos.visibility import MANY, VisibilityCache, space_scope
from tests.support.libraries.random_library import detection, made, other_space, vectors_of, write


def test_a_reader_sees_what_another_handle_completes(library):
    reader = Library.open(library.uri)
    assert reader.videos() == []
    write(library, made("aaaa", 4, seed=1))
    assert reader.has_video("aaaa")
    library.writer.discard("aaaa")
    assert not reader.has_video("aaaa")


def test_only_what_is_asked_for_is_read(library: Library) -> None:
    for video_id in ("aaaa", "bbbb"):
        write(library, made(video_id, 2, seed=1))
    visible = VisibilityCache(library.tables)
    assert visible.videos(["aaaa", "nothing"]).keys() == {"aaaa"}
    assert visible.videos(["bbbb"]).keys() == {"bbbb"}
    assert visible.videos().keys() == {"aaaa", "bbbb"}
    assert visible.videos([f"{number}" for number in range(MANY + 1)]) == {}


def test_models_of_a_stage_are_those_that_completed_it(library: Library) -> None:
    write(library, made("aaaa", 2, seed=1))
    visible = VisibilityCache(library.tables)
    library.additions.add_detections({"aaaa": [detection(0, "kite", 0.5)]}, "first")
    assert visible.models("detections", ["aaaa"]) == {}
    library.additions.complete("detections", "first", {"aaaa": 1}, {})
    library.additions.complete("detections", "second", {"aaaa": 0}, {})
    assert visible.models("detections", ["aaaa"]) == {"aaaa": ("first", "second")}
    with pytest.raises(LibraryError, match=r"got stage 'smells'; it is one of captions, .*, sentences"):
        visible.models("smells", ["aaaa"])


def test_a_video_by_any_of_its_names(library):
    for video_id, title in (("abcd1111", "cake"), ("abcd2222", "boat"), ("ef001111", "boat")):
        write(library, made(video_id, 2, seed=1), title)
    assert library.video("abcd1111").title == "cake"
    assert library.video("ef00").video_id == "ef001111"
    assert library.video("cake.mp4").video_id == library.video("/films/cake.mp4").video_id == "abcd1111"
    with pytest.raises(UnknownVideo, match=r"'abcd', which is a name of 2 videos: .*abcd1111.*abcd2222"):
        library.video("abcd")
    with pytest.raises(UnknownVideo, match=r"boat.*abcd2222.*ef001111"):
        library.video("boat")
    with pytest.raises(UnknownVideo, match="none of the 3 here, such as cake"):
        library.video("cakes")
    with pytest.raises(UnknownVideo, match="'ef0'"):
        library.video("ef0")
    assert library.video("CAK").title == "cake", "the one title that holds it, in any case"
    with pytest.raises(UnknownVideo, match=r"'oat', which is in the titles of 2 videos: boat.*; give an id"):
        library.video("oat")
    with pytest.raises(UnknownVideo, match=r"'ak', which is none"):
        library.video("ak")
    with pytest.raises(UnknownVideo, match=r"'cak', which is none of the 3 here"):
        library.videos_named(["cak"], whole_name=True)
    with pytest.raises(UnknownVideo, match="' OR '1'='1"):
        library.vectors("' OR '1'='1")
    with pytest.raises(QueryError, match="udcff', which is not UTF-8"):
        Library.open(library.uri).video("\udcff")


def test_videos_by_globs(library):
    for video_id, title in (("abcd1111", "cake"), ("abcd2222", "boat"), ("ef001111", "boat")):
        write(library, made(video_id, 2, seed=1), title)

    def ids(*names):
        return [row.video_id for row in library.videos_named(names)]

    assert ids("b*") == ["abcd2222", "ef001111"]
    assert ids("films/*.mp4") == ids("/films/*") == ["abcd2222", "ef001111", "abcd1111"]
    assert ids("ef001111", "b?at", "cake") == ["ef001111", "abcd2222", "abcd1111"]
    with pytest.raises(UnknownVideo, match=r"'x\*', which is none of the 3 here"):
        ids("cake", "x*")
    write(library, made("ef002222", 2, seed=1), "c[abc]ke")
    assert ids("c[abc]ke") == ["ef002222"], "not the one that it would match as a glob"


def test_videos_with_vectors_in_the_space(library: Library) -> None:
    other = other_space()
    for video_id in ("aaaa", "bbbb"):
        write(library, made(video_id, 4, seed=1))
    library.additions.add_space(other)
    library.additions.add_vectors({"aaaa": vectors_of(4, 1)}, other)
    assert library.additions.complete("vectors", other.digest, {"aaaa": 4}, {}) == ()
    own = space_scope(library.tables, library.visible, library.fingerprint, None)
    there = space_scope(library.tables, library.visible, library.fingerprint, other.name)
    ids = ("aaaa", "bbbb", "nothing")
    assert own.videos(ids).keys() == {"aaaa", "bbbb"}
    assert there.videos(ids).keys() == {"aaaa"}
    own.check(ids)
    there.check(("aaaa",))
    with pytest.raises(SpaceMismatch, match="film bbbb has no vectors yet; run `kinodex add vectors`"):
        there.check(ids)


def test_the_own_space_by_name_is_the_own_space(library: Library) -> None:
    named = space_scope(library.tables, library.visible, library.fingerprint, library.fingerprint.digest)
    assert named.other is None
    with pytest.raises(SpaceMismatch, match=r"got space nothing, and .* holds local-dir:/models/tiny"):
        space_scope(library.tables, library.visible, library.fingerprint, "nothing")


@pytest.mark.parametrize("typed", ["Besançon été", "Besanc\u0327on e\u0301te\u0301", "Besanc\u0327", "Besanç*"])
def test_a_name_is_the_same_in_both_forms_of_its_accents(library, typed):
    """MacOS writes accents as marks of their own."""
    write(library, made("abcd1111", 2, seed=1), "Besanc\u0327on e\u0301te\u0301")
    assert [row.video_id for row in library.videos_named([typed])] == ["abcd1111"]
