"""The result file of a run: a first line with its settings, then a line of JSON for each search and system.

A run that stopped anywhere goes on where it stopped: a line that was not written whole is dropped, and settings that
differ are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jobs.errors import UsageError
from jobs.evaluation.moments.intervals import Found

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Result:
    """The finds of a system for a search, best first; `present` and `evidence` are None of one that gives no verdict.

    `error` is the reason why a system gave nothing, "" if it did.
    """

    case_id: str
    system: str
    found: tuple[Found, ...]
    present: bool | None = None
    evidence: float | None = None
    error: str = ""


class ResultFile:
    """Results in a file, or in memory alone without one."""

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        """Open the file of a run of these settings, or begin it. Raises UsageError for another run's file."""
        self._path = path
        self.results: dict[tuple[str, str], Result] = {}
        head = {"kinodex_moments": FORMAT, **settings}
        if path is None:
            return
        try:
            if path.exists():
                self._read(path, head)
            else:
                path.write_text(json.dumps(head) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}; give another file") from error

    def add(self, result: Result) -> None:
        """Keep a result, in the file at once."""
        self.results[result.system, result.case_id] = result
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result)) + "\n")

    def _read(self, path: Path, head: Mapping[str, Any]) -> None:
        text = path.read_text(encoding="utf-8")
        whole, _, rest = text.rpartition("\n")
        lines = whole.split("\n")
        written = _json(lines[0]) if whole else None
        if not isinstance(written, dict) or written.get("kinodex_moments") != FORMAT:
            raise UsageError(f"{path} is no result file of `kinodex eval`; give a new file")
        other = next((key for key in {**written, **head} if written.get(key) != head.get(key)), None)
        if other is not None:
            raise UsageError(
                f"{path} has results with {other} {written.get(other)}, and this run has {head.get(other)}; "
                "give a new file"
            )
        for line in lines[1:]:
            row = json.loads(line)
            found = tuple((video, start_s, end_s) for video, start_s, end_s in row.pop("found"))
            result = Result(found=found, **row)
            self.results[result.system, result.case_id] = result
        if rest:
            path.write_text(whole + "\n", encoding="utf-8")


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
