"""Data for the page by key, from the traces, runs and libraries that the user named and from nothing else.

A key consists of numbers alone, so no name that comes from a browser ever becomes a path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from agent.core.protocol import ShownFrame, plain
from agent.environment import Environment
from agent.trace.trace import Record, read_trace
from index.embedding.embedders import TextEmbedder
from index.errors import KinodexError, TimeOutside
from index.library import Library
from index.redact import redact_uri
from index.rows import DetectionRow
from jobs.evaluation.run.run_folder import Run, trace_file
from jobs.open_library import find_space
from jobs.viewer.evidence import evidence_frames
from jobs.viewer.inputs import ViewerInputs
from jobs.viewer.library_view import failures_page
from jobs.viewer.run_view import run_view, truth_of
from jobs.viewer.search.grounding import Groundings, GroundRequest
from jobs.viewer.search.library_search import LibrarySearch
from jobs.viewer.search.moments import needs_vector
from jobs.viewer.search.request import SearchRequest
from jobs.viewer.search.text_towers import TextTowers
from jobs.viewer.timeline import curves, shots
from jobs.viewer.trace_view import TraceView, shown_frames, trace_view
from jobs.viewer.video_list import VideoList
from jobs.viewer.video_view import frame_detections, video_view

T = TypeVar("T")
TRACE_KEY = re.compile(r"t(\d{1,6})|r(\d{1,6})-(\d{1,6})-(\d{1,6})")
QUESTION_KEY = re.compile(r"q\d{1,9}")
VIEWS_KEPT = 64
"""Traces kept in memory once read: most take a megabyte, a very long one some hundreds."""


class NotGiven(KinodexError):
    """The page asks for something that the user did not name."""


class Asking(Protocol):
    """Questions asked through a server, as the page needs them; `kinodex view` has none."""

    def about(self) -> dict[str, Any]: ...  # what stands under "serve" of the list of inputs
    def records(self, key: str) -> list[Record]: ...  # of a trace, so far; raises NotGiven


class ViewerApi:
    """All inputs, opened. One thread may call `curves` and `search`, which are slow, one `ground`, and one the rest.

    Frames are searched in `space`, by name or digest; None is each library's own. Raises UsageError if one lacks it.
    """

    asking: Asking | None = None

    def __init__(self, inputs: ViewerInputs, space: str | None = None, towers: TextTowers | None = None) -> None:
        self.inputs = inputs
        self._space = space
        self._towers = towers or TextTowers()
        for library in inputs.libraries:
            find_space(library, space)
        self._groundings = Groundings(self._towers)
        self._searches: dict[tuple[int, str], LibrarySearch] = {}
        self._environments: dict[tuple[int, str], Environment] = {}
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
        """A trace with the number of the library that holds its frames, if any, the shots, and the true answer.

        `evidence` has a frame, or None, for each range of the answer's.
        """
        view = self.view(key)
        number = self._library_of(view)
        video_ids = [video["video_id"] for video in view.videos]
        library = None if number is None else self.inputs.libraries[number]
        return {
            "key": key,
            "name": self._name(key),
            "trace": view,
            "library": number,
            "shots": {} if library is None else shots(library, video_ids),
            "evidence": evidence_frames(library, view),
            "truth": self._truth(key),
        }

    def curves(self, key: str) -> list[Any]:
        """Curves of how well the queries of a trace match its videos; none without its library."""
        view = self.view(key)
        number = self._library_of(view)
        if number is None or not any(step.queries for step in view.steps):
            return []
        seen_in = next((each for each in self._library(number).spaces() if str(each) == view.space), None)
        if seen_in is None:
            return []
        environment = self._environment(number, seen_in.digest)
        library = self._search_of(number, seen_in.digest).library
        rows = [library.video(video["video_id"]) for video in view.videos]
        alone = Environment.of(library, rows, environment.source.embed_texts, space=seen_in.digest)
        return list(curves(view, alone))

    def run(self, number: int) -> dict[str, Any]:
        """A run: standings, and every question with all answers to it."""
        return run_view(self._run(number))

    def run_folder(self, number: int) -> Path:
        """Folder of a run."""
        return self._run(number).folder

    def library(self, number: int) -> dict[str, Any]:
        """Counts of a library's rows, and the name of the space that is searched."""
        library = self._library(number)
        return asdict(library.info()) | {"searched": library.space(self._space).name}

    def videos(self, number: int, words: str, start: int, order: str = "title") -> dict[str, Any]:
        """One page of a library's videos, those with these words in title or URI; see `VideoList.page`."""
        library = self._library(number)
        return self._video_lists.setdefault(number, VideoList(library)).page(words, start, order)

    def failures(self, number: int, words: str, start: int) -> dict[str, Any]:
        """One page of a library's failures, those with these words in URI or reason."""
        return failures_page(self._library(number), words, start)

    def video(self, number: int, video_id: str) -> dict[str, Any]:
        """A video with its shots, texts and the frames of each detection's label. Raises UnknownVideo."""
        return video_view(self._library(number), video_id)

    def detections(self, number: int, video_id: str, frame_no: int) -> list[DetectionRow]:
        """Detections of one frame; raises UnknownVideo or TimeOutside."""
        return frame_detections(self._library(number), video_id, frame_no)

    def load_towers(self) -> None:
        """Begin to load the text tower of each library, in a thread of its own.

        An error of one is that of the first search that needs it: the other pages do not.
        """
        for library in self.inputs.libraries:
            self._towers.begin(library.uri, library.space(self._space))

    def tower_of(self, number: int, request: SearchRequest) -> Future[TextEmbedder] | None:
        """The text tower that a search needs, loaded or being loaded; None if it needs none."""
        library = self._library(number)
        space = library.space(self._space)
        return self._towers.begin(library.uri, space) if needs_vector(library, request, space) else None

    def ground(self, number: int, request: GroundRequest) -> dict[str, Any]:
        """Ranges of a library in which something happens: see `grounding_view`; raises as a search does."""
        library = self._library(number)
        return self._groundings.ground(library.uri, library.space(self._space), request)

    def ground_tower(self, number: int) -> Future[TextEmbedder]:
        """The text tower that `ground` needs, loaded or being loaded."""
        library = self._library(number)
        return self._towers.begin(library.uri, library.space(self._space))

    def close(self) -> None:
        """Load no further towers."""
        self._towers.close()

    def search(self, number: int, request: SearchRequest) -> dict[str, Any]:
        """Groups of hits of a search in a library; raises SpaceError, SpaceMismatch, QueryError or UnknownVideo."""
        return self._search_of(number).search(request)

    def search_picture(self, number: int, content: bytes, request: SearchRequest) -> dict[str, Any]:
        """The same of a search by a picture, a JPEG for example; raises UsageError where it is none."""
        return self._search_of(number).search_picture(content, request)

    def picture(self, number: int, video_id: str, frame_no: int) -> bytes:
        """A frame's JPEG; raises UnknownVideo or TimeOutside."""
        return self._library(number).frames(video_id, [frame_no])[0].jpeg

    def trace_keys(self) -> list[str]:
        """Keys of all traces that the user named one by one."""
        return [f"t{number}" for number in range(len(self.inputs.traces))]

    def view(self, key: str) -> TraceView:
        """Read a trace, or take it from memory; raises NotATrace or NotGiven."""
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
            return _at(self.inputs.traces, int(match[1]), "trace")
        run = self._run(int(match[2]))
        contender = _at(run.plan.contenders, int(match[3]), "contender")
        item = _at(run.items, int(match[4]), "question")
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
            if wanted <= library.video_ids() and _holds_frames(library, view):
                return number
        return None

    def _environment(self, number: int, space: str) -> Environment:
        """Environment over all videos of a library of the slow thread, in one of its spaces."""
        if (number, space) not in self._environments:
            search = self._search_of(number, space)
            videos = search.library.videos()
            self._environments[number, space] = Environment.of(
                search.library, videos, search.text_tower.embed_text, space=space
            )
        return self._environments[number, space]

    def _search_of(self, number: int, space: str | None = None) -> LibrarySearch:
        """Search of a library in one of its spaces (None: the one that is searched), for the slow thread."""
        held = self._library(number).space(space or self._space)
        if (number, held.digest) not in self._searches:
            opened = next((each.library for (at, _), each in self._searches.items() if at == number), None)
            library = opened or Library.open(self._library(number).uri)
            self._searches[number, held.digest] = LibrarySearch(library, held, self._towers)
        return self._searches[number, held.digest]

    def _run(self, number: int) -> Run:
        return _at(self.inputs.runs, number, "run")

    def _library(self, number: int) -> Library:
        return _at(self.inputs.libraries, number, "library")


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


def _at(values: Sequence[T], number: int, kind: str) -> T:
    if not 0 <= number < len(values):
        raise NotGiven(f"got {kind} {number}; there are {len(values)}, counted from 0")
    return values[number]
