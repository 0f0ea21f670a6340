"""The file of results: a first line with the settings of the run, then a line for each search and contender.

A run that stopped anywhere goes on where it stopped: a line that was not written whole is dropped, and settings that
differ are refused. Those of one contender, such as the models of an agent, stand with each result, so that contenders
can be added. Of two lines for one search and contender the later counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import adapter_of
from kinodex.jobs.eval.moments.cases import Found
from kinodex.jobs.json_files import first_defect

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Result:
    """The finds of a contender for a search, best first; `present` and `evidence` are None of one without verdicts.

    `error` is the reason why a contender gave nothing, "" if it did. `query` is the digest of what was searched for.
    `made_with` are the settings of this contender alone.
    """

    case_id: str
    system: str
    found: tuple[Found, ...]
    present: bool | None = None
    evidence: float | None = None
    error: str = ""
    query: str = ""
    made_with: Mapping[str, Any] = field(default_factory=dict)


class ResultFile:
    """Results in a file, or in memory alone without one."""

    def __init__(
        self, path: Path | None, settings: Mapping[str, Any], of_systems: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Open the file of a run of these settings, or begin it; `of_systems` are further ones by contender.

        Raises UsageError for results of other settings.
        """
        self._path = path
        self.results: dict[tuple[str, str], Result] = {}
        head = {"kinodex_moments": FORMAT, **settings}
        if path is None:
            return
        own = of_systems or {}
        try:
            if not path.exists() or not self._read(path, head):
                path.write_text(json.dumps(head) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}; give another file") from error
        for result in self.results.values():
            _check_made_with(path, result, own.get(result.system, {}))

    def add(self, result: Result) -> None:
        """Keep a result, in the file at once."""
        self.results[result.system, result.case_id] = result
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result)) + "\n")

    def _read(self, path: Path, head: Mapping[str, Any]) -> bool:
        """Read the results of a run of these settings; False of a file in which there is nothing yet."""
        content = path.read_bytes()
        whole, _, rest = content.decode("utf-8", "replace").rpartition("\n")
        if not whole and json.dumps(head).startswith(rest):  # empty, or stopped in its first line
            return False
        lines = whole.split("\n")
        _check_head(path, lines[0], head)
        for number, line in enumerate(lines[1:], start=2):
            result = _read_result(path, number, line)
            self.results[result.system, result.case_id] = result
        if rest:  # cut off in place: results before it are paid for, and never written again
            os.truncate(path, content.rindex(b"\n") + 1)
        return True


def _check_head(path: Path, line: str, head: Mapping[str, Any]) -> None:
    """Raise UsageError unless the first line has the settings of this run."""
    try:
        written = json.loads(line)
    except json.JSONDecodeError:
        written = None
    if not isinstance(written, dict) or written.get("kinodex_moments") != FORMAT:
        raise UsageError(f"{path} is no result file of `kinodex eval`; give a new file")
    other = next((key for key in {**written, **head} if written.get(key) != head.get(key)), None)
    if other is not None:
        raise UsageError(
            f"{path} has results with {other} {written.get(other)}, and this run has {head.get(other)}; give a new file"
        )


def _check_made_with(path: Path, result: Result, now: Mapping[str, Any]) -> None:
    """Refuse a result that the same contender gave with other settings of its own."""
    other = next((key for key in now if result.made_with.get(key) != now[key]), None)
    if other is not None:
        raise UsageError(
            f"{path} has results of {result.system} with {other} {result.made_with.get(other)}, and this run has "
            f"{now[other]}; give a new file"
        )


def _read_result(path: Path, number: int, line: str) -> Result:
    try:
        result: Result = adapter_of(Result).validate_json(line)
    except ValidationError as error:
        raise UsageError(
            f"{path} is damaged in line {number}: {first_defect(error)}; take the line out, and its search runs again, "
            "or give a new file"
        ) from error
    return result
