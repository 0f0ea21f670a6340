"""Places where a search looks, by name; those that do not fit a query are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinodex.index.kinds import ALL, PLACES
from kinodex.jobs.errors import UsageError
from kinodex.search.pictures import Picture, is_vector

if TYPE_CHECKING:
    from kinodex.agent.videos.library_videos import AnchorsFrom
    from kinodex.index.library import LibraryReader
    from kinodex.requests import Find

FOR_PICTURES = (ALL, "frames", "clips")
"""Places where a picture can be looked for."""


def checked_place(request: Find, picture: Picture | None = None, library: LibraryReader | None = None) -> str:
    """Return where a request looks; raises UsageError for a query that makes no sense there."""
    place = known_place(request.in_, library)
    if picture is None:
        if not request.query.strip():
            raise UsageError("got an empty query; give some words to look for, or a picture")
        return place
    if place not in FOR_PICTURES:
        raise UsageError(f"got a picture to look for in {place}; they are looked for in {', '.join(FOR_PICTURES)}")
    if place == "clips" and is_vector(picture):
        raise UsageError("got a vector to look for in clips, which another model made; give a picture, or words")
    return place if place == "clips" or request.query.strip() else "frames"


def known_place(name: str, library: LibraryReader | None = None) -> str:
    """Return a place to look in, or an extract of the library, by its name; raises UsageError for any other."""
    if name in PLACES:
        return name
    extracts = [] if library is None else library.extracts.versions()
    if not any(name in (each.name, each.key) for each in extracts):
        places = (*PLACES, *dict.fromkeys(each.name for each in extracts))
        raise UsageError(f"got {name!r} for where to look; it is one of {', '.join(places)}")
    return name


def ground_place(name: str) -> AnchorsFrom:
    """Return a place where grounding can look; raises UsageError for any other."""
    match name:
        case "all" | "frames" | "words":
            return name
    raise UsageError(f"got {name!r} for where to look; it is one of all, frames, words")
