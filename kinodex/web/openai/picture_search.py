"""Pictures of a request as searches: the moments of a library that they are most like.

A picture comes in the request itself, as a data: URL. An address is never fetched: it could name anything that this
machine reaches.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.index.rows import Hit
from kinodex.index.times import player_clock
from kinodex.jobs.errors import UsageError
from kinodex.jobs.pictures import decoded
from kinodex.requests import Find
from kinodex.search.finder import Finder
from kinodex.web.openai.errors import RequestRefused

PICTURES = 16
"""Pictures of a request that are searched for; of more, such as the frames of a kit, as many are taken evenly."""
MOST_PICTURES = 256
MOMENTS, VIDEOS, MIN_GAP_S = 5, 3, 10.0
"""Moments that the question names, the videos that it is then about, and seconds between moments of one video."""
DATA = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a video that a picture is like; `score` is the cosine."""

    video_id: str
    title: str
    time_s: float
    score: float


@dataclass(eq=False)
class PictureSearch:
    """Searches by picture in some libraries, opened when they are first searched, one search at a time."""

    uris: Sequence[str]
    space: str | None
    _finders: dict[int, Finder] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def moments(
        self, library: int, urls: Sequence[str], video_ids: Sequence[str], condition: str | None = None
    ) -> list[Moment]:
        """Return the moments of these videos (none: all) that pictures are most like.

        Raises RequestRefused or SpaceError.
        """
        if not urls:
            return []
        chosen = spread(urls)
        async with self._turn:
            return await asyncio.to_thread(self._search, library, chosen, tuple(video_ids), condition)

    def _search(
        self, number: int, urls: Sequence[str], video_ids: tuple[str, ...], condition: str | None
    ) -> list[Moment]:
        if number not in self._finders:
            self._finders[number] = Finder(Library.open(self.uris[number]), self.space)
        finder = self._finders[number]
        request = Find(in_="frames", videos=video_ids, where=condition, k=MOMENTS, min_gap_s=MIN_GAP_S)
        pictures = map(read_picture, urls)  # one at a time: decoded, each may take 180 MB
        hits = [hit for each in pictures for hit in finder.find(request, each)]
        best: list[Hit] = []  # apart from each other, of the few videos that have them
        for hit in sorted(hits, key=lambda hit: -hit.score):
            videos = {each.video_id for each in best}
            if hit.video_id not in videos and len(videos) == VIDEOS:
                continue
            if all(each.video_id != hit.video_id or abs(each.time_s - hit.time_s) >= MIN_GAP_S for each in best):
                best.append(hit)
        del best[MOMENTS:]
        return [Moment(hit.video_id, finder.library.video(hit.video_id).title, hit.time_s, hit.score) for hit in best]


def spread(urls: Sequence[str]) -> list[str]:
    """At most `PICTURES` of them, evenly; raises RequestRefused for more than are taken at all."""
    if len(urls) > MOST_PICTURES:
        raise RequestRefused(f"got {len(urls)} pictures; at most {MOST_PICTURES} are taken", "messages")
    if len(urls) <= PICTURES:
        return list(urls)
    return [urls[int(at)] for at in np.linspace(0, len(urls) - 1, PICTURES).round()]


def read_picture(url: str) -> NDArray[np.uint8]:
    """Decode a data: URL to RGB [height, width, 3]; raises RequestRefused for any other, and for what is no picture."""
    start = DATA.match(url)
    if start is None:
        raise RequestRefused(
            f"got a picture at {url[:60]!r}; addresses are not fetched, so send the picture itself, as "
            "data:image/jpeg;base64,...",
            "messages",
            "invalid_image_url",
        )
    try:
        return decoded(base64.b64decode(url[start.end() :], validate=True))
    except binascii.Error as error:
        raise RequestRefused(f"cannot read the picture: {error}; send base64", "messages", "invalid_image") from error
    except UsageError as error:
        raise RequestRefused(str(error), "messages", "invalid_image") from error


def in_words(moments: Sequence[Moment], pictures: int) -> str:
    """Return the sentence that a question gets.

    It says where pictures that came with the question are from, as far as a search can say.
    """
    named = "; ".join(f"{each.title!r} at {player_clock(each.time_s)}" for each in moments)
    what = "a picture; it is" if pictures == 1 else f"{pictures} pictures; they are"
    return f"With the question came {what} most like these moments: {named}."
