"""Rows of a table from each part of a video, by a model under a schema: `kinodex extract`.

stage = extraction("goals", schema, part="scene", asks="gpt-4o", base_url="https://api.openai.com/v1")
add(library, stage)
library.extracts.rows("goals")
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import pyarrow as pa

from kinodex.agent.errors import BadSettings
from kinodex.agent.prompts import FOLDER
from kinodex.agent.protocol import Model, Note, Request, Segment
from kinodex.agent.replies import NAMED, Schema
from kinodex.agent.requests.extract import EVIDENCE, ExtractRows, RowSchema, read_schema, rows_of_reply, texts_in
from kinodex.index.extracts import NAME, ExtractVersion, made_now
from kinodex.index.kinds import PLACES
from kinodex.index.library import Library, LibraryReader
from kinodex.index.named_files import read_bytes
from kinodex.index.nesting import parse_json
from kinodex.index.rows import Scope, VideoRow
from kinodex.index.store.schema import COMMON_COLUMNS
from kinodex.jobs.add.captions import EMBEDDING, text_tower
from kinodex.jobs.add.chapters import read_film, thinned
from kinodex.jobs.add.endpoint import EndpointAddition, Outcome, Round, Rounds, ask_again, reasons
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.errors import UsageError
from kinodex.jobs.library import notes_between, shown_between
from kinodex.jobs.models import LOCAL, run_now

Each = Literal["video", "chapter", "scene", "shot"]
EACH = get_args(Each)
WINDOW = re.compile(r"window:(\d+(?:\.\d+)?)")
SEARCH = "search"
AROUND_S = 2.0
"""Seconds before and after a moment that a search found; those that then overlap are one part."""
FRAMES_A_PART, LINES_A_PART = 8, 60
ARROW = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
TAKEN = (
    *("videos", "segments", "lines", "additions", "failures"),
    *PLACES,
)
"""Names of tables of `kinodex sql`, and of places of `kinodex search --in`."""


NOTHING_KNOWN: Outcome[Any] = Outcome(None)
"""Of a part that no frame and no line is known of."""


class Part(NamedTuple):
    """The part `[start_s, end_s)` of a video."""

    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Extraction(EndpointAddition):
    """Settings of an extract. `model` is the key of its version, `asks` the name of the model that fills it in.

    That is one of `base_url`, or without one a language model in this process ("constrained:FOLDER"), which sees no
    frames.
    """

    name: str = "extracts"
    asks: str = ""
    schema: str = ""
    """As `RowSchema.as_json` writes it."""
    part: str = "scene"
    """The unit of a row: one of `EACH`, "window:SECONDS", or "search"."""
    search: str = ""
    hits: int = 5
    """Of a video that are looked at, where moments are found by `search`."""
    frames_a_part: int = FRAMES_A_PART
    lines_a_part: int = LINES_A_PART
    again: bool = False
    """Ask again about the parts of which no reply could be used."""
    question: str = ""
    plan: str = ""
    """The question to the whole collection that the table was made for, and its plan as JSON; rows do not depend on
    them."""

    @property
    def served(self) -> str:
        return self.asks

    @property
    def rows_schema(self) -> RowSchema:
        return _read_schema(self.schema)

    def prepare(self, library: Library) -> None:
        if self.base_url is None:
            local_model(self.asks)
        else:
            self.check_key()
        if self.search:
            text_tower(library)
        name, _, digest = self.model.partition("@")
        version = ExtractVersion(name, digest, made_now(), json.loads(json.dumps(dict(self.settings))))
        library.extracts.make(version, arrow_columns(self.rows_schema))

    def parts_of(self, video: VideoRow) -> int:
        if self.part in ("video", SEARCH):
            return 1
        window = WINDOW.fullmatch(self.part)
        return video.segments if window is None else int(video.duration_s / float(window[1])) + 1

    def rounds(self, library: Library, video: VideoRow) -> Rounds:
        """Ask about each part of which something is known, or `again` about those without a reply before."""
        id_, parts, notes = video.video_id, self._parts(library, video), _notes(library, video)
        is_there = self.again and self.model in library.visible.models(self.name, [id_]).get(id_, ())
        before = library.extracts.held(self.model, id_) if is_there else []
        faulty = {row["part_no"] for row in before if row["fault"]}
        chosen = [at for at in range(len(parts)) if not is_there or at in faulty]
        known = [at for at in chosen if self._sees(video) or _lines(notes, parts[at], 1)]
        shown_s: dict[int, list[Part]] = {}  # the times alone: requests hold pictures

        def make(places: Sequence[int]) -> list[ExtractRows]:
            made = self._requests(library, video, {known[at]: parts[known[at]] for at in places}, notes)
            shown_s.update((request.part.number, citable_s(request, video)) for request in made)
            return made

        outcomes = yield Round(len(known), make)
        of_part = dict(zip(known, outcomes, strict=True))
        rows = [
            row for at in chosen for row in self._rows(at, parts[at], shown_s.get(at), of_part.get(at, NOTHING_KNOWN))
        ]
        held = [row for row in before if not row["fault"]]
        missing = len(chosen) - sum(each.reply is not None for each in outcomes)
        unknown = len(chosen) - len(known)
        lacks = f"; no frame and no line is known of {unknown}" if unknown else ""
        problem = f"{missing} of {len(parts)} parts got no reply that could be used{lacks}{reasons(outcomes)}"
        faults = sum(row["fault"] is not None for row in rows)
        return AddedRows([*held, *rows], len(held) + len(rows), problem if missing else None, faults=faults)

    def replies_here(self, requests: Sequence[Request[Any]]) -> list[Outcome[Any]]:
        model = cast(Any, local_model(self.asks))
        return [run_now(ask_again(model, request)) for request in requests]

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        if self.again:
            library.additions.discard(self.name, self.model, *rows)
        library.extracts.add(rows, self.model)

    def _parts(self, library: LibraryReader, video: VideoRow) -> list[Part]:
        window = WINDOW.fullmatch(self.part)
        if window is not None:
            return _windows(video, float(window[1]))
        match self.part:
            case "video":
                return [Part(video.start_s, video.end_s)]
            case "shot":
                return [Part(row.start_s, row.end_s) for row in library.segments(video.video_id)]
            case "search":
                return _found(library, video, self.search, self.hits)
        level: Literal["chapter", "scene"] = "chapter" if self.part == "chapter" else "scene"
        stored = library.chapters.rows(video.video_id, level)
        if stored or not video.segments:
            return [Part(row.start_s, row.end_s) for row in stored] or [Part(video.start_s, video.end_s)]
        film = read_film(cast(Library, library), video)
        return [Part(each.start_s, each.end_s) for each in (film.chapters if level == "chapter" else film.scenes)]

    def _sees(self, video: VideoRow) -> bool:
        """True if the model is shown frames; one in this process reads text alone."""
        return bool(video.frames and self.frames_a_part and self.base_url is not None)

    def _requests(
        self, library: LibraryReader, video: VideoRow, parts: Mapping[int, Part], notes: Sequence[Note]
    ) -> list[ExtractRows]:
        count = self.frames_a_part if self._sees(video) else 0
        shown = shown_between(library, video, list(parts.values()), count)
        kind = ExtractRows.under(self.rows_schema)
        return [
            kind(
                part=Segment(number, video.video_id, *part),
                notes=_lines(notes, part, self.lines_a_part),
                frames=frames,
            )
            for (number, part), frames in zip(parts.items(), shown, strict=True)
        ]

    def _rows(
        self, number: int, part: Part, shown_s: Sequence[Part] | None, outcome: Outcome[Any]
    ) -> list[dict[str, Any]]:
        """The rows of a part; one with a fault where no reply could be used."""
        names = self.rows_schema.columns
        common = {"part_no": number, "start_s": part.start_s, "end_s": part.end_s, "model": self.asks}
        if outcome.reply is None or shown_s is None:
            unusable = f"no reply could be used: {outcome.complaint}" if outcome.complaint else "no reply could be used"
            known = unusable if shown_s is not None else "no frame and no line is known of it"
            why = known if outcome.refused is None else str(outcome.refused)
            empty = dict.fromkeys([*names, "evidence_start_s", "evidence_end_s"])
            return [common | empty | {"row_no": 0, "text": "", "cost": outcome.usage.cost, "fault": why}]
        found = rows_of_reply(outcome.reply)
        made = []
        for at, row in enumerate(found):
            values = row.model_dump(mode="json")
            cited = [number for number in values.pop(EVIDENCE) if 1 <= number <= len(shown_s)]
            start_s = min((shown_s[each - 1].start_s for each in cited), default=None)
            end_s = max((shown_s[each - 1].end_s for each in cited), default=None)
            times = {"evidence_start_s": start_s, "evidence_end_s": end_s}
            text = "; ".join(each for each in texts_in(values) if each.strip())
            rest = {"row_no": at, "text": text, "cost": outcome.usage.cost / len(found), "fault": None}
            made.append(common | values | times | rest)
        return made


def extraction(into: str, schema: object, *, asks: str, **settings: Any) -> Extraction:
    """The extraction of a schema into a table of this name; raises UsageError or BadSettings before anything is asked.

    `settings` are the fields of `Extraction`.
    """
    if not NAME.fullmatch(into) or into in TAKEN:
        raise UsageError(
            f"got the name {into!r} for a table; give small letters, digits and _, a letter first, at most 40, and "
            f"none of {', '.join(TAKEN)}"
        )
    read = read_schema(schema, COMMON_COLUMNS)
    each, search = settings.get("part", "scene"), settings.get("search", "")
    window = WINDOW.fullmatch(each)
    if (search and each != SEARCH) or (each not in (*EACH, SEARCH) and (window is None or not float(window[1]))):
        raise UsageError(
            f"got --each {each}; it is one of {', '.join(EACH)}, window:SECONDS, or left out with --search"
        )
    if each == SEARCH and not search.strip():
        raise UsageError("got an empty --search; give some words to look for")
    if not asks.startswith(LOCAL) and settings.get("base_url") is None:
        raise UsageError(
            f"got the model {asks!r} without --base-url; name the endpoint that serves it, or a language model of a "
            "folder as constrained:FOLDER"
        )
    made = Extraction("", asks=asks, schema=read.as_json(), **settings)
    depends = ("asks", "schema", "part", "search", "hits", "frames_a_part", "lines_a_part")
    prompt = (FOLDER / f"{ExtractRows.template}.jinja").read_text(encoding="utf-8")
    facts = json.dumps([prompt, *(getattr(made, name) for name in depends)])
    return replace(made, model=f"{into}@{hashlib.sha256(facts.encode()).hexdigest()[:8]}")


def read_schema_file(path: Path) -> object:
    """Read a JSON schema; raises UsageError."""
    try:
        return parse_json(read_bytes(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the schema {path}: {error}; give a file with a JSON schema") from error


def schema_of(row: Any) -> object:
    """The JSON schema of a pydantic model, or of a list of one; a schema as it is."""
    if isinstance(row, Mapping):
        return row
    if isinstance(row, str | Path):
        return read_schema_file(Path(row))
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(row).json_schema()
    except PydanticUserError as error:
        raise BadSettings(f"got {row!r}, of which there is no JSON schema ({error}); give a pydantic model") from error


def arrow_columns(schema: RowSchema) -> pa.Schema:
    """The columns of a schema; all may be null, as those of a part without a reply are."""
    return pa.schema([pa.field(name, _arrow(each)) for name, each in schema.columns.items()])


def _arrow(schema: Schema) -> pa.DataType:
    if schema["type"] == "object":
        return pa.struct([pa.field(name, _arrow(each)) for name, each in schema[NAMED].items()])
    if schema["type"] == "array":
        return pa.list_(_arrow(schema["items"]))
    return ARROW[schema["type"]]


# Parts of videos, and what is known of each.


def _windows(video: VideoRow, seconds: float) -> list[Part]:
    count = max(1, int((video.duration_s - 1e-6) // seconds) + 1)
    starts_s = [video.start_s + number * seconds for number in range(count)]
    return [Part(*each) for each in pairwise([*starts_s, video.end_s])]


def _found(library: LibraryReader, video: VideoRow, text: str, hits: int) -> list[Part]:
    """Moments that a search in one video finds, in order of time."""
    with EMBEDDING:
        vector = text_tower(cast(Library, library)).embed_text([text])[0]
    found = library.search.hybrid(text, vector, Scope((video.video_id,)), hits, AROUND_S)
    parts: list[Part] = []
    for hit in sorted(found, key=lambda each: each.time_s):
        start_s, end_s = max(video.start_s, hit.time_s - AROUND_S), min(video.end_s, hit.end_s + AROUND_S)
        if parts and start_s <= parts[-1].end_s:
            parts[-1] = Part(parts[-1].start_s, max(end_s, parts[-1].end_s))
        else:
            parts.append(Part(start_s, end_s))
    return parts


def _notes(library: LibraryReader, video: VideoRow) -> list[Note]:
    """All lines of a video, said, on screen and captions, by time."""
    notes = notes_between(library, video.video_id, video.start_s, video.end_s)
    return sorted(notes, key=lambda note: (note.start_s, note.end_s))


def _lines(notes: Sequence[Note], part: Part, most: int) -> tuple[Note, ...]:
    """The lines of a part; of very many some at even distances."""
    within = thinned([note for note in notes if note.start_s < part.end_s and note.end_s > part.start_s])
    if len(within) <= most:
        return within
    return tuple(within[int((number + 0.5) * len(within) / most)] for number in range(most))


def citable_s(asked: ExtractRows, video: VideoRow) -> list[Part]:
    """The times of the frames and lines of a request, in the order of the numbers by which a row cites them."""
    lasts_s = 1 / video.sample_fps if video.sample_fps else 0.0
    frames = [Part(each.time_s, min(each.time_s + lasts_s, video.end_s)) for each in asked.frames]
    return [*frames, *(Part(each.start_s, each.end_s) for each in asked.notes)]


@lru_cache(maxsize=16)
def _read_schema(text: str) -> RowSchema:
    return read_schema(json.loads(text))


@lru_cache(maxsize=1)
def local_model(name: str) -> Model:
    """Load a language model in this process once."""
    from kinodex.jobs.models import open_local

    return open_local(name)
