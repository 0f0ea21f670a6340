"""Arguments of the front door as its users may give them: videos, questions, paths, and plain values, checked."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from kinodex.index.rows import VideoRow
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from kinodex.agent.protocol.question import Question

P = ParamSpec("P")
R = TypeVar("R")


VideoName = str | VideoRow
"""A video's id, the first digits of one, its title or file name, or its row."""


def question_of(question: str | Question, options: Sequence[str]) -> Question:
    """Return the question of a text and its options, or the one given; raises UsageError for both."""
    from kinodex.agent.protocol.question import Question

    if isinstance(question, str):
        return Question(question, tuple(options))
    if not isinstance(question, Question):
        raise UsageError(f"got {question!r:.60} for a question; give a text or a Question")
    if options:
        raise UsageError("got options beside a Question, which has its own; give one of them")
    return question


def names_of(videos: VideoName | Sequence[VideoName]) -> Sequence[str]:
    """Return the names of videos, one of which may be given without a list."""
    several = videos if isinstance(videos, Iterable) and not isinstance(videos, str) else (videos,)
    return [name_of(each) for each in several]


def name_of(video: VideoName) -> str:
    """Return the name of a video, or the id of its row."""
    if not isinstance(video, str | VideoRow):
        raise UsageError(f"got {video!r:.60} for a video; give its id, title, file name or row")
    return video if isinstance(video, str) else video.video_id


def library_place(uri: str | Path) -> str:
    """Return the place of a library, with the home folder of `~` as a shell writes it."""
    if not isinstance(uri, str | os.PathLike) or not str(uri):
        raise UsageError(f"got {uri!r:.60} for a library; give its folder or URI")
    return str(Path(uri).expanduser()) if str(uri).startswith("~") else str(uri)


def trace_path(path: str | Path | None) -> Path | None:
    """Return the path of a trace to write, `~` as a shell writes it; raises UsageError where no file can be."""
    given = None if path is None else _path(path, "trace")
    if given is not None and (given.is_dir() or not given.parent.is_dir()):
        raise UsageError(f"got trace={str(path)!r}, which is a folder or lies in none; give a file in one that exists")
    return given


def earlier_path(path: str | Path | None) -> Path | None:
    """Return the path of an earlier trace; raises UsageError where there is no file."""
    given = None if path is None else _path(path, "follow_up")
    if given is not None and not given.is_file():
        raise UsageError(f"got follow_up={str(path)!r}, which is no file; give the trace of an earlier question")
    return given


def _path(path: str | Path, name: str) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"got {name}={path!r:.60}; give a path")
    return Path(library_place(path))


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the plain arguments of a public function, by their names in `CHECKS`; raises UsageError."""
    asked = signature(function)
    names = [name for name, each in asked.parameters.items() if name in CHECKS and each.kind is not each.VAR_KEYWORD]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = asked.bind(*args, **kwargs).arguments
        for name in names:
            fits, allowed = CHECKS[name]
            if name in given and given[name] is not asked.parameters[name].default and not fits(given[name]):
                raise UsageError(f"got {name}={given[name]!r:.60}; give {allowed}")
        return function(*args, **kwargs)

    return call


def _whole(least: int, most: float = math.inf) -> Callable[[object], bool]:
    return lambda value: isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def _number(least: float = -math.inf) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        return (
            isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and float(value) >= least
        )

    return fits


def _texts(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, str) for each in value)


def _times(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and all(_number()(each) for each in value)


COUNT, SECONDS = (_whole(1), "a whole number, 1 or more"), (_number(), "seconds as a finite number")
LENGTH = _number(0.0), "seconds, 0 or more"
TEXT = (lambda value: isinstance(value, str)), "a text"
SWITCH = (lambda value: isinstance(value, bool)), "True or False"
CHECKS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "k": (_whole(1), "a whole number from 1 on"),
    "start_s": SECONDS,
    "end_s": SECONDS,
    "min_gap_s": LENGTH,
    "min_s": LENGTH,
    "every_s": (lambda value: LENGTH[0](value) and value != 0, "seconds above 0"),
    "at_once": COUNT,
    "limit": COUNT,
    "workers": COUNT,
    "least": (_number(), "a finite number"),
    "seed": (_whole(0), "a whole number, 0 or more"),
    "times_s": (_times, "a list of finite seconds, such as [12.0]"),
    "in_": TEXT,
    "where": TEXT,
    "options": (_texts, "a list of 2 to 26 texts"),
    "label": TEXT,
    "space": TEXT,
    "base_url": TEXT,
    "float32": SWITCH,
    "cache": SWITCH,
}
"""For each plain argument of the front door a test that it passes, and what is allowed in words."""
