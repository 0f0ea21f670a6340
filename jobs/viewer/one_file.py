"""Everything that was given as one HTML file that can be sent to somebody, with the pictures that it shows."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from index.rows import StoredFrame
from jobs.errors import UsageError
from jobs.viewer.collection import Collection
from jobs.viewer.page import whole_page
from jobs.viewer.trace_view import Frame, shown_frames

SIDE_PX = 480
JPEG_QUALITY = 82
MOST_PICTURE_BYTES = 24_000_000


def one_file(collection: Collection) -> tuple[str, int]:
    """The page, and how many pictures were left out of it because it holds no more than `MOST_PICTURE_BYTES` of them.

    Raises UsageError for a library given alone, which is searched by its server.
    """
    keys = collection.trace_keys()
    if not keys:
        raise UsageError("got --out without any trace; a library is searched by a server: leave --out away")
    data: dict[str, Any] = {"home": collection.home | {"libraries": []}}
    wanted: dict[tuple[int, Frame], None] = {}
    for key in keys:
        told = collection.trace(key)
        data[f"traces/{key}"], data[f"traces/{key}/curves"] = told, collection.curves(key)
        if told["library"] is not None:
            wanted |= {(told["library"], frame): None for frame in shown_frames(told["trace"])}
    pictures = _pictures(collection, wanted)
    return whole_page(data, pictures), len(wanted) - len(pictures)


def _pictures(collection: Collection, wanted: Iterable[tuple[int, Frame]]) -> dict[str, bytes]:
    """JPEGs by the names that the page knows them by, as many as fit, in the order in which they were shown."""
    held: dict[str, bytes] = {}
    left = MOST_PICTURE_BYTES
    for number, frame in wanted:
        library = collection.given.libraries[number]
        jpeg = _small(library.frames(frame.video_id, [frame.frame_no])[0])
        left -= len(jpeg)
        if left < 0:
            break
        held[f"{number}/{frame.video_id}/{frame.frame_no}"] = jpeg
    return held


def _small(frame: StoredFrame) -> bytes:
    """The frame's own JPEG, encoded anew only if it is too large."""
    from jobs.stored_pictures import picture_of

    if max(frame.width_px, frame.height_px) <= SIDE_PX:
        return frame.jpeg
    picture, smaller = picture_of(frame), io.BytesIO()
    picture.thumbnail((SIDE_PX, SIDE_PX))
    picture.save(smaller, "JPEG", quality=JPEG_QUALITY)
    return smaller.getvalue()
