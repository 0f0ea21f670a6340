"""Searches by a picture: its vector, with that of the words beside it; or the reason why there can be none.

Of a search by both, the query is the mean of both unit vectors, normalised: the baseline "Image + Text" of composed
retrieval (Saito et al. 2023, "Pic2Word", arXiv 2302.03084, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import NoVectors, SpaceError
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import MomentQuery, SearchItem
from kinodex.jobs.open import load_image_tower
from kinodex.jobs.pictures import read_picture

READ_PICTURES = ("frames", "fused")
"""Contenders that search by a picture; the others read only words."""
EmbedPicture = Callable[[Path], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Pictures:
    """`embed` gives the vector of a picture to search by; None where nothing is searched by one.

    `alone` and `beside_words` say why searches by a picture, without words or with them, are left out; "" of others.
    """

    embed: EmbedPicture | None = None
    alone: str = ""
    beside_words: str = ""


def open_pictures(
    library: Library, space: str | None, systems: Sequence[str], samples: Sequence[SearchItem]
) -> Pictures:
    """Load the image tower of the space, by torch or as the library carries it, if there is a picture to search by.

    Contenders are compared on the same searches: those by a picture alone are left out if one reads only words.
    """
    blind = [name for name in systems if name not in READ_PICTURES]
    if not any(sample.image for sample in samples):
        return Pictures()
    able = " and ".join(f"--contender {name}" for name in READ_PICTURES)
    alone = f"a picture without text, which {', '.join(blind)} cannot search for; {able} can" if blind else ""
    if len(blind) == len(systems):
        return Pictures(alone=alone)
    try:
        tower = load_image_tower(library, space)
    except (SpaceError, NoVectors) as error:
        reason = f"skipped for its picture, which cannot be embedded: {error}"
        return Pictures(alone=reason, beside_words=reason)

    def embed(path: Path) -> NDArray[np.float32]:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}; put the picture there again") from error
        vector: NDArray[np.float32] = tower.embed(tower.prepare(read_picture(content))[None])[0]
        return vector

    return Pictures(embed, alone)


def query_vector(
    query: MomentQuery, embed_text: Callable[[str], NDArray[np.float32]], embed_picture: EmbedPicture | None
) -> NDArray[np.float32]:
    """Return the unit vector `[dim]` of a query's words, its picture, or both.

    Raises UsageError for an unreadable picture.
    """
    if query.image is None or embed_picture is None:
        return embed_text(query.text)
    picture = embed_picture(query.image)
    if not query.text:
        return picture
    both = picture + embed_text(query.text)
    vector: NDArray[np.float32] = (both / np.linalg.norm(both)).astype(np.float32)
    return vector
