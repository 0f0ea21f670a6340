"""Names of files: of a video's title and times, without what a file system or a shell would trip over."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kinodex.jobs.export.moments import Moment

MOST_CHARACTERS = 80


def file_stem(title: str) -> str:
    """Make a name of a title: letters, digits and a few signs of any language; "video" if nothing is left."""
    last = re.split(r"[/\\]", title)[-1]
    kept = re.sub(r"[^\w.\- ]+", "_", last).strip(" ._-")
    while len(kept.encode()) > MOST_CHARACTERS:
        kept = kept[:-1]
    return re.sub(r"\s+", "_", kept) or "video"


def time_stem(time_s: float) -> str:
    """Write a time so that names sort by it: 00h01m02.500s."""
    minutes, seconds = divmod(round(max(time_s, 0.0) * 1000), 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}h{minutes:02}m{seconds / 1000:06.3f}s"


def distinct(names: Iterable[str]) -> list[str]:
    """Number names that come again, whatever their case: film, film_2, film_3."""
    taken: set[str] = set()
    made = []
    for name in names:
        count, free = 1, name
        while free.casefold() in taken:
            count += 1
            free = f"{name}_{count}"
        taken.add(free.casefold())
        made.append(free)
    return made


def video_stems(moments: Iterable[Moment]) -> dict[str, str]:
    """Name the files of each video, by its id, by its title, each once."""
    titles = {each.video.video_id: each.video.title for each in moments}
    return dict(zip(titles, distinct(map(file_stem, titles.values())), strict=True))
