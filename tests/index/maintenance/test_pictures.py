"""A picture whose bytes were overwritten on the disk is found, and its video is made again on request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.index.maintain import health, maintain
from kinodex.index.store.schema import CHECKSUM, FRAMES
from kinodex.index.sweep import JPEG_END, JPEG_START, audit, damaged_pictures
from tests.support.libraries.random_library import made

PICTURE_BYTES = 2_000


def fill(library: Library) -> dict[str, list[bytes]]:
    """Write two videos of three pictures each."""
    random, pictures = np.random.default_rng(0), {}
    for video_id in ("aaaa", "bbbb"):
        video = made(video_id, 3, seed=1)
        pictures[video_id] = [JPEG_START + random.bytes(PICTURE_BYTES) + JPEG_END for _ in range(3)]
        rows = [replace(row, jpeg=jpeg) for row, jpeg in zip(video.frame_rows(), pictures[video_id], strict=True)]
        library.writer.add_frames({video_id: rows})
        library.writer.complete([video.video_row()])
    return pictures


def overwrite(library: Library, picture: bytes, first: int, put: bytes) -> None:
    """Overwrite bytes of a stored picture in the file that holds it."""
    for path in (Path(library.uri) / "frames.lance" / "data").iterdir():
        content = path.read_bytes()
        at = content.find(picture)
        if at >= 0:
            path.write_bytes(content[: at + first] + put + content[at + first + len(put) :])
            return
    raise AssertionError("no file holds the picture as it is")


@pytest.fixture
def without_checksums(library: Library) -> Library:
    """A library as it was made before there were checksums."""
    library.tables.drop("frames")
    library.tables.create("frames", FRAMES.remove(FRAMES.get_field_index(CHECKSUM)))
    return library


def test_sound_pictures_are_no_problem(library: Library) -> None:
    fill(library)
    assert damaged_pictures(library) == ()


def test_zeros_within_a_picture_are_found_by_a_deep_audit_alone(library: Library) -> None:
    pictures = fill(library)
    overwrite(library, pictures["bbbb"][1], 700, bytes(16))
    found = Library.open(library.uri)
    assert damaged_pictures(found) == ("bbbb",)
    assert audit(found).problems == ()
    assert health(found, deep=True).problems == ("video bbbb has pictures that are not as they were written",)


def test_videos_with_damaged_pictures_go_on_request(library: Library) -> None:
    pictures = fill(library)
    overwrite(library, pictures["aaaa"][2], 0, b"\0")
    found = Library.open(library.uri)
    kept = maintain(found, deep=True)
    assert (kept.removed.damaged, len(kept.after.problems)) == ((), 1)
    gone = maintain(found, discard_broken=True, deep=True)
    assert (gone.removed.damaged, gone.after.problems) == (("aaaa",), ())
    assert found.video_ids() == {"bbbb"}


def test_an_older_library_has_its_pictures_begin_and_end_as_such(without_checksums: Library) -> None:
    pictures = fill(without_checksums)
    assert damaged_pictures(without_checksums) == ()
    overwrite(without_checksums, pictures["bbbb"][0], PICTURE_BYTES + 2, bytes(2))
    assert damaged_pictures(Library.open(without_checksums.uri)) == ("bbbb",)
