"""Open a library for an agent, and load the spaces that it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kinodex.index.errors import SpaceMismatch
from kinodex.index.library import Library, LibraryReader
from kinodex.index.rows import VideoRow
from kinodex.index.spaces.embedders import ImageEmbedder, TextEmbedder
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.jobs.detector import detect_with
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from kinodex.agent.videos.environment import Environment


def find_space(library: LibraryReader, name: str | None) -> Fingerprint:
    """Find one of the library's spaces by name or digest, None being its own; raises UsageError if there is none."""
    try:
        return library.space(name)
    except SpaceMismatch as error:
        raise UsageError(str(error)) from error


def load_text_tower(library: LibraryReader, name: str | None) -> TextEmbedder:
    """Load the text tower of one of the library's spaces by name or digest, None being its own.

    Raises UsageError if the library lacks the space, or as `LibraryReader.load_space` does.
    """
    find_space(library, name)
    return library.load_space(name, "text")


def load_image_tower(library: LibraryReader, name: str | None) -> ImageEmbedder:
    """Load the image tower of one of the library's spaces, as `load_text_tower` does."""
    find_space(library, name)
    return library.load_space(name, "image")


def find_filled_space(library: Library, name: str | None, videos: Sequence[VideoRow]) -> Fingerprint:
    """Find a space as `find_space` does; raise `SpaceMismatch` if some of these videos have no vectors in it yet."""
    space = find_space(library, name)
    if space.digest == library.fingerprint.digest:
        return space
    pending = {row.video_id for row in library.additions.pending("vectors", space.digest)}
    lacking = [row for row in videos if row.frames and row.video_id in pending]
    if lacking:
        raise SpaceMismatch(
            f"got space {space}, where {len(lacking)} of the {len(videos)} videos asked about, such as "
            f"{lacking[0].title}, have no vectors yet; run `kinodex add vectors`"
        )
    return space


def open_environment(
    place: Library | str, videos: Sequence[str] = (), detector: str | None = None, space: str | None = None
) -> Environment:
    """Open the named videos of a library, which may be open already, for an agent; no name means all videos.

    `space` is one of the library's spaces by name or digest, None being its own. `detector` is the hub id or folder of
    a model that looks into stored frames for things that the library's detections do not name.
    """
    from kinodex.agent.videos.environment import Environment

    library = Library.open(place) if isinstance(place, str) else place
    detect = None
    find_space(library, space)
    if detector is not None:
        detect = detect_with(library, detector)
    return Environment.open(library, *videos, detect=detect, space=space)
