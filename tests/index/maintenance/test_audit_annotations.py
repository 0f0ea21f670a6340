"""Rows without a complete addition are leftovers, additions without their rows are broken."""

from __future__ import annotations

from kinodex.index.library import Library
from kinodex.index.store.schema import equal
from kinodex.index.sweep import AddedAudit, AddedRows, audit_added, discard_added
from tests.support.libraries.random_library import caption, detection, made, other_space, vectors_of, write


def test_leftovers_and_lost_rows(library: Library) -> None:
    other = other_space()
    for video_id in ("aaaa", "bbbb"):
        write(library, made(video_id, 4, seed=1, lines=((0.0, 1.0, "subtitles have no model"),)))
    library.additions.add_captions({"aaaa": [caption(0, "a"), caption(1, "b")], "bbbb": [caption(0, "c")]}, "m")
    library.additions.complete("captions", "m", {"aaaa": 2}, {})
    library.additions.add_detections({"aaaa": [detection(0, "kite", 0.5)]}, "m")
    library.additions.complete("detections", "m", {"aaaa": 1}, {})
    library.additions.add_space(other)
    library.additions.add_vectors({"bbbb": vectors_of(4, 1)}, other)
    library.tables.delete("detections", equal("video_id", "aaaa"))
    found = audit_added(library)
    assert found == AddedAudit(
        leftovers=(AddedRows("captions", "m", ("bbbb",)), AddedRows("vectors", other.digest, ("bbbb",))),
        broken=(AddedRows("detections", "m", ("aaaa",)),),
    )
    assert audit_added(library, ["speech"]) == AddedAudit()
    discard_added(library, (*found.leftovers, *found.broken))
    assert audit_added(library) == AddedAudit()
    assert len(library.captions("aaaa")) == 2
