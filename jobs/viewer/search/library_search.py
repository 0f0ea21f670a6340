"""One library open for searching: its towers are loaded once, and each text is embedded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.annotations.sentences import Meaning
from index.embedding.embedders import ImageEmbedder, TextEmbedder
from index.embedding.space import Fingerprint
from index.library import Library
from jobs.open_library import load_image_tower
from jobs.viewer.search.groups import groups_view
from jobs.viewer.search.moments import find_moments, moments_like, stored_vector
from jobs.viewer.search.picture import read_picture
from jobs.viewer.search.request import SearchRequest
from jobs.viewer.search.text_towers import TextTowers

TEXTS_KEPT = 256
"""Texts whose vectors are kept: somebody who types and deletes comes back to most of them."""
VIDEOS_KEPT = 256
"""Videos whose frame times are kept, for lines and captions to be shown with the frame of their time."""


class LibrarySearch:
    """Searches of a library in one of its spaces, by words, by a frame or by a picture; for one thread.

    Each raises SpaceError where a tower is needed and cannot be had, QueryError or UnknownVideo.
    """

    def __init__(self, library: Library, space: Fingerprint, towers: TextTowers | None = None) -> None:
        self.library = library
        self.space = space
        self._towers = towers or TextTowers()
        self.embed_text = self._cached(lambda text: self.text_tower.embed_text([text])[0])
        self._meanings = lru_cache(TEXTS_KEPT)(lambda model, text: library.sentences.meaning(text))
        # by the whole row: a video that was ingested again has other frames
        self._frame_times = lru_cache(VIDEOS_KEPT)(lambda video: library.frame_times(video.video_id))

    @property
    def text_tower(self) -> TextEmbedder:
        """Embedder of texts; waits until it is loaded."""
        return self._towers.begin(self.library.uri, self.space).result()

    @cached_property
    def image_tower(self) -> ImageEmbedder:
        """Embedder of pictures, loaded once; the error where there is none says how to get it."""
        return load_image_tower(self.library, self.space.digest)

    def _meaning_of(self, text: str) -> Meaning | None:
        """The meaning of a text by the sentence model that the library has now, if it has one."""
        model = self.library.sentences.space()
        return None if model is None else self._meanings(model.digest, text)

    def search(self, request: SearchRequest) -> dict[str, Any]:
        """Groups of moments (see `groups_view`) for a text, or like a frame where `request.like` names one."""
        if request.like is None:
            moments = find_moments(self.library, request, self.embed_text, self.space, self._meaning_of)
            return groups_view(self.library, moments, request.text, "words", self._frame_times, _in_one(request))
        vector = stored_vector(self.library, *request.like, self.space)
        moments = moments_like(self.library, vector, request, self.space)
        return groups_view(self.library, moments, "", "frame", self._frame_times, _in_one(request))

    def search_picture(self, content: bytes, request: SearchRequest) -> dict[str, Any]:
        """Groups of moments whose frames look like a picture; raises UsageError for what is no picture."""
        tower, rgb = self.image_tower, read_picture(content)
        vector = tower.embed(tower.prepare(rgb)[None])[0]
        moments = moments_like(self.library, vector, request, self.space)
        return groups_view(self.library, moments, "", "picture", self._frame_times, _in_one(request))

    @staticmethod
    def _cached(embed: Callable[[str], NDArray[np.float32]]) -> Callable[[str], NDArray[np.float32]]:
        return lru_cache(TEXTS_KEPT)(embed)


def _in_one(request: SearchRequest) -> bool:
    return request.video_id is not None
