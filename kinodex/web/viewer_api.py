"""Data for the page by key, from the traces, runs and libraries that the user named and from nothing else.

A key consists only of numbers, so no name that comes from a browser ever becomes a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.request_key import plain
from kinodex.agent.traces.trace import Record, read_trace
from kinodex.agent.videos.environment import Environment
from kinodex.example_searches import example_searches
from kinodex.index.errors import TimeOutside
from kinodex.index.kinds import place_labels
from kinodex.index.library import Library
from kinodex.index.metadata import facet_of, holds_objects
from kinodex.index.rows import DetectionRow
from kinodex.index.spaces.embedders import TextEmbedder
from kinodex.index.store.database import Stamp
from kinodex.index.store.schema import COMMON_COLUMNS
from kinodex.index.text import composed
from kinodex.jobs.eval.folder import Run, trace_file
from kinodex.jobs.open import find_space
from kinodex.redaction import redact_uri
from kinodex.requests import Find, Ground
from kinodex.search.places import known_place
from kinodex.server.responses import NotGiven, numbered
from kinodex.web.columns_view import extract_row, facet_view
from kinodex.web.curves import curves, shots
from kinodex.web.evidence_frames import evidence_frames
from kinodex.web.inputs import ViewerInputs
from kinodex.web.query_strings import read_request
from kinodex.web.ranges import play_range
from kinodex.web.run_view import run_view, truth_of
from kinodex.web.search import LibrarySearch, needs_vector
from kinodex.web.text_towers import TextTowers
from kinodex.web.trace_view import TraceView, shown_frames, trace_view
from kinodex.web.video_list import ROWS, VideoList
from kinodex.web.video_view import frame_detections, video_view

if TYPE_CHECKING:
    from kinodex.web.questions import Questions

TRACE_KEY = re.compile(r"t(\d{1,6})|r(\d{1,6})-(\d{1,6})-(\d{1,6})")
QUESTION_KEY = re.compile(r"q\d{1,9}")
MOST_EXAMPLES = 6
VIEWS_KEPT = 64
"""Traces kept in memory once read: most take a megabyte, a very long one some hundreds."""


class ViewerApi:
    """All inputs, opened. Any thread may call `curves` and `search`, which are slow, one `ground`, and one the rest.

    Frames are searched in `space`, by name or digest; None is each library's own. Raises UsageError if one lacks it.
    """

    asking: Questions | None = None
    """Questions asked through the server; one of traces alone has none, and the page as a file."""

    def __init__(self, inputs: ViewerInputs, space: str | None = None, towers: TextTowers | None = None) -> None:
        self.inputs = inputs
        self._space = space
        self._towers = towers or TextTowers()
        for library in inputs.libraries:
            find_space(library, space)
        self._searches: dict[tuple[int, int, str], LibrarySearch] = {}
        self._opening = Lock()
        self._views: dict[str, tuple[tuple[int, ...], TraceView]] = {}
        self._video_lists: dict[int, VideoList] = {}
        self._examples: dict[int, tuple[Stamp | None, list[str]]] = {}

    @property
    def home(self) -> dict[str, Any]:
        """List of all inputs with the keys to ask for them, and what a server of questions offers, if it is one."""
        libraries = [
            {"key": number, "uri": redact_uri(library.uri), "videos": library.count_videos()}
            for number, library in enumerate(self.inputs.libraries)
        ]
        return self._places | {"libraries": libraries, "serve": None if self.asking is None else self.asking.about()}

    @cached_property
    def _places(self) -> dict[str, Any]:
        inputs = self.inputs
        return {
            "traces": [self._heading(f"t{number}") for number in range(len(inputs.traces))],
            "runs": [
                {"key": number, "title": run.plan.title, "folder": run.folder.name, "answers": len(run.records)}
                for number, run in enumerate(inputs.runs)
            ],
            "missing": inputs.missing,
        }

    def trace(self, key: str) -> dict[str, Any]:
        """Return a trace with its library's number, the shots, the true answer, and a frame and what plays for each
        range.
        """
        view = self.view(key)
        number = self._library_of(view)
        video_ids = [video["video_id"] for video in view.videos]
        library = None if number is None else self.inputs.libraries[number]
        cited = view.answer["evidence"] if view.answer and library is not None else []
        return {
            "key": key,
            "name": self._name(key),
            "trace": view,
            "library": number,
            "shots": {} if library is None else shots(library, video_ids),
            "evidence": evidence_frames(library, view),
            "plays": [self._played(library, each) for each in cited],
            "truth": self._truth(key),
        }

    def _played(self, library: Library | None, cited: Mapping[str, Any]) -> dict[str, float] | None:
        if library is None or not library.has_video(cited["video_id"]):
            return None
        return play_range(library.video(cited["video_id"]), cited["start_s"], cited["end_s"])

    def curves(self, key: str) -> list[Any]:
        """Curves of how well the queries of a trace match its videos; none without its library."""
        view = self.view(key)
        number = self._library_of(view)
        if number is None or not any(step.queries for step in view.steps):
            return []
        seen_in = next((each for each in self._library(number).spaces() if str(each) == view.space), None)
        if seen_in is None:
            return []
        search = self._search_of(number, seen_in.digest)
        rows = [search.library.video(video["video_id"]) for video in view.videos]
        return curves(view, Environment.of(search.library, rows, search.text_tower.embed_text, space=seen_in.digest))

    def run(self, number: int) -> dict[str, Any]:
        return run_view(self._run(number))

    def run_folder(self, number: int) -> Path:
        return self._run(number).folder

    def library(self, number: int) -> dict[str, Any]:
        library = self._library(number)
        return asdict(library.info()) | {
            "searched": library.space(self._space).name,
            "extracts": list(dict.fromkeys(each.name for each in library.extracts.versions())),
            "places": place_labels(),
        }

    def facets(self, number: int, condition: str | None) -> dict[str, Any]:
        """Return the columns of a library's videos, or of those for which a condition holds, with what they hold."""
        library = self._library(number).where(condition)
        found = library.metadata.facets(None if condition is None else library.video_ids())
        return {"videos": library.count_videos(), "facets": [facet_view(facet) for facet in found]}

    def extract(self, number: int, name: str, start: int, condition: str | None) -> dict[str, Any]:
        """Return the rows of an extract from one on, each with the frame of its evidence, and facets of its columns.

        With a condition only those rows for which it holds; the facets are of all.
        """
        library = self._library(number)
        every = library.extracts.rows(name)
        rows = every if condition is None else library.extracts.rows(name, where=condition)
        every, rows = (each.filter(each["fault"].is_null()) for each in (every, rows))
        own = [each for each in every.column_names if each not in COMMON_COLUMNS]
        plain_columns = [each for each in own if not holds_objects(every.schema.field(each).type)]
        return {
            "count": rows.num_rows,
            "columns": own,
            "facets": [facet_view(facet_of(each, every[each])) for each in plain_columns],
            "rows": [extract_row(library, own, row) for row in rows.slice(start, ROWS).to_pylist()],
        }

    def videos(
        self, number: int, words: str, start: int, sort: str = "title", where: str | None = None
    ) -> dict[str, Any]:
        library = self._library(number)
        listed = self._video_lists.setdefault(number, VideoList(library))
        return listed.page(words, start, sort, None if where is None else library.where(where).video_ids())

    def failures(self, number: int, words: str, start: int) -> dict[str, Any]:
        found = self._library(number).ingest_log.failures()
        rows = [row for row in found if composed(words.casefold()) in composed(f"{row.uri}\n{row.message}".casefold())]
        return {"count": len(rows), "rows": rows[start : start + ROWS]}

    def video(self, number: int, video_id: str) -> dict[str, Any]:
        return video_view(self._library(number), video_id)

    def detections(self, number: int, video_id: str, frame_no: int) -> list[DetectionRow]:
        return frame_detections(self._library(number), video_id, frame_no)

    def load_towers(self) -> None:
        """Begin to load the text towers in a thread; an error of one is that of the first search that needs it."""
        for library in self.inputs.libraries:
            space = library.space(self._space)
            if space.has_vectors:
                self._towers.begin(library.uri, space)

    def tower_of(self, number: int, request: Find) -> Future[TextEmbedder] | None:
        """Return the text tower that a search needs, loaded or being loaded; None if it needs none."""
        library = self._library(number)
        space = library.space(self._space)
        return self._towers.begin(library.uri, space) if needs_vector(library, request, space) else None

    def begin_text(self, number: int, text: str) -> Future[None]:
        """Begin to embed the text of a search, whose tower is loaded."""
        library = self._library(number)
        return self._towers.begin_text(library.uri, library.space(self._space), text)

    def stamp(self, number: int) -> Stamp | None:
        """Return the states of a library's tables that its searches read; None where they cannot be seen at once."""
        return self._library(number).tables.stamp()

    def ground(self, number: int, request: Ground) -> dict[str, Any]:
        """Ranges of a library in which something happens: see `grounding_view`; raises as a search does."""
        return self._search_of(number).ground(request)

    def text_tower(self, number: int) -> Future[TextEmbedder] | None:
        """Return the text tower of the space that is searched, loaded or being loaded; None where there is no space."""
        library = self._library(number)
        space = library.space(self._space)
        return self._towers.begin(library.uri, space) if space.has_vectors else None

    def examples(self, number: int, stamp: Stamp | None) -> list[str]:
        """Searches to begin with, chosen anew for another `stamp` of the library; raises SpaceError without a tower."""
        state, found = self._examples.get(number, (None, None))
        if found is None or state != stamp:
            search = self._search_of(number)
            chosen = example_searches(search.library, search.text_tower, MOST_EXAMPLES, search.space.digest)
            found = [each.scene for each in chosen]
            self._examples[number] = stamp, found
        return found

    def close(self) -> None:
        self._towers.close()

    def read_search(self, number: int, pairs: Iterable[tuple[str, str]]) -> Find:
        """Read a search of a library from a query string; raises UsageError for one that makes no sense there."""
        request = read_request(Find, pairs)
        known_place(request.in_, self._library(number))
        return request

    def search(self, number: int, request: Find, picture: bytes | None = None) -> dict[str, Any]:
        """Moments of a library for a request, and like a picture, a JPEG for example; see `LibrarySearch.search`."""
        return self._search_of(number).search(request, picture)

    def picture(self, number: int, video_id: str, frame_no: int) -> bytes:
        return self._library(number).frames(video_id, [frame_no])[0].jpeg

    def trace_keys(self) -> list[str]:
        return [f"t{number}" for number in range(len(self.inputs.traces))]

    def view(self, key: str) -> TraceView:
        state, view = self._views.get(key, ((), None))
        now = self._state(key)
        if view is not None and state == now:
            return view
        view = trace_view(self._records(key))
        if not QUESTION_KEY.fullmatch(key) or view.answer is not None:  # a question under way has more to come
            if len(self._views) >= VIEWS_KEPT:
                self._views.clear()
            self._views[key] = now, view
        return view

    def _state(self, key: str) -> tuple[int, ...]:
        """Return the state of a trace's file, which another run may write again.

        It is empty for a question, which has a new key each time.
        """
        path = None if QUESTION_KEY.fullmatch(key) else self._trace_path(key)
        if path is None or not path.is_file():  # the error is that of reading it
            return ()
        found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _records(self, key: str) -> list[Record]:
        if self.asking is not None and QUESTION_KEY.fullmatch(key):
            return self.asking.records(key)
        return read_trace(self._trace_path(key))

    def _trace_path(self, key: str) -> Path:
        match = TRACE_KEY.fullmatch(key)
        if match is None:
            raise NotGiven(f"got {key[:40]!r}, which is not the key of a trace")
        if match[1] is not None:
            return numbered(self.inputs.traces, int(match[1]), "trace")
        run = self._run(int(match[2]))
        contender = numbered(run.plan.contenders, int(match[3]), "contender")
        item = numbered(run.items, int(match[4]), "question")
        return trace_file(run.folder, contender.name, item.item_id)

    def _heading(self, key: str) -> dict[str, Any]:
        view = self.view(key)
        answer = view.answer or {}
        return {
            "key": key,
            "name": self._name(key),
            "agent": view.agent,
            "question": view.question,
            "videos": [video["title"] for video in view.videos],
            "status": answer.get("status"),
            "text": answer.get("text"),
            "poster": self._poster(view),
        }

    def _poster(self, view: TraceView) -> dict[str, Any] | None:
        """Library and video whose poster stands for a trace: the first video of it that a library holds."""
        for video in view.videos:
            for number, library in enumerate(self.inputs.libraries):
                if row := library.visible.videos([video["video_id"]]).get(video["video_id"]):
                    shape = {"frames": row.frames, "width_px": row.width_px, "height_px": row.height_px}
                    return {"library": number, "video_id": row.video_id} | shape
        return None

    def _name(self, key: str) -> str:
        if QUESTION_KEY.fullmatch(key):
            return key
        path = self._trace_path(key)
        return path.name if key.startswith("t") else f"{path.parent.name}/{path.name}"

    def _truth(self, key: str) -> dict[str, Any] | None:
        match = TRACE_KEY.fullmatch(key)
        if match is None or match[2] is None:
            return None
        run = self._run(int(match[2]))
        return truth_of(run, run.items[int(match[4])])

    def _library_of(self, view: TraceView) -> int | None:
        """Return the number of the first library that holds all videos of a trace, with the frames that it saw."""
        wanted = {video["video_id"] for video in view.videos}
        for number, library in enumerate(self.inputs.libraries):
            if wanted <= library.video_ids() and self._holds_frames(library, view):
                return number
        return None

    @staticmethod
    def _holds_frames(library: Library, view: TraceView) -> bool:
        """Check by its first frame that a library holds what a trace saw: a video ingested again has other frames."""
        first = next(iter(shown_frames(view)), None)
        if first is None:
            return True
        try:
            (stored,) = library.frames(first.video_id, [first.frame_no])
        except TimeOutside:
            return False
        return plain(ShownFrame(**asdict(stored))) == asdict(first)

    def _search_of(self, number: int, space: str | None = None) -> LibrarySearch:
        """Search of a library in one of its spaces (None: the one that is searched), of the thread that asks."""
        with self._opening:
            of_all, thread = self._library(number), get_ident()
            held = of_all.space(space or self._space)
            key = thread, number, held.digest
            if key not in self._searches:
                of_thread = (each.library for at, each in self._searches.items() if at[:2] == key[:2])
                library = next(of_thread, None) or Library.open(of_all.uri)
                library.tables.share_caches(of_all.tables)
                self._searches[key] = LibrarySearch(library, held, self._towers)
            return self._searches[key]

    def _run(self, number: int) -> Run:
        return numbered(self.inputs.runs, number, "run")

    def _library(self, number: int) -> Library:
        return numbered(self.inputs.libraries, number, "library")
