"""Data for the page by key, from the traces, runs and libraries that the user named and from nothing else.

A key consists of numbers alone, so no name that comes from a browser ever becomes a path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.environment import Environment
from kinodex.agent.protocol import ShownFrame, plain
from kinodex.agent.trace import Record, read_trace
from kinodex.index.conditions import quoted
from kinodex.index.durations import counted
from kinodex.index.errors import TimeOutside
from kinodex.index.kinds import KINDS, LINE_KINDS, KindName, place_labels
from kinodex.index.library import Library
from kinodex.index.metadata import Facet, facet_of, holds_objects
from kinodex.index.metadata import plain as plain_value
from kinodex.index.rows import DetectionRow, SegmentRow, VideoRow
from kinodex.index.spaces.embedders import TextEmbedder
from kinodex.index.store.database import Stamp, State
from kinodex.index.store.schema import COMMON_COLUMNS
from kinodex.index.text import composed
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import PAGE, PLAN, Run, read_run, trace_file
from kinodex.jobs.eval.items import Item
from kinodex.jobs.eval.report import make_report
from kinodex.jobs.eval.score import judged_score, option_score
from kinodex.jobs.open import find_space
from kinodex.notebook import evidence_s
from kinodex.redaction import redact_uri
from kinodex.requests import Find, Ground
from kinodex.responses import NotGiven, numbered
from kinodex.search_places import known_place
from kinodex.web.curves import curves, shots
from kinodex.web.evidence_frames import evidence_frames
from kinodex.web.query_strings import read_request
from kinodex.web.ranges import play_range
from kinodex.web.search import LibrarySearch, needs_vector
from kinodex.web.text_towers import TextTowers
from kinodex.web.trace_view import TraceView, shown_frames, trace_view

if TYPE_CHECKING:
    from kinodex.web.questions import Questions

TRACE_KEY = re.compile(r"t(\d{1,6})|r(\d{1,6})-(\d{1,6})-(\d{1,6})")
QUESTION_KEY = re.compile(r"q\d{1,9}")
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
        """A trace with its library's number, the shots, the true answer, and a frame and what plays for each range."""
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
            "noise": library.noise(self._space),
            "extracts": list(dict.fromkeys(each.name for each in library.extracts.versions())),
            "places": place_labels(),
        }

    def facets(self, number: int, condition: str | None) -> dict[str, Any]:
        """The columns of a library's videos, or of those for which a condition holds, with what they hold."""
        library = self._library(number).where(condition)
        found = library.metadata.facets(None if condition is None else library.video_ids())
        return {"videos": library.count_videos(), "facets": [_facet_view(facet) for facet in found]}

    def extract(self, number: int, name: str, start: int, condition: str | None) -> dict[str, Any]:
        """Rows of an extract from one on, each with the frame of its evidence, and facets of its columns.

        With a condition those rows alone for which it holds; the facets are of all.
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
            "facets": [_facet_view(facet_of(each, every[each])) for each in plain_columns],
            "rows": [_extract_row(library, own, row) for row in rows.slice(start, ROWS).to_pylist()],
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
            self._towers.begin(library.uri, library.space(self._space))

    def tower_of(self, number: int, request: Find) -> Future[TextEmbedder] | None:
        """The text tower that a search needs, loaded or being loaded; None if it needs none."""
        library = self._library(number)
        space = library.space(self._space)
        return self._towers.begin(library.uri, space) if needs_vector(library, request, space) else None

    def begin_text(self, number: int, text: str) -> Future[None]:
        """Begin to embed the text of a search, whose tower is loaded."""
        library = self._library(number)
        return self._towers.begin_text(library.uri, library.space(self._space), text)

    def stamp(self, number: int) -> Stamp | None:
        """The states of a library's tables that its searches read; None where they cannot be seen at once."""
        return self._library(number).tables.stamp()

    def ground(self, number: int, request: Ground) -> dict[str, Any]:
        """Ranges of a library in which something happens: see `grounding_view`; raises as a search does."""
        return self._search_of(number).ground(request)

    def ground_tower(self, number: int) -> Future[TextEmbedder]:
        """The text tower that `ground` needs, loaded or being loaded."""
        library = self._library(number)
        return self._towers.begin(library.uri, library.space(self._space))

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
        """The state of a trace's file, which another run may write again; nothing for a question, whose key is new."""
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
        """Number of the first library that holds all videos of a trace, with the frames that it saw."""
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


# Sort the places that a user names into traces, runs and libraries; the viewer opens nothing else.


@dataclass(frozen=True, slots=True)
class ViewerInputs:
    """Traces, runs and libraries in the order of the command line, with the libraries of runs that are gone."""

    traces: tuple[Path, ...]
    runs: tuple[Run, ...]
    libraries: tuple[Library, ...]
    missing: tuple[str, ...] = ()


def classify_inputs(places: Sequence[str]) -> ViewerInputs:
    """Sort places: files are traces, folders with a plan runs, the rest libraries; raises UsageError, LibraryError."""
    traces, runs, libraries = [], [], []
    for place in dict.fromkeys(places):
        if Path(place).is_file():
            traces.append(Path(place))
        elif (Path(place) / PLAN).is_file():
            runs.append(read_run(Path(place)))
        elif Library.exists(place):
            libraries.append(Library.open(place))
        else:
            raise UsageError(
                f"got {place}, which is no trace, run or library; give a file that `kinodex ask --trace` "
                "wrote, a folder that `kinodex eval --out` wrote, or a library"
            )
    behind = dict.fromkeys(run.plan.library for run in runs)
    unnamed = [uri for uri in behind if uri not in {each.uri for each in libraries}]
    found = [Library.open(uri) for uri in unnamed if Library.exists(uri)]
    missing = tuple(uri for uri in unnamed if not Library.exists(uri))
    return ViewerInputs(tuple(traces), tuple(runs), (*libraries, *found), missing)


ROWS = 100
"""Rows of a table that the page shows at a time."""


# Videos of a library in the orders of its page, sorted again only where the library holds other videos than before.

COUNTED = (*LINE_KINDS, "detections")
COLUMNS = ("video_id", "title", "uri", "duration_s", "ingested_at")
DIGITS = re.compile("[0-9]+")
LONGEST_NUMBER = 20


class VideoList:
    """The complete videos of a library, by title, by length and by age; for one thread at a time.

    Only the columns that are sorted and searched are read of all videos, and again once the table has changed.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._state: State | None = None
        self._rows: list[dict[str, Any]] = []
        self._sorted: dict[str, list[dict[str, Any]]] = {}

    def page(
        self, words: str = "", start: int = 0, order: str = "title", among: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Page of `ROWS` videos from the `start`-th on, of the `count` with all these words in title or URI.

        Of all videos, or `among` those of these ids.

        A row has the fields of `VideoRow` and, as `counts`, what the library holds of it in words. Raises UsageError
        for an unknown order.
        """
        if order not in SORT_KEYS:
            raise UsageError(f"got sort {order!r}; it is one of {', '.join(SORT_KEYS)}")
        rows = self._in_order(order)
        if parts := composed(words.casefold()).split():
            rows = [row for row in rows if all(part in row["text"] for part in parts)]
        if among is not None:
            rows = [row for row in rows if row["video_id"] in among]
        ids = [row["video_id"] for row in rows[start : start + ROWS]]
        shown = self._library.visible.videos(ids)
        counts = self._library.additions.counts_of(ids) if ids else {}
        added = {id_: {kind: counts.get((id_, kind), 0) for kind in COUNTED} for id_ in ids}
        return {"count": len(rows), "rows": [_with_counts(shown[id_], added[id_]) for id_ in ids if id_ in shown]}

    def _in_order(self, order: str) -> list[dict[str, Any]]:
        state = self._library.tables.state("videos")
        if state != self._state:
            self._state, self._sorted = state, {}
            self._rows = self._library.video_columns(COLUMNS).to_pylist()
            for row in self._rows:
                row["text"] = composed(f"{row['title']}\n{row['uri']}".casefold())
        if order not in self._sorted:
            self._sorted[order] = sorted(self._rows, key=SORT_KEYS[order])
        return self._sorted[order]


def _with_counts(video: VideoRow, added: Mapping[KindName, int]) -> dict[str, Any]:
    """Give the fields of a video and, as `counts`, what the library holds of it in words: "12 lines of speech"."""
    counts: dict[KindName, int] = {**added, "speech": added["speech"] + video.speech_lines}
    words = [KINDS[kind].count(number) for kind, number in counts.items() if number]
    return asdict(video) | {"counts": [*([counted(video.frames, "frame")] if video.frames else []), *words]}


def natural(text: str) -> str:
    """Make a key that sorts `part 2` before `part 10`, upper and lower case alike."""
    return DIGITS.sub(lambda digits: digits[0].zfill(LONGEST_NUMBER), text.casefold())


SORT_KEYS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "title": lambda row: (natural(row["title"]), row["video_id"]),
    "length": lambda row: (-row["duration_s"], natural(row["title"]), row["video_id"]),
    "newest": lambda row: (-row["ingested_at"].timestamp(), natural(row["title"]), row["video_id"]),
}


def _extract_row(library: Library, columns: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of an extract for the page: its values as texts, and the frame that is on screen as its evidence begins."""
    video = library.video(row["video_id"])
    start_s, end_s = evidence_s(row)
    frame_no = None
    if video.frames:
        numbers, times_s = library.frame_times(video.video_id)
        frame_no = int(numbers[max(0, int(np.searchsorted(times_s, start_s, "right")) - 1)])
    values = [None if row[each] is None else plain_value(row[each]) for each in columns]
    shown = {"title": video.title, "start_s": start_s, "end_s": end_s, "frame_no": frame_no, "values": values}
    return {"video_id": video.video_id, **shown}


def _facet_view(facet: Facet) -> dict[str, Any]:
    """A column for the page: `sql` is its name in a condition, values and ends are texts as they stand there."""
    values = [{"text": plain_value(value), "videos": count} for value, count in facet.values]
    ends = {"least": facet.least, "most": facet.most}
    return {
        "name": facet.name,
        "sql": quoted(facet.name),
        "kind": _kind(facet.type),
        "values": values,
        **{name: None if value is None else plain_value(value) for name, value in ends.items()},
        "missing": facet.missing,
    }


def _kind(type_name: str) -> str:
    """Of values in a condition: texts and times stand in quotes, numbers and truth values do not."""
    if type_name.startswith("list"):
        return "list"
    if type_name.startswith(("timestamp", "date")):
        return "time"
    return "text" if type_name == "string" else "number"


# One video as the page draws it: times of its frames, shots, what is said, shown, described, and detected where.
#
# Hours of film are thousands of rows, so only what a time line draws is sent, and boxes come frame by frame.

EXACT_S = 1e-6


def video_view(library: Library, video_id: str) -> dict[str, Any]:
    """One video in columns and short rows; `detected` are frame numbers by label. Raises UnknownVideo.

    Times are rounded to a millisecond: a frame is asked for by its number. `opens_at_s` is the time of the frame to
    show first, None without frames.
    """
    row = library.video(video_id)
    numbers, times_s = library.frame_times(row.video_id)
    segments, said = library.segments(row.video_id), library.speech(row.video_id)
    texts = {kind: library.lines.rows(row.video_id, [kind]) for kind in LINE_KINDS}
    return {
        "video": row,
        "frame_nos": numbers.tolist(),
        "times_s": times_s.round(3).tolist(),
        "opens_at_s": opening_s(times_s, segments),
        "segments": _columns(segments, "kind"),
        "contents": _columns(library.chapters.rows(row.video_id), "level", "title", "text"),
        "lines": [
            {"kind": kind, "label": KINDS[kind].label, "rows": _columns(rows, "text", "speaker")}
            for kind, rows in texts.items()
        ],
        "languages": sorted({each.language for each in said if each.language}),
        "detected": {label: frames.tolist() for label, frames in library.detected_frames(row.video_id).items()},
    }


def _columns(rows: Iterable[Any], *names: str) -> list[dict[str, Any]]:
    return [{name: getattr(row, name) for name in ("start_s", "end_s", *names)} for row in rows]


def frame_detections(library: Library, video_id: str, frame_no: int) -> list[DetectionRow]:
    time_s = library.frames(video_id, [frame_no])[0].time_s
    return [
        each for each in library.detections(video_id, time_s - EXACT_S, time_s + EXACT_S) if each.frame_no == frame_no
    ]


def opening_s(times_s: NDArray[np.float64], segments: list[SegmentRow]) -> float | None:
    """Time of the frame in the middle of the longest shot: many films begin with a black picture."""
    if not len(times_s):
        return None
    longest = max(segments, key=lambda each: each.end_s - each.start_s, default=None)
    middle_s = (times_s[0] + times_s[-1]) / 2 if longest is None else (longest.start_s + longest.end_s) / 2
    return float(times_s[np.argmin(np.abs(times_s - middle_s))].round(3))


# A run of `kinodex eval` as the page draws it: standings, and all answers to every question.

STANDING = ("name", "is_control", "imported", "accuracy", "cited", "shown", "unanswered")
"""Fields of a contender's standing that the page shows beside its costs."""


def run_view(run: Run) -> dict[str, Any]:
    """Standings, and questions with answers in the order of the systems, None for one that is not there yet."""
    report = make_report(run.plan, run.items, run.records, run.judgements)  # report.json may be older than they are
    return {
        **{name: getattr(report, name) for name in ("title", "asked", "videos", "chance", "scoring", "complete")},
        "library": run.plan.library,
        "models": run.plan.models,
        "has_page": (run.folder / PAGE).is_file(),
        "contenders": [contender.name for contender in run.plan.contenders],
        "standings": [
            {name: getattr(each, name) for name in STANDING}
            | {"costs": {name: spread.mean for name, spread in each.costs.items()}}
            for each in report.standings
        ],
        "questions": _questions(run),
    }


def truth_of(run: Run, item: Item) -> dict[str, Any]:
    videos = run.plan.items[item.item_id]
    clip = item.truth.clip if item.truth.clip is not None else videos[0] if len(videos) == 1 else None
    ranges = [{"video_id": clip, "start_s": start_s, "end_s": end_s} for start_s, end_s in item.truth.evidence]
    return {"option": item.truth.option, "text": item.truth.text, "evidence": ranges if clip else []}


def _questions(run: Run) -> list[dict[str, Any]]:
    records = {(each.contender, each.item_id): each for each in run.records}
    verdicts = {(each.contender, each.item_id): each for each in run.judgements if each.judge == run.judge}

    def answer(contender: str, item: Item) -> dict[str, Any] | None:
        record = records.get((contender, item.item_id))
        if record is None:
            return None
        by_option = run.plan.scoring == "options"
        score, _ = option_score(item, record) if by_option else judged_score(item, record, verdicts)
        return {
            **{name: getattr(record, name) for name in ("option", "text", "status", "error", "rounds")},
            "score": score,
            "frames": record.ledger.frames,
            "has_trace": trace_file(run.folder, contender, item.item_id).is_file(),
        }

    return [
        {
            "item_id": item.item_id,
            "video": item.video,
            "question": item.question,
            "truth": truth_of(run, item),
            "groups": item.groups,
            "answers": [answer(contender.name, item) for contender in run.plan.contenders],
        }
        for item in run.items
    ]
