"""Hits, answers and libraries as a notebook shows them: pictures, times and links that play."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kinodex.index.metadata import plain
from kinodex.index.rows import Hit, VideoRow
from kinodex.index.store.schema import COMMON_COLUMNS
from kinodex.index.times import clock
from kinodex.redaction import redact_uri

if TYPE_CHECKING:
    import pyarrow as pa

    from kinodex.agent.answer import Answer
    from kinodex.index.library import LibraryReader

PICTURE_PX = 240
"""The longer side of a picture: ten hits make about 100 kB of a notebook's file."""
SHOWN = 24
"""Hits, ranges or videos that are shown with a picture; a line says how many more there are."""


class Hits(list[Hit]):
    """The hits of a search, best first: a list that a notebook shows with pictures.

    Its `notes` say what was not searched or not compared, and why.
    """

    def __init__(self, library: LibraryReader, hits: Iterable[Hit], notes: Iterable[str] = ()) -> None:
        super().__init__(hits)
        self.library = library
        self.notes = tuple(notes)

    def _repr_html_(self) -> str:
        cards = [_card(self.library, hit.video_id, hit.time_s, hit.end_s, _found(hit)) for hit in self[:SHOWN]]
        said = "; ".join(self.notes or ([] if self else ["no hits"]))
        return str(_page().cards(cards, len(self) - SHOWN, said))


class Extracted:
    """The rows of an extract, with all that an Arrow table does, which a notebook shows with pictures."""

    def __init__(self, library: LibraryReader, table: pa.Table) -> None:
        self.library, self.table = library, table

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("library", "table"):
            raise AttributeError(name)
        return getattr(self.table, name)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, key: Any) -> Any:
        return self.table[key]

    def __repr__(self) -> str:
        return repr(self.table)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        rows = self.table.slice(0, SHOWN).to_pylist()
        cards = [_card(self.library, row["video_id"], *evidence_s(row), values_in_words(row)) for row in rows]
        return str(_page().cards(cards, len(self) - SHOWN, "" if rows else "no rows"))


def evidence_s(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the time of a row's evidence, of a row without any that of its part."""
    if row["evidence_start_s"] is None:
        return row["start_s"], row["end_s"]
    return row["evidence_start_s"], row["evidence_end_s"]


def values_in_words(row: Mapping[str, Any]) -> str:
    """Return the columns of a schema's own in one line."""
    if row["fault"]:
        return f"no row: {row['fault']}"
    own = {name: value for name, value in row.items() if name not in COMMON_COLUMNS and value is not None}
    return ", ".join(f"{name} {plain(value)}" for name, value in own.items())


def answer_html(answer: Answer, library: LibraryReader) -> str:
    """Return an answer, its cost, and a picture of each range of its evidence."""
    cards = [_card(library, each.video_id, each.start_s, each.end_s) for each in answer.evidence[:SHOWN]]
    said = answer.text or answer.status.replace("_", " ")
    head = f"{answer.letter}. {said}" if answer.letter else said
    return str(_page().answer(head, answer.reason, _cost(answer), cards, len(answer.evidence) - SHOWN))


def library_html(library: LibraryReader) -> str:
    """Return a library in numbers, and its first videos with a picture each."""
    facts, videos = library.info(), library.videos()
    cards = [
        Card(
            _picture(library, video, video.start_s + video.duration_s / 10),
            video.title,
            clock(video.duration_s),
            "",
            play_link(video, video.start_s),
        )
        for video in videos[:SHOWN]
    ]
    numbers = f"{facts.videos} videos, {clock(facts.hours * 3600)}, {facts.frames:,} frames; space {facts.space}"
    return str(_page().library(redact_uri(library.uri), numbers, cards, len(videos) - SHOWN))


def _found(hit: Hit) -> str:
    place = hit.found_in
    return f"{place}: {hit.speaker}: {hit.text}" if hit.speaker else f"{place}: {hit.text}" if hit.text else place


def _cost(answer: Answer) -> str:
    ledger = answer.ledger
    money = f", ${ledger.cost:.4f}" if ledger.cost else ""
    return f"{ledger.frames} frames, {ledger.calls} calls, {ledger.input_tokens + ledger.output_tokens:,} tokens{money}"


@dataclass(frozen=True, slots=True)
class Card:
    """A moment as it is shown. `picture` is a JPEG in base64, empty for a video without pictures.

    `link` plays it from its beginning; empty where a browser cannot open the video.
    """

    picture: str
    title: str
    at: str
    words: str
    link: str


def _card(library: LibraryReader, video_id: str, start_s: float, end_s: float, words: str = "") -> Card:
    video = library.video(video_id)
    at = f"{clock(start_s)} to {clock(end_s)}"
    return Card(_picture(library, video, start_s), video.title, at, words, play_link(video, start_s))


def _picture(library: LibraryReader, video: VideoRow, time_s: float) -> str:
    from kinodex.jobs.library import picture_of

    if not video.frames:
        return ""
    (frame,) = library.frames_at(video.video_id, [time_s], mode="nearest")
    picture = picture_of(frame)
    picture.thumbnail((PICTURE_PX, PICTURE_PX))
    held = io.BytesIO()
    picture.save(held, "JPEG", quality=80)
    return base64.b64encode(held.getvalue()).decode()


def play_link(video: VideoRow, start_s: float) -> str:
    """Return the address of a video from `start_s` on, as browsers take it (#t=, W3C Media Fragments).

    It is "" for a video in an object store.

    A file below the folder in which the notebook runs is named from there, so that Jupyter serves it.
    """
    at = f"#t={start_s - min(video.start_s, 0.0):g}"
    if video.uri.startswith(("http://", "https://")):
        return redact_uri(video.uri) + at
    if "://" in video.uri:
        return ""
    path = Path(video.uri)
    if path.is_relative_to(Path.cwd()):
        return quote(str(path.relative_to(Path.cwd()))) + at
    return path.as_uri() + at if path.is_absolute() else quote(str(path)) + at


@cache
def _page() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("kinodex", "templates")
    return Environment(loader=loader, undefined=StrictUndefined, autoescape=True).get_template("notebook.jinja").module
