"""Rows of a table from each part of a video, by a model under a schema: `kinodex extract`.

add(library, Extracts(row=schema, into="goals", model="gpt-4o", each="scene"))
library.extracts.rows("goals")
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa

from kinodex.agent.attempts import Outcome, ask_checked
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.replies.schema import NAMED, Schema
from kinodex.agent.requests.extract import ExtractRows, rows_of_reply, texts_in
from kinodex.agent.requests.row_schema import EVIDENCE, RowSchema, read_schema
from kinodex.index.extracts import ExtractVersion, made_now
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.extract_parts import (
    Part,
    citable_s,
    equal_windows,
    lines_of_part,
    lines_of_video,
    parts_by_search,
)
from kinodex.jobs.add.extract_schema import SEARCH, WINDOW
from kinodex.jobs.add.film_parts import read_film
from kinodex.jobs.add.rounds import Round, Rounds, reasons
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stages import Extracts
from kinodex.jobs.add.writer import Writer
from kinodex.jobs.library import shown_between
from kinodex.jobs.models import open_local, run_now

log = logging.getLogger(__name__)

ARROW = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
NOTHING_KNOWN: Outcome[Any] = Outcome(None)
"""Of a part that no frame and no line is known of."""


class ExtractWriter(Writer[Extracts]):
    """Rows of a table from the parts of the videos of a library."""

    @cached_property
    def schema(self) -> RowSchema:
        return read_schema(json.loads(self.stage.row))

    def prepare(self) -> None:
        name, _, digest = self.stage.key.partition("@")
        version = ExtractVersion(name, digest, made_now(), json.loads(json.dumps(dict(self.stage.settings))))
        self.library.extracts.make(version, arrow_columns(self.schema))
        if self.stage.part == SEARCH and (why := self.library.incomparable(self.stage.search or "")) is not None:
            log.warning("note: moments are found by words alone: %s", why)

    def again(self) -> Collection[str]:
        """Ids of the videos with parts of which no reply could be used."""
        return self.library.extracts.faulty(self.stage.key) if self.stage.retry_failed else ()

    def parts_of(self, video: VideoRow) -> int:
        part = self.stage.part
        if part in ("video", SEARCH):
            return 1
        window = WINDOW.fullmatch(part)
        return video.segments if window is None else int(video.duration_s / float(window[1])) + 1

    def rounds(self, video: VideoRow) -> Rounds:
        """Ask about each part of which something is known, or `again` about those without a reply before."""
        library, key, id_ = self.library, self.stage.key, video.video_id
        parts, notes = self._parts(video), lines_of_video(library, video)
        is_there = self.stage.retry_failed and key in library.visible.models(self.stage.name, [id_]).get(id_, ())
        before = library.extracts.held(key, id_) if is_there else []
        faulty = {row["part_no"] for row in before if row["fault"]}
        chosen = [at for at in range(len(parts)) if not is_there or at in faulty]
        known = [at for at in chosen if self._sees(video) or lines_of_part(notes, parts[at], 1)]
        shown_s: dict[int, list[Part]] = {}  # the times alone: requests hold pictures

        def make(places: Sequence[int]) -> list[ExtractRows]:
            made = self._requests(video, {known[at]: parts[known[at]] for at in places}, notes)
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

    def load(self) -> Callable[[Sequence[Request[Any]]], list[Outcome[Any]]]:
        model = open_local(self.stage.model)
        return lambda requests: [run_now(ask_checked(model, request)) for request in requests]

    def write(self, rows: Mapping[str, Any]) -> None:
        if self.stage.retry_failed:
            self.library.additions.discard(self.stage.name, self.stage.key, *rows)
        self.library.extracts.add(rows, self.stage.key)

    def _parts(self, video: VideoRow) -> list[Part]:
        library, unit = self.library, self.stage.part
        window = WINDOW.fullmatch(unit)
        if window is not None:
            return equal_windows(video, float(window[1]))
        match unit:
            case "video":
                return [Part(video.start_s, video.end_s)]
            case "shot":
                return [Part(row.start_s, row.end_s) for row in library.segments(video.video_id)]
            case "search":
                return parts_by_search(library, video, self.stage.search or "", self.stage.hits)
        level: Literal["chapter", "scene"] = "chapter" if unit == "chapter" else "scene"
        stored = library.chapters.rows(video.video_id, level)
        if stored or not video.segments:
            return [Part(row.start_s, row.end_s) for row in stored] or [Part(video.start_s, video.end_s)]
        film = read_film(library, video)
        return [Part(each.start_s, each.end_s) for each in (film.chapters if level == "chapter" else film.scenes)]

    def _sees(self, video: VideoRow) -> bool:
        """Return True if the model is shown frames; one in this process reads only text."""
        return bool(video.frames and self.stage.frames_a_part and self.stage.base_url is not None)

    def _requests(self, video: VideoRow, parts: Mapping[int, Part], notes: Sequence[Note]) -> list[ExtractRows]:
        count = self.stage.frames_a_part if self._sees(video) else 0
        shown = shown_between(self.library, video, list(parts.values()), count)
        kind = ExtractRows.under(self.schema)
        return [
            kind(
                part=Segment(number, video.video_id, *part),
                notes=lines_of_part(notes, part, self.stage.lines_a_part),
                frames=frames,
            )
            for (number, part), frames in zip(parts.items(), shown, strict=True)
        ]

    def _rows(
        self, number: int, part: Part, shown_s: Sequence[Part] | None, outcome: Outcome[Any]
    ) -> list[dict[str, Any]]:
        """Return the rows of a part; one with a fault where no reply could be used."""
        names = self.schema.columns
        common = {"part_no": number, "start_s": part.start_s, "end_s": part.end_s, "model": self.stage.model}
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


def arrow_columns(schema: RowSchema) -> pa.Schema:
    """Return the columns of a schema; all may be null, as those of a part without a reply are."""
    return pa.schema([pa.field(name, _arrow(each)) for name, each in schema.columns.items()])


def _arrow(schema: Schema) -> pa.DataType:
    if schema["type"] == "object":
        return pa.struct([pa.field(name, _arrow(each)) for name, each in schema[NAMED].items()])
    if schema["type"] == "array":
        return pa.list_(_arrow(schema["items"]))
    return ARROW[schema["type"]]
