"""What the page asks for, by key: of the traces, runs and libraries that were given, and of nothing else.

A key is made of numbers alone, so no name that comes from a browser ever becomes a path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from agent.core.protocol import ShownFrame, plain
from agent.environment import Environment
from agent.trace.trace import read_trace
from index.errors import KinodexError, TimeOutside
from index.library import Library
from jobs.errors import UsageError
from jobs.evaluation.run.run_folder import Run, trace_file
from jobs.open_library import held_space
from jobs.viewer.inputs import Given
from jobs.viewer.library_view import Asked, failures_page, found, video_view, videos_page
from jobs.viewer.run_view import run_view, truth_of
from jobs.viewer.timeline import curves, shots
from jobs.viewer.trace_view import TraceView, shown_frames, trace_view

T = TypeVar("T")
TRACE_KEY = re.compile(r"t(\d{1,6})|r(\d{1,6})-(\d{1,6})-(\d{1,6})")
VIEWS_KEPT = 64
"""Traces that are kept as they were read: most take a megabyte, a very long one some hundreds."""


class NotGiven(KinodexError):
    """The page asks for what was not given."""


class Collection:
    """All that was given, opened. One thread may call `curves` and `search`, which are slow, and another the rest.

    Frames are searched in `space`, by name or digest; None is each library's own. Raises UsageError if one lacks it.
    """

    def __init__(self, given: Given, space: str | None = None) -> None:
        self.given = given
        self._space = space
        for library in given.libraries:
            held_space(library, space)
        self._slow_libraries: dict[int, Library] = {}
        self._environments: dict[tuple[int, str], Environment] = {}
        self._views: dict[str, TraceView] = {}

    @cached_property
    def home(self) -> dict[str, Any]:
        """What there is to see, with the keys to ask for it by."""
        given = self.given
        return {
            "traces": [self._heading(f"t{number}") for number in range(len(given.traces))],
            "runs": [
                {"key": number, "title": run.plan.title, "folder": run.folder.name, "answers": len(run.records)}
                for number, run in enumerate(given.runs)
            ],
            "libraries": [
                {"key": number, "uri": library.uri, "videos": len(library.video_ids())}
                for number, library in enumerate(given.libraries)
            ],
            "lost": given.lost,
        }

    def trace(self, key: str) -> dict[str, Any]:
        """A trace with the number of the library that holds its frames, if any, the shots, and what is true."""
        view = self.view(key)
        number = self._library_of(view)
        video_ids = [video["video_id"] for video in view.videos]
        return {
            "key": key,
            "name": self._name(key),
            "trace": view,
            "library": number,
            "shots": {} if number is None else shots(self.given.libraries[number], video_ids),
            "truth": self._truth(key),
        }

    def curves(self, key: str) -> list[Any]:
        """How well the queries of a trace match its videos; none without its library."""
        view = self.view(key)
        number = self._library_of(view)
        if number is None or not any(step.queries for step in view.steps):
            return []
        seen_in = next((each for each in self._library(number).spaces() if str(each) == view.space), None)
        if seen_in is None:
            return []
        environment = self._environment(number, seen_in.digest)
        alone = environment.only([video["video_id"] for video in view.videos])
        return list(curves(view, alone))

    def run(self, number: int) -> dict[str, Any]:
        """A run: how its contenders stand, and every question with everybody's answer."""
        return run_view(self._run(number))

    def run_folder(self, number: int) -> Path:
        return self._run(number).folder

    def library(self, number: int) -> dict[str, Any]:
        """Counts of what is in a library, and the name of the space that is searched."""
        library = self._library(number)
        return asdict(library.info()) | {"searched": library.space(self._space).name}

    def videos(self, number: int, words: str, start: int) -> dict[str, Any]:
        return videos_page(self._library(number), words, start)

    def failures(self, number: int, words: str, start: int) -> dict[str, Any]:
        return failures_page(self._library(number), words, start)

    def video(self, number: int, video_id: str) -> dict[str, Any]:
        """Raises UnknownVideo."""
        return video_view(self._library(number), video_id)

    def search(self, number: int, asked: Asked) -> list[dict[str, Any]]:
        """The hits of a search in a library; raises SpaceError, SpaceMismatch, QueryError or UnknownVideo."""
        library = self._slow_library(number)
        space = library.space(self._space)
        # Loaded when a text has to be embedded: what is said, and labels, are found where the model is not.
        return found(library, asked, lambda text: self._environment(number, space.digest).embed_text(text), space)

    def picture(self, number: int, video_id: str, frame_no: int) -> bytes:
        """A frame's JPEG; raises UnknownVideo or TimeOutside."""
        return self._library(number).frames(video_id, [frame_no])[0].jpeg

    def trace_keys(self) -> list[str]:
        """The keys of all traces that were given one by one."""
        return [f"t{number}" for number in range(len(self.given.traces))]

    def view(self, key: str) -> TraceView:
        """A trace; raises NotATrace or NotGiven."""
        known = self._views.get(key)
        if known is None:
            if len(self._views) >= VIEWS_KEPT:
                self._views.clear()
            known = self._views[key] = trace_view(read_trace(self._trace_path(key)))
        return known

    def _trace_path(self, key: str) -> Path:
        match = TRACE_KEY.fullmatch(key)
        if match is None:
            raise NotGiven(f"got {key!r}, which is no key of a trace")
        if match[1] is not None:
            return _at(self.given.traces, int(match[1]), "trace")
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
        }

    def _name(self, key: str) -> str:
        path = self._trace_path(key)
        return path.name if key.startswith("t") else f"{path.parent.name}/{path.name}"

    def _truth(self, key: str) -> dict[str, Any] | None:
        match = TRACE_KEY.fullmatch(key)
        if match is None or match[2] is None:
            return None
        run = self._run(int(match[2]))
        return truth_of(run, run.items[int(match[4])])

    def _library_of(self, view: TraceView) -> int | None:
        """The first library that holds all videos of a trace, with the frames that it saw."""
        wanted = {video["video_id"] for video in view.videos}
        holding = (n for n, each in enumerate(self.given.libraries) if wanted <= each.video_ids() and _seen(view, each))
        return next(holding, None)

    def _environment(self, number: int, space: str) -> Environment:
        """A library of the slow thread with a space's text tower, which takes seconds to load."""
        if (number, space) not in self._environments:
            self._environments[number, space] = Environment.open(self._slow_library(number), space=space)
        return self._environments[number, space]

    def _slow_library(self, number: int) -> Library:
        """A library, opened once more for the slow thread."""
        if number not in self._slow_libraries:
            self._slow_libraries[number] = Library.open(self._library(number).uri)
        return self._slow_libraries[number]

    def _run(self, number: int) -> Run:
        return _at(self.given.runs, number, "run")

    def _library(self, number: int) -> Library:
        return _at(self.given.libraries, number, "library")


def _seen(view: TraceView, library: Library) -> bool:
    """Whether a library holds what a trace saw, judged by its first frame: a video ingested anew has other frames."""
    first = next(iter(shown_frames(view)), None)
    if first is None:
        return True
    try:
        (stored,) = library.frames(first.video_id, [first.frame_no])
    except TimeOutside:
        return False
    return plain(ShownFrame(**asdict(stored))) == asdict(first)


def _at(given: Sequence[T], number: int, what: str) -> T:
    if not 0 <= number < len(given):
        raise NotGiven(f"got {what} {number}; {len(given)} were given")
    return given[number]


def numbers(given: Mapping[str, str], *names: str) -> list[float | None]:
    """Numbers of a query string, None where one is not given; raises UsageError for what is no number."""
    try:
        return [float(given[name]) if given.get(name) else None for name in names]
    except ValueError as error:
        raise UsageError(f"{error}; give a number") from error
